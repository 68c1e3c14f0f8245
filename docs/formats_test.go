package docs

import (
	"os"
	"strings"
	"testing"

	"precis/pipeline/transcript"
)

// TestFormats keeps formats.md complete: every format has one section, which lists what is kept and what is not, and
// gives a command as an example.
func TestFormats(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("formats.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := formatSections(t, string(text))
	for _, format := range transcript.Formats() {
		section, ok := sections[string(format)]
		if !ok {
			t.Errorf("%s has no section", format)
			continue
		}
		for _, item := range []string{"\n- Kept: ", "\n- Not kept: ", "\n- Example: `precis compact "} {
			if strings.Count(section, item) != 1 {
				t.Errorf("the section of %s needs one list item that begins with %q:\n%s", format, item[1:], section)
			}
		}
		delete(sections, string(format))
	}
	for name := range sections {
		t.Errorf("the section %s does not describe a format", name)
	}
}

// formatSections returns the text below each heading of the form "### `NAME`", by NAME.
func formatSections(t *testing.T, text string) map[string]string {
	t.Helper()
	sections := map[string]string{}
	for part := range strings.SplitSeq(text, "\n#") {
		heading, body, _ := strings.Cut(part, "\n")
		name, ok := strings.CutPrefix(heading, "## `")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "`")
		if _, twice := sections[name]; twice {
			t.Errorf("%s has two sections", name)
		}
		sections[name] = "\n" + body
	}
	return sections
}
