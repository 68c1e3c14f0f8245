package archtest

import (
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

// root is the folder of the module.
var root = filepath.Join("..", "..")

// pkg is the code of a package, without its tests.
type pkg struct {
	ImportPath string
	Files      []string
	Imports    []string
}

// list reads the packages of the module, all files whatever their build constraints. It walks the folders itself: if it
// asked the go command, the test cache would not notice a change in them.
func list(t *testing.T) []pkg {
	t.Helper()
	byFolder := map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return enter(path, entry.Name())
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		p := byFolder[folder]
		if p == nil {
			p = &pkg{ImportPath: strings.TrimSuffix(module+"/"+filepath.ToSlash(folder), "/.")}
			byFolder[folder] = p
		}
		return p.add(path)
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

// enter skips folders that hold no package of the module.
func enter(path, name string) error {
	if path == root {
		return nil
	}
	_, nested := os.Stat(filepath.Join(path, "go.mod"))
	other := slices.Contains([]string{"testdata", "node_modules", "bin"}, name)
	if nested == nil || other || strings.HasPrefix(name, ".") {
		return filepath.SkipDir
	}
	return nil
}

// add reads the imports of a file.
func (p *pkg) add(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return err
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
}
