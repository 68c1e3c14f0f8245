package cli

import (
	"strings"
	"testing"

	"precis/internal/api/wire"
)

func TestShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0", 987: "987", 1000: "1.0k", 61_204: "61.2k", 99_949: "99.9k", 99_950: "100k", 999_499: "999k",
		999_500: "1.0M", 1_440_000: "1.4M", 99_949_999: "99.9M", 123_400_000: "123M",
	} {
		if got := short(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	var wide table
	wide.row("RUN", "CONV", "OUTCOME", "TOKENS")
	wide.row(strings.Repeat("r", 12), strings.Repeat("c", 60), "failed, input_tokens_exceeded", "61.2k→4.1k")
	wide.row(strings.Repeat("r", 12), "kurz", strings.Repeat("長", 50), "-")
	wide.fit(1, 2)
	var b strings.Builder
	if err := wide.write(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > lineWidth {
			t.Errorf("%d chars: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), strings.Repeat("r", 12)) || !strings.Contains(b.String(), "61.2k→4.1k") {
		t.Errorf("a column that is not flexible was clipped:\n%s", b.String())
	}

	var narrow table
	narrow.row("A", "B")
	narrow.row("one", "two")
	narrow.fit(0, 1)
	if narrow.rows[1][0] != "one" || narrow.rows[1][1] != "two" {
		t.Errorf("what has room was clipped: %v", narrow.rows)
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	var f facts
	f.add("run", "abc")
	f.add("nothing", "")
	f.add("conversation", strings.Repeat("word ", 30))
	f.add("", "more")
	var b strings.Builder
	f.write(&b, lineWidth)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 5 || lines[0] != "run           abc" || !strings.HasPrefix(lines[2], "              word") ||
		lines[4] != "              more" {
		t.Errorf("got\n%s", b.String())
	}
	for _, line := range lines {
		if len(line) > lineWidth {
			t.Errorf("%d chars: %s", len(line), line)
		}
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	models := []wire.RunModelUsage{{Model: "a/x"}, {Model: "b/y"}}
	for _, tt := range []struct {
		cost        *wire.RunCost
		cell, words string
	}{
		{&wire.RunCost{}, "$0", "$0"},
		{&wire.RunCost{USD: 0.00001}, "<$0.0001", "<$0.0001"},
		{&wire.RunCost{USD: 0.01234}, "$0.01", "$0.0123"},
		{&wire.RunCost{USD: 12.345}, "$12.35", "$12.35"},
		{
			&wire.RunCost{USD: 1.5, NoPriceFor: []string{"b/y"}}, "$1.50+",
			"$1.50, and no price for b/y (configure prices.b/y)",
		},
		{nil, "", "no price for a/x, b/y (configure prices.a/x)"},
	} {
		if got := costCell(tt.cost); got != tt.cell {
			t.Errorf("%+v: cell %q, want %q", tt.cost, got, tt.cell)
		}
		if got := costWords(tt.cost, models); got != tt.words {
			t.Errorf("%+v: words %q, want %q", tt.cost, got, tt.words)
		}
	}
}
