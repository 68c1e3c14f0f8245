package fieldcases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// open are the cases whose rule does not hold yet. They are played all the same: a failure is only reported, and one
// that passes can leave the list.
var open = strings.Fields(`R07a R09a R09b R09c R09d R09e R09f R11a R11b R11c R11d R11f R12a R12b R12c R12e R13a R13b
	R13d R13e R14a R14b R14e R14f R15a R15b R15c R16a R16b R16c R16d R18a R18b R18c R22a R22c R23a R23b R23d R24a R24c
	R24d R25d`)

// TestCases plays each case.
func TestCases(t *testing.T) {
	t.Parallel()
	dir, all := cases(t)
	s := newStand(t, dir, all)
	for _, c := range all {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			p := &play{T: t, stand: s, c: c, answers: object{}}
			fail := t.Fatalf
			if slices.Contains(open, c.ID) {
				fail = t.Skipf
			}
			if err := p.run(); err != nil {
				fail("%s\n%v", c.Kind, err)
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
				fail("%s\n  %s", c.Kind, strings.Join(failed, "\n  "))
			}
		})
	}
}
