package pipeline

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The package comment leads through the files: it names each of them once, and none that is not there.
func TestDocNamesEveryFile(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b[a-z0-9_]+\.go\b`).FindAllString(string(doc), -1)
	slices.Sort(named)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files,
		func(name string) bool { return name == "doc.go" || strings.HasSuffix(name, "_test.go") })
	if !slices.Equal(named, files) {
		t.Errorf("doc.go names\n%v\nthere are\n%v", named, files)
	}
}
