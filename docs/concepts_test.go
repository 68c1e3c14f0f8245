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

	"precis/pipeline"
)

// TestConceptsAreTheCodes keeps what concepts.md states as a fact to what the code does: outcomes, reasons and
// defaults.
func TestConceptsAreTheCodes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	text := strings.Join(strings.Fields(page), " ")

	_, after, _ := strings.Cut(page, "A run ends in one of these outcomes:")
	table, _, _ := strings.Cut(after, "\n## ")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(table, -1) {
		told = append(told, row[1])
	}
	if want := outcomes(t); !slices.Equal(slices.Sorted(slices.Values(told)), want) {
		t.Errorf("concepts.md tells of outcomes %v, the code of %v", told, want)
	}

	s := pipeline.DefaultSettings()
	for _, says := range []string{
		fmt.Sprintf("%.0f %% of the window", 100*s.Trigger.Fraction),
		fmt.Sprintf("%d,%03d genuine user messages", s.Trigger.Turns/1000, s.Trigger.Turns%1000),
		fmt.Sprintf("A tool result over %d,%03d characters that is older than the last %s user turns",
			s.ToolResultPreviewChars/1000,
			s.ToolResultPreviewChars%1000, map[int]string{5: "five"}[s.ToolResultKeepTurns]),
		fmt.Sprintf("`digest: %s`, the default", s.Digest),
		map[float64]string{0.5: "too long for the tail (half of the window"}[s.TailMaxFraction],
	} {
		if says == "" || !strings.Contains(text, says) {
			t.Errorf("concepts.md does not say %q", says)
		}
	}
}

// outcomes are the constants of the store's type Outcome.
func outcomes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "internal", "store", "run.go"), nil,
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
		t.Fatalf("only outcomes %v were found", out)
	}
	slices.Sort(out)
	return out
}
