package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
)

// TestConceptsMatchTheCode compares what concepts.md says about outcomes and defaults with the code.
func TestConceptsMatchTheCode(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	text := strings.Join(strings.Fields(page), " ")

	_, after, _ := strings.Cut(page, "A run ends in one of these outcomes:")
	table, _, _ := strings.Cut(after, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(outcomes(t), documented); diff != "" {
		t.Errorf("outcomes in the code (-) and in concepts.md (+):\n%s", diff)
	}

	s := pipeline.DefaultSettings()
	for _, sentence := range []string{
		fmt.Sprintf("%.0f %% of the window", 100*s.Trigger.Fraction),
		fmt.Sprintf("%d,%03d genuine user messages", s.Trigger.Turns/1000, s.Trigger.Turns%1000),
		fmt.Sprintf("A tool result over %d,%03d characters that is older than the last %s user turns",
			s.ToolResultPreviewChars/1000,
			s.ToolResultPreviewChars%1000, map[int]string{5: "five"}[s.ToolResultKeepTurns]),
		fmt.Sprintf("`digest: %s`, the default", s.Digest),
		map[float64]string{0.5: "too long for the tail (half of the window"}[s.TailMaxFraction],
	} {
		if sentence == "" || !strings.Contains(text, sentence) {
			t.Errorf("concepts.md does not say %q", sentence)
		}
	}
}

// outcomes returns the values of the constants of type precis.Outcome, sorted.
func outcomes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "outcome.go"), nil,
		parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Outcome" && len(v.Values) == 1 {
			if text, ok := v.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, value)
			}
		}
		return true
	})
	if len(out) < 6 {
		t.Fatalf("outcome.go has only the outcomes %v; the test looks for constants of type Outcome", out)
	}
	slices.Sort(out)
	return out
}
