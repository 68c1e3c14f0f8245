package draw

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
)

// drawSides shows the two runs of a live replay side by side.
func drawSides(c *wire.RunComparison) string {
	var b strings.Builder
	var t term.Table
	t.Row("", "ORIGINAL", "REPLAY")
	row := func(name string, of func(s *wire.RunSide) string) {
		was, is := of(c.Original), of(c.Replay)
		if was != "" || is != "" {
			t.Row(name, was, is)
		}
	}
	row("outcome", func(s *wire.RunSide) string {
		return strings.TrimSpace(string(s.Outcome) + " " +
			string(s.ErrorKind))
	})
	row("summary by", func(s *wire.RunSide) string { return s.Summarizer })
	row("prompt", func(s *wire.RunSide) string { return strings.TrimSpace(s.Prompt.Name + " " + s.Prompt.Version) })
	row("covers", func(s *wire.RunSide) string {
		if s.Covers.To == 0 {
			return ""
		}
		return fmt.Sprintf("%d to %d", s.Covers.From, s.Covers.To)
	})
	row("context, tokens", func(s *wire.RunSide) string {
		if s.TokensAfter == 0 {
			return ""
		}
		return term.Count(s.TokensBefore) + " → ≈" + term.Count(s.TokensAfter)
	})
	row("summary, tokens", func(s *wire.RunSide) string { return countOrNone(s.SummaryTokens) })
	row("model calls", func(s *wire.RunSide) string { return fmt.Sprint(s.Usage.Calls) })
	row("tokens in", func(s *wire.RunSide) string { return countOrNone(int(s.Usage.Input)) })
	row("tokens out", func(s *wire.RunSide) string { return countOrNone(int(s.Usage.Output)) })
	row("cost", func(s *wire.RunSide) string {
		if s.Cost == nil || s.Usage.Calls == 0 {
			return ""
		}
		return CostCell(s.Cost)
	})
	row("took", func(s *wire.RunSide) string { return term.Took(time.Duration(s.MS) * time.Millisecond) })
	for _, v := range []struct{ name, key string }{
		{"rules missing", "constraints_missing"},
		{"names unknown", "unsupported_identifiers"},
		{"misattributed", "misattributed"},
	} {
		row(v.name, func(s *wire.RunSide) string { return figure(s.Verification, v.key) })
	}
	_ = t.Write(&b) // a strings.Builder never fails
	drawSections(&b, c)
	drawFacts(&b, "only in the original", c.OnlyOriginal)
	drawFacts(&b, "only in the replay", c.OnlyReplay)
	if c.Both > 0 {
		fmt.Fprintf(&b, "\nin both: %s\n", term.Plural(c.Both, "fact"))
	}
	return b.String()
}

func countOrNone(n int) string {
	if n == 0 {
		return ""
	}
	return term.Count(n)
}

// figure returns one figure of a verification, "" for a run that has none.
func figure(raw json.RawMessage, key string) string {
	var all map[string]int
	if json.Unmarshal(raw, &all) != nil {
		return ""
	}
	n, ok := all[key]
	if !ok {
		return ""
	}
	return fmt.Sprint(n)
}

// drawSections lists the sections of both summaries, those with the same title in one row.
func drawSections(b *strings.Builder, c *wire.RunComparison) {
	if len(c.Original.Sections)+len(c.Replay.Sections) == 0 {
		return
	}
	var t term.Table
	t.Row("SECTION", "ORIGINAL, CHARS", "REPLAY, CHARS")
	title := func(s string) string {
		if s == "" {
			return "(without a heading)"
		}
		return term.Printable(s)
	}
	rest := append(c.Replay.Sections[:0:0], c.Replay.Sections...)
	for _, s := range c.Original.Sections {
		other := ""
		for i, r := range rest {
			if strings.EqualFold(r.Title, s.Title) {
				other = term.Count(r.Chars)
				rest = append(rest[:i:i], rest[i+1:]...)
				break
			}
		}
		t.Row(title(s.Title), term.Count(s.Chars), other)
	}
	for _, r := range rest {
		t.Row(title(r.Title), "", term.Count(r.Chars))
	}
	t.Fit(0)
	b.WriteString("\n")
	_ = t.Write(b)
}

// factsShown is the maximum number of listed facts that only one of the summaries contains.
const factsShown = 20

func drawFacts(b *strings.Builder, title string, list []wire.RunFact) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s: %s\n", title, term.Plural(len(list), "fact"))
	var t term.Table
	for _, f := range list[:min(len(list), factsShown)] {
		t.Row(string(f.Kind), fmt.Sprintf("message %d", f.Message), term.Printable(term.OneLine(f.Text)))
	}
	t.Fit(2)
	_ = t.Write(b)
	if n := len(list) - factsShown; n > 0 {
		fmt.Fprintf(b, "and %d more (--json)\n", n)
	}
}
