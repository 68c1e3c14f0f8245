package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

func TestPurePackagesAskNoClock(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if name, _ := nameOf(p.ImportPath); !isPure(name) {
			continue
		}
		for _, name := range p.Files {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, position := range clockCalls(files, file) {
				t.Errorf("%s asks the clock", position)
			}
		}
	}
}

func clockCalls(files *token.FileSet, file *ast.File) []token.Position {
	var out []token.Position
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(impureCalls, s.Sel.Name) {
				out = append(out, files.Position(s.Pos()))
			}
		}
		return true
	})
	return out
}

func TestClockCallsAreFound(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "x.go",
		"package x\nimport \"time\"\nvar a = time.Second\nvar b = time.Now()\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := clockCalls(files, file); len(got) != 1 || got[0].Line != 4 {
		t.Errorf("found %v, want the one in line 4", got)
	}
}
