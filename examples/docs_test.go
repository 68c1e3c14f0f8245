// Package examples_test compares what the pages show of the examples with the examples.
package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted is a block of a program on a page, behind a comment that names its file.
var quoted = regexp.MustCompile("(?m)^(?:<!-- ([^ ]+) -->\n\n)?```(go|python|typescript)\n((?s:.*?))^```$")

func TestThePagesQuoteTheExamples(t *testing.T) {
	t.Parallel()
	root := ".."
	pages := []string{filepath.Join(root, "docs", "integrate.md")}
	readmes, err := filepath.Glob("*/README.md")
	if err != nil || len(readmes) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	n := 0
	for _, page := range append(pages, readmes...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			n++
			from := filepath.Join(root, filepath.FromSlash(m[1]))
			if m[1] == "" {
				t.Errorf("%s: a block of %s does not say which file it is from:\n%s", page, m[2], m[3])
				continue
			}
			source, err := os.ReadFile(from)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if !strings.Contains(string(source), m[3]) {
				t.Errorf("%s shows what %s has not:\n%s", page, m[1], m[3])
			}
		}
	}
	if n < 4 {
		t.Errorf("only %d blocks were found", n)
	}
}

// Every example says how it is run.
func TestEveryExampleHasAReadme(t *testing.T) {
	t.Parallel()
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !f.IsDir() || f.Name() == "exampletest" {
			continue
		}
		if _, err := os.Stat(filepath.Join(f.Name(), "README.md")); err != nil {
			t.Error(err)
		}
	}
}
