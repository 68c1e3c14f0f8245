package term

import (
	"strings"
	"testing"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	var f Facts
	f.Add("run", "abc")
	f.Add("nothing", "")
	f.Add("conversation", strings.Repeat("word ", 30))
	f.Add("", "more")
	var b strings.Builder
	f.Write(&b, LineWidth)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 5 || lines[0] != "run           abc" || !strings.HasPrefix(lines[2], "              word") ||
		lines[4] != "              more" {
		t.Errorf("got\n%s", b.String())
	}
	for _, line := range lines {
		if len(line) > LineWidth {
			t.Errorf("%d chars: %s", len(line), line)
		}
	}
}
