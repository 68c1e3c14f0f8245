package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers are the packages from the bottom to the top; a name ending in /... stands for all below it. A package
// imports only from layers below its own. A new package needs a place here.
var layers = [][]string{
	{"pipeline", "pipeline/transcript/rawjson"},
	{"pipeline/transcript/jsonstream", "pipeline/transcript/layout", "pipeline/transcript/media"},
	{"pipeline/transcript/wire/..."},
	{"pipeline/transcript"},
	{"pipeline/transcript/request"},
	{"pipeline/transcript/convert", "internal/memory/search", "internal/version", "migrations"},
	{"internal/contract"},
	{"internal/config", "internal/llm", "internal/store/db", "internal/store/schema"},
	{"internal/store/access", "internal/store/breakers", "internal/store/seals"},
	{"internal/store/conversations"},
	{
		"internal/store/artifacts", "internal/store/livestate", "internal/store/replies", "internal/store/searchindex",
		"internal/store/timeline",
	},
	{"internal/store/runs"},
	{"internal/store/markers", "internal/store/modelcalls", "internal/store/outbox", "internal/store/replays"},
	{"internal/store/contexts", "internal/store/retention", "internal/store/segments"},
	{"internal/store/evidence", "internal/store/triggers"},
	{"internal/store/changes", "internal/store/exports"},
	{"internal/store"},
	{
		"internal/conversation", "internal/devstack", "internal/eval", "internal/testkit/vendorserver",
		"internal/runreport", "internal/telemetry", "internal/temporalclient", "internal/testkit",
		"internal/testkit/corpus",
	},
	{"internal/launch"},
	{"activities", "internal/audit", "internal/testkit/stacktest", "internal/memory"},
	{"workflows"},
	{"internal/cli/historycheck", "internal/worker"},
	{"internal/service"},
	{"internal/mcp"},
	{"internal/api", "internal/testkit/scenario"},
	{"internal/web"},
	{"internal/cli/...", "internal/testkit/apitest", "internal/testkit/exampletest"},
	{
		"starter/...", "worker/...", "bench/...", "examples/...", "internal/devstack/cmd/...", "internal/faults",
		"internal/testkit/compat",
	},
	{"internal/archtest"},
}

// only says which of the packages below it a package may import, where being below is not enough.
var only = map[string][]string{
	// A workflow decides and never computes; what it needs of the world it gets from activities.
	"workflows": {"activities", "pipeline"},
	// Both are plain adapters, so that each can be read and replaced on its own.
	"internal/llm":    {"pipeline", "pipeline/transcript"},
	"internal/config": {"pipeline"},
	// What a program of another module may import is all that an example may.
	"examples/childworkflow": {"workflows"},
	"examples/pipeline":      {"pipeline", "pipeline/transcript", "pipeline/transcript/convert"},
}

// outside says which modules beyond the standard library a package may import, for packages that users
// import as a library.
var outside = map[string][]string{
	"pipeline":            {"github.com/tiktoken-go/tokenizer"},
	"pipeline/transcript": {},

	"pipeline/transcript/convert": {}, "pipeline/transcript/jsonstream": {}, "pipeline/transcript/layout": {},
	"pipeline/transcript/media": {}, "pipeline/transcript/rawjson": {}, "pipeline/transcript/request": {},
	"pipeline/transcript/wire/anthropic": {}, "pipeline/transcript/wire/google": {},
	"pipeline/transcript/wire/openai": {}, "pipeline/transcript/wire/responses": {},
}

// impure are the parts of the standard library that the library packages may not touch: they do no I/O, ask
// no clock and roll no dice, so that a run can be replayed from its record.
var impure = []string{
	"crypto/rand", "database/sql", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec",
	"os/signal", "plugin", "runtime/debug", "syscall", "testing", "testing/iotest",
}

// impureCalls are the parts of package time that ask the clock. Its durations are welcome.
var impureCalls = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// pkg is a package's code, its tests left out.
type pkg struct {
	ImportPath string
	Files      []string
	Imports    []string
}

const module = "precis"

// layer gives the place of a package, given without the module's name; -1 for none.
func layer(name string) int {
	for i, names := range layers {
		for _, n := range names {
			parent, all := strings.CutSuffix(n, "/...")
			if n == name || all && (name == parent || strings.HasPrefix(name, parent+"/")) {
				return i
			}
		}
	}
	return -1
}

// forTests says whether a package is there for tests alone.
func forTests(name string) bool {
	switch name {
	case "internal/devstack/cmd/withstack":
		return true
	}
	return strings.HasPrefix(name, "internal/testkit") || strings.HasSuffix(name, "test")
}

// violations lists each import that goes against an arrow.
func violations(packages []pkg) []string {
	var out []string
	fail := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		own := layer(name)
		if own < 0 {
			fail("%s has no place in the layers of internal/archtest", name)
			continue
		}
		for _, imported := range p.Imports {
			if imported == "testing" && !forTests(name) {
				fail("%s imports testing outside of its tests", name)
			}
			target, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				if libraries, limited := outside[name]; limited {
					if slices.Contains(impure, imported) {
						fail("%s imports %s, but it does no I/O and asks neither clock nor chance", name, imported)
					}
					inModule := func(library string) bool {
						return imported == library || strings.HasPrefix(imported, library+"/")
					}
					if strings.Contains(strings.Split(imported, "/")[0], ".") &&
						!slices.ContainsFunc(libraries, inModule) {
						fail("%s imports %s, but may import only the standard library and %v", name, imported,
							libraries)
					}
				}
				continue
			}
			if below := layer(target); below >= own {
				fail("%s imports %s, which is not below it", name, target)
			}
			if allowed, limited := only[name]; limited && !slices.Contains(allowed, target) {
				fail("%s imports %s, but may import only %s", name, target, strings.Join(allowed, ", "))
			}
			if forTests(target) && !forTests(name) {
				fail("%s imports %s, which is for tests", name, target)
			}
		}
	}
	return out
}

// list reads the packages of the module: all files whatever their build constraints. It walks the folders
// itself, where asking the go command would hide from the test cache that they have changed.
func list(t *testing.T) []pkg {
	t.Helper()
	root := filepath.Join("..", "..")
	byFolder := map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path == root {
				return nil
			}
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if nested == nil || strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" ||
				name == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		p := byFolder[folder]
		if p == nil {
			p = &pkg{ImportPath: module + "/" + filepath.ToSlash(folder)}
			byFolder[folder] = p
		}
		p.Files = append(p.Files, path)
		for _, i := range file.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(p.Imports, imported) {
				p.Imports = append(p.Imports, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var packages []pkg
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		packages = append(packages, *byFolder[folder])
	}
	return packages
}

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	packages := list(t)
	if !slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == module+"/pipeline" }) {
		t.Fatal("the list of packages holds no pipeline: this test looks at the wrong thing")
	}
	for _, v := range violations(packages) {
		t.Error(v)
	}
}

func TestThePipelineAsksNoClock(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if _, library := outside[strings.TrimPrefix(p.ImportPath, module+"/")]; !library {
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

// The arrows themselves: what they must refuse, and what they must not.
func TestTheArrowsRefuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		want     string // part of the complaint; "" for none
	}{
		{"precis/starter", "precis/workflows", ""},
		{"precis/workflows", "precis/activities", ""},
		{"precis/activities", "precis/internal/store", ""},
		{"precis/internal/store", "precis/pipeline", ""},
		{"precis/pipeline", "github.com/tiktoken-go/tokenizer/codec", ""},
		{"precis/pipeline", "encoding/json", ""},
		{"precis/internal/testkit/vendorserver", "testing", ""},
		{"precis/internal/store", "precis/activities", "not below"},
		{"precis/internal/store", "precis/internal/llm", "not below"},
		{"precis/activities", "precis/workflows", "not below"},
		{"precis/workflows", "precis/internal/store", "may import only activities, pipeline"},
		{"precis/worker", "precis/starter", "not below"},
		{"precis/examples/childworkflow", "precis/internal/store", "may import only workflows"},
		{"precis/internal/cli/demo", "precis/worker", "not below"},
		{"precis/internal/api", "precis/starter", "not below"},
		{"precis/pipeline", "precis/pipeline/transcript", "not below"},
		{"precis/pipeline", "github.com/google/uuid", "only the standard library"},
		{"precis/pipeline/transcript", "github.com/tiktoken-go/tokenizer", "only the standard library"},
		{"precis/pipeline", "os", "no I/O"},
		{"precis/pipeline", "math/rand/v2", "no I/O"},
		{"precis/activities", "precis/internal/testkit/vendorserver", "for tests"},
		{"precis/internal/llm", "testing", "outside of its tests"},
		{"precis/internal/unheard", "fmt", "no place in the layers"},
	} {
		got := strings.Join(violations([]pkg{{ImportPath: tt.from, Imports: []string{tt.to}}}), "\n")
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s → %s: %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
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
