package docs

import (
	"os"
	"strings"
	"testing"

	"precis/pipeline/transcript"
)

// TestFormats keeps formats.md complete: one row for each format, with what is kept, what is not, and a command.
func TestFormats(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("formats.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		name, ok := strings.CutPrefix(cells[0], "`")
		if !ok || !strings.HasPrefix(line, "|") {
			continue
		}
		name, _, _ = strings.Cut(name, "`")
		if rows[name] != nil {
			t.Errorf("%s has two rows", name)
		}
		rows[name] = cells
	}
	for _, format := range transcript.Formats() {
		cells := rows[string(format)]
		switch {
		case cells == nil:
			t.Errorf("%s has no row", format)
		case len(cells) != 4 || cells[1] == "" || cells[2] == "":
			t.Errorf("%s: want four columns, have %q", format, cells)
		case !strings.HasPrefix(cells[3], "`precis compact "):
			t.Errorf("%s: %q is no example", format, cells[3])
		}
		delete(rows, string(format))
	}
	for name := range rows {
		t.Errorf("%s has a row and is no format", name)
	}
}
