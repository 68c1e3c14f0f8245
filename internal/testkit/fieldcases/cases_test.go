package fieldcases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"precis/internal/testkit/stacktest"
)

// Variable names the environment variable with the absolute path of the folder of cases.
const Variable = "PRECIS_CASES"

func TestMain(m *testing.M) { os.Exit(stacktest.Main{M: m}.Run()) }

// object is a JSON object, decoded.
type object = map[string]any

// fieldCase is a line of cases.jsonl.
type fieldCase struct {
	ID           string   `json:"id"`
	Kind         string   `json:"kind"`
	Format       string   `json:"format"`
	Guard        bool     `json:"guard"`
	Input        string   `json:"input"`
	Flags        []string `json:"flags"`
	Conversation object   `json:"conversation"`
	Messages     []any    `json:"messages"`
	Meta         []any    `json:"meta"`
	Let          object   `json:"let"`
	Vendor       struct {
		Answers  []any `json:"answers"`
		MaxMarks int   `json:"max_marks"`
	} `json:"vendor"`
	Steps   []any    `json:"steps"`
	Expect  []object `json:"expect"`
	Control []object `json:"control"`
}

// cases reads the cases, none without PRECIS_CASES.
func cases(t *testing.T) (dir string, all []fieldCase) {
	t.Helper()
	if dir = os.Getenv(Variable); dir == "" {
		t.Skipf("$%s names no folder of cases", Variable)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var c fieldCase
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&c); err != nil {
			t.Fatalf("a case of %s: %v", dir, err)
		}
		all = append(all, c)
	}
	return dir, all
}

// TestCases plays each case.
func TestCases(t *testing.T) {
	t.Parallel()
	dir, all := cases(t)
	s := newStand(t, dir, all)
	for _, c := range all {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			p := &play{T: t, stand: s, c: c, answers: object{}}
			if err := p.run(); err != nil {
				t.Fatalf("%s\n%v", c.Kind, err)
			}
			var failed []string
			for name, list := range map[string][]object{"expect": c.Expect, "control": c.Control} {
				for i, a := range list {
					if err := p.holds(a); err != nil {
						failed = append(failed, fmt.Sprintf("%s %d: %v", name, i, err))
					}
				}
			}
			if len(failed) > 0 {
				t.Errorf("%s\n  %s", c.Kind, strings.Join(failed, "\n  "))
			}
		})
	}
}
