package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const module = "precis"

// layer gives the place of a package, -1 if it has none.
func layer(name string) int {
	for i, names := range layers {
		if slices.ContainsFunc(names, func(pattern string) bool { return matches(pattern, name) }) {
			return i
		}
	}
	return -1
}

// matches reports whether a package is the one that a pattern names, or with /... at its end one below it.
func matches(pattern, name string) bool {
	parent, all := strings.CutSuffix(pattern, "/...")
	return name == parent || all && strings.HasPrefix(name, parent+"/")
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

func isPure(name string) bool { return matchesAny(pure, name) }

// worksThroughService reports whether a package may not import what is behind the service.
func worksThroughService(name string) bool {
	return matchesAny(throughService, name) && !matchesAny(exempt, name)
}

// librariesOf gives the modules that a package may import; limited is false if it may import any.
func librariesOf(name string) (libraries []string, limited bool) {
	for pattern, list := range outside {
		if matches(pattern, name) {
			return list, true
		}
	}
	return nil, false
}

// nameOf gives the name of a package of the module, as layers has it. ok is false for any other package.
func nameOf(importPath string) (name string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// forTests reports whether a package is there for tests alone.
func forTests(name string) bool {
	return name == "internal/devstack/cmd/withstack" || strings.HasPrefix(name, "internal/testkit") ||
		strings.HasSuffix(name, "test")
}

// isAbove reports whether a package may import workflows and activities.
func isAbove(name string) bool {
	return !strings.HasPrefix(name, "internal/") ||
		slices.ContainsFunc(above, func(parent string) bool { return matches(parent+"/...", name) })
}

// violations lists every import that is against an arrow.
func violations(packages []pkg) []string {
	var out []string
	for _, p := range packages {
		name, _ := nameOf(p.ImportPath)
		if layer(name) < 0 {
			out = append(out, fmt.Sprintf("%s has no place in the layers of internal/archtest", name))
			continue
		}
		for _, imported := range p.Imports {
			complaint := ""
			if target, ours := nameOf(imported); ours {
				complaint = ofModule(name, target)
			} else {
				complaint = ofOthers(name, imported)
			}
			if complaint != "" {
				out = append(out, complaint)
			}
		}
	}
	return out
}

// ofModule says what is wrong with the import of a package of the module, "" if nothing is.
func ofModule(name, target string) string {
	allowed, limited := only[name]
	switch {
	case limited && !slices.Contains(allowed, target):
		return fmt.Sprintf("%s imports %s, but may import only %s", name, target, strings.Join(allowed, ", "))
	case (target == "workflows" || target == "activities") && !isAbove(name):
		return fmt.Sprintf("%s imports %s: only %s may; start workflows by the names in precis and contract",
			name, target, strings.Join(above, ", "))
	case worksThroughService(name) && matchesAny(behindService, target):
		return fmt.Sprintf("%s imports %s: only %s may; let internal/service offer what is needed", name, target,
			strings.Join(exempt, ", "))
	case layer(target) >= layer(name):
		return fmt.Sprintf("%s imports %s, which is not below it", name, target)
	case forTests(target) && !forTests(name):
		return fmt.Sprintf("%s imports %s, which is for tests", name, target)
	}
	return ""
}

// ofOthers says what is wrong with the import of a package of another module or of the standard library.
func ofOthers(name, imported string) string {
	libraries, limited := librariesOf(name)
	inLibrary := func(library string) bool { return imported == library || strings.HasPrefix(imported, library+"/") }
	standard := !strings.Contains(strings.Split(imported, "/")[0], ".")
	switch {
	case imported == "testing" && !forTests(name):
		return fmt.Sprintf("%s imports testing outside of its tests", name)
	case isPure(name) && slices.Contains(impure, imported):
		return fmt.Sprintf("%s imports %s, but does no I/O and asks neither clock nor randomness", name, imported)
	case limited && !standard && !slices.ContainsFunc(libraries, inLibrary):
		return fmt.Sprintf("%s imports %s, but may import only the standard library and %v", name, imported, libraries)
	}
	return ""
}

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	packages := list(t)
	if !slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == module }) {
		t.Fatal("the list of packages does not have the root package")
	}
	for _, v := range violations(packages) {
		t.Error(v)
	}
}

// What works through the service does not reach through it to its store either, which needs no import.
func TestNothingReachesThroughTheService(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range list(t) {
		if name, _ := nameOf(p.ImportPath); !worksThroughService(name) {
			continue
		}
		for _, path := range p.Files {
			checked++
			fileSet := token.NewFileSet()
			file, err := parser.ParseFile(fileSet, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if selected, ok := n.(*ast.SelectorExpr); ok && selected.Sel.Name == "Store" {
					t.Errorf("%s reaches a store: let internal/service offer what is needed", fileSet.Position(n.Pos()))
				}
				return true
			})
		}
	}
	if checked == 0 {
		t.Fatal("no file was checked")
	}
}

// The arrows themselves: what they refuse, and what they allow.
func TestArrows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		want     string // part of the complaint, "" for none
	}{
		{"precis", "precis/pipeline", ""},
		{"precis", "go.temporal.io/sdk/workflow", ""},
		{"precis/starter", "precis/internal/cli", ""},
		{"precis/workflows", "precis", ""},
		{"precis/internal/worker", "precis/workflows", ""},
		{"precis/internal/cli/historycheck", "precis/workflows", ""},
		{"precis/internal/testkit/scenario", "precis/activities", ""},
		{"precis/activities", "precis/internal/store", ""},
		{"precis/internal/store", "precis/internal/store/runs", ""},
		{"precis/pipeline", "github.com/tiktoken-go/tokenizer/codec", ""},
		{"precis/pipeline", "encoding/json", ""},
		{"precis/internal/testkit/vendorserver", "testing", ""},
		{"precis", "precis/internal/contract", "may import only pipeline"},
		{"precis", "github.com/jackc/pgx/v5", "only the standard library"},
		{"precis/internal/contract", "precis/internal/store", "may import only ., pipeline"},
		{"precis/internal/store", "precis/internal/conversation", "not below"},
		{"precis/internal/store/db", "precis/internal/store/runs", "not below"},
		{"precis/internal/launch", "precis/workflows", "start workflows by the names"},
		{"precis/internal/service", "precis/activities", "start workflows by the names"},
		{"precis/internal/api", "precis/workflows", "start workflows by the names"},
		{"precis/activities", "precis/workflows", "not below"},
		{"precis/workflows", "precis/activities", "may import only ., internal/contract, pipeline"},
		{"precis/worker", "precis/internal/store", "may import only internal/worker/process"},
		{"precis/starter", "precis/internal/service", "may import only internal/cli"},
		{"precis/internal/cli/demo", "precis/worker", "not below"},
		{"precis/internal/cli", "precis/internal/service", ""},
		{"precis/internal/cli/connect", "precis/internal/store", ""},
		{"precis/internal/cli/connect", "precis/internal/store/schema", ""},
		{"precis/internal/cli", "precis/internal/store", "let internal/service offer"},
		{"precis/internal/cli", "precis/internal/store/runs", "let internal/service offer"},
		{"precis/internal/cli", "precis/internal/launch", "let internal/service offer"},
		{"precis/internal/cli/draw", "precis/internal/conversation", "let internal/service offer"},
		{"precis/internal/cli/fail", "precis/internal/audit", "let internal/service offer"},
		{"precis/pipeline/transcript/rawjson", "precis/pipeline/transcript", "not below"},
		{"precis/pipeline", "precis/pipeline/transcript", "not below"},
		{"precis/pipeline", "github.com/google/uuid", "only the standard library"},
		{"precis/pipeline/transcript", "github.com/tiktoken-go/tokenizer", "only the standard library"},
		{"precis/pipeline", "os", "no I/O"},
		{"precis/pipeline", "math/rand/v2", "no I/O"},
		{"precis/activities", "precis/internal/testkit/stacktest", "for tests"},
		{"precis/internal/llm", "testing", "outside of its tests"},
		{"precis/internal/unheard", "fmt", "no place in the layers"},
	} {
		t.Run(tt.from+" imports "+tt.to, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(violations([]pkg{{ImportPath: tt.from, Imports: []string{tt.to}}}), "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
