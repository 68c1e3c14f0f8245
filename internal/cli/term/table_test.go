package term

import (
	"bytes"
	"strings"
	"testing"
)

// Nothing of a foreign text can add a column, a line or an escape to a table.
func TestTable(t *testing.T) {
	t.Parallel()
	var table Table
	table.Row("A", "B", "C")
	table.Row("one\ttwo", "", "three\nfour\x1b[2J")
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = "A        B  C\none two  -  three four[2J\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	var wide Table
	wide.Row("RUN", "CONV", "OUTCOME", "TOKENS")
	wide.Row(strings.Repeat("r", 12), strings.Repeat("c", 60), "failed, input_tokens_exceeded", "61.2k→4.1k")
	wide.Row(strings.Repeat("r", 12), "kurz", strings.Repeat("長", 50), "-")
	wide.Fit(1, 2)
	var b strings.Builder
	if err := wide.Write(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > LineWidth {
			t.Errorf("%d chars: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), strings.Repeat("r", 12)) || !strings.Contains(b.String(), "61.2k→4.1k") {
		t.Errorf("a column that is not flexible was clipped:\n%s", b.String())
	}

	var narrow Table
	narrow.Row("A", "B")
	narrow.Row("one", "two")
	narrow.Fit(0, 1)
	if narrow.Rows[1][0] != "one" || narrow.Rows[1][1] != "two" {
		t.Errorf("what has room was clipped: %v", narrow.Rows)
	}
}
