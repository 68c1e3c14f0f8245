package docs

import (
	"os"
	"strings"
	"testing"

	"precis/pipeline"
)

// TestErrorKinds keeps errors.md complete: one section for each kind, in the order of the ladder, that says
// what precis does and what a person can do.
func TestErrorKinds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("errors.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")[1:]
	if len(sections) != len(pipeline.ErrorKinds) {
		t.Errorf("errors.md has %d sections, there are %d error kinds", len(sections), len(pipeline.ErrorKinds))
	}
	for i, kind := range pipeline.ErrorKinds {
		if i == len(sections) {
			break
		}
		title, body, _ := strings.Cut(sections[i], "\n")
		if title != string(kind) {
			t.Errorf("section %d is about %q, want %q", i+1, title, kind)
		}
		for _, part := range []string{"- **What precis does.** ", "- **What you can do.** "} {
			if strings.Count(body, part) != 1 {
				t.Errorf("section %s: want %q once", title, part)
			}
		}
	}
}
