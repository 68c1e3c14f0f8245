package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that security.md names exists, so that `make hostile` runs what the page says.
func TestSecurityNamesItsTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^  `(\\.[^` ]*)` (`Test.*`)$").FindAllStringSubmatch(string(text), -1)
	if len(lines) < 30 {
		t.Fatalf("only %d lines of the page have tests", len(lines))
	}
	for _, line := range lines {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(line[1]), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(content)
		}
		for name := range strings.SplitSeq(strings.Trim(line[2], "`"), "`, `") {
			if !strings.Contains(code.String(), "func "+name+"(t *testing.T)") {
				t.Errorf("%s has no test %s", line[1], name)
			}
		}
	}
}
