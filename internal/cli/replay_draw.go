package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store/replays"
)

// drawReplay is a replay for a person.
func drawReplay(r wire.Run) string {
	var b strings.Builder
	var head term.Facts
	head.Add("replay", fmt.Sprintf("%s of run %s", r.ID, r.ReplayOf))
	c := r.Comparison
	switch {
	case c == nil:
		head.Add("result", replayEnd(r))
	case !c.Live:
		drawRecorded(&head, r)
	default:
		head.Add("result", replayEnd(r))
		head.Add("changes", changeWords(c.Changes))
	}
	head.Write(&b, term.LineWidth)
	if c != nil && c.Live {
		b.WriteString("\n" + drawSides(c))
	}
	return b.String()
}

// replayEnd is how a live replay ended, or one that did not come to its end.
func replayEnd(r wire.Run) string {
	switch {
	case r.Outcome == precis.OutcomeReplayed:
		return "compared, not applied"
	case r.Outcome == precis.OutcomePrepared:
		return "prepared: a reply is being generated, it takes effect after it"
	case r.Reason != "":
		return fmt.Sprintf("%s: %s", r.Outcome, r.Reason)
	}
	return string(r.Outcome)
}

func drawRecorded(head *term.Facts, r wire.Run) {
	c := r.Comparison
	if c.First == nil && !c.Identical {
		head.Add("result", replayEnd(r))
		return
	}
	done := fmt.Sprintf("%s done again, %s read from the record, no model called", term.Plural(c.Steps, "step"),
		term.Plural(c.Answers, "answer"))
	if c.Identical {
		head.Add("result", "identical: "+done)
	} else {
		d := c.First
		where := fmt.Sprintf("%s in stage %s (step %d", whatDiffers(d), d.Stage, d.Call)
		if d.Summarizer != "" {
			where += ", " + d.Summarizer
		}
		if d.Rung != "" && d.Rung != string(contract.RungFirst) {
			where += ", " + d.Rung
		}
		head.Add("result", "different: "+where+")")
		head.Add("recorded", term.Printable(d.Recorded))
		head.Add("replayed", term.Printable(d.Replayed))
		if c.Differences > 1 {
			head.Add("differences", fmt.Sprintf("%d in all; this is the first", c.Differences))
		}
		head.Add("done", done)
	}
	if x := c.Context; x != nil {
		same := "another one"
		if x.Identical {
			same = "identical"
		}
		if x.SHA256 == "" {
			head.Add("context", "the replay wrote none")
			return
		}
		head.Add("context", fmt.Sprintf("%s, %s bytes, sha256 %s", same, term.Count(x.Bytes), x.SHA256))
	}
}

// whatDiffers names what of a step differs.
func whatDiffers(d *wire.RunDifference) string {
	what := d.What
	if name, figure := strings.CutPrefix(what, "result."); figure {
		what = name
	}
	switch {
	case d.Message > 0:
		what += fmt.Sprintf(", message %d, byte %d,", d.Message, d.At)
	case d.At > 0:
		what += fmt.Sprintf(", byte %d,", d.At)
	}
	return what
}

func changeWords(c *wire.RunChanges) string {
	if c == nil {
		return "none"
	}
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"summarizer", c.Summarizer},
		{"prompt", c.Prompt},
		{"focus", term.Printable(c.Focus)},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	if c.MaxChars > 0 {
		parts = append(parts, "at most "+term.Count(c.MaxChars)+" chars of input")
	}
	return strings.Join(parts, ", ")
}

// drawSides puts the two runs of a live replay side by side.
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
		return costCell(s.Cost)
	})
	row("took", func(s *wire.RunSide) string { return term.Took(time.Duration(s.MS) * time.Millisecond) })
	for _, v := range []struct{ name, key string }{
		{"rules missing", "constraints_missing"},
		{"names unknown", "unsupported_identifiers"},
		{"misattributed", "misattributed"},
	} {
		row(v.name, func(s *wire.RunSide) string { return figure(s.Verification, v.key) })
	}
	_ = t.Write(&b) // a builder takes everything
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

// figure is one figure of a verification, "" for a run that has none.
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

// factsShown is how many facts are listed that one summary alone holds.
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

// batchReport is the JSON of a batch of replays.
type batchReport struct {
	ID      string              `json:"id"`
	Request launch.BatchRequest `json:"request"`
	// Total is how many runs matched; Replays how many have a replay, Done how many of those have ended.
	Total   int `json:"total"`
	Replays int `json:"replays"`
	Done    int `json:"done"`
	// Running, Refused (runs that cannot be repeated) and Paused are what its workflow says.
	Running   int  `json:"running"`
	Refused   int  `json:"refused"`
	Paused    bool `json:"paused"`
	Cancelled bool `json:"cancelled"`
	Finished  bool `json:"finished"`
	// Failed counts replays that failed, Different those whose record came out otherwise.
	Failed       int                  `json:"failed"`
	Different    int                  `json:"different"`
	Counts       []replays.Count      `json:"counts"`
	DifferentIDs []string             `json:"different_runs,omitempty"`
	Models       []wire.RunModelUsage `json:"models"`
	Cost         *wire.RunCost        `json:"cost"`
}

func batchOf(b launch.Batch, prices map[string]config.Price) batchReport {
	out := batchReport{
		ID: b.Ref.ID, Request: b.Request, Total: b.Total, Cancelled: b.Cancelled, Finished: !b.Finished.IsZero(),
		Counts: b.Totals.Counts, DifferentIDs: b.Totals.Different, Models: runreport.ModelsOf(b.Totals.Models),
	}
	out.Replays, out.Done = b.Totals.Runs()
	if p := b.Progress; p != nil {
		out.Running, out.Refused, out.Paused = p.Running, p.Refused, p.Paused
	} else if out.Finished && !out.Cancelled {
		out.Refused = max(out.Total-out.Replays, 0)
	}
	for _, c := range out.Counts {
		if c.Outcome == precis.OutcomeFailed {
			out.Failed += c.Runs
		}
		if c.Identical != nil && !*c.Identical {
			out.Different += c.Runs
		}
	}
	out.Cost = runreport.CostOf(out.Models, prices)
	return out
}

// batchLine is how far a batch is, in a line.
func batchLine(b launch.Batch) string {
	r := batchOf(b, nil)
	line := fmt.Sprintf("repeating %d of %s", r.Done, term.Plural(r.Total, "run"))
	if r.Running > 0 {
		line += fmt.Sprintf(", %d under way", r.Running)
	}
	if r.Failed > 0 {
		line += fmt.Sprintf(", %d failed", r.Failed)
	}
	if r.Different > 0 {
		line += fmt.Sprintf(", %d different", r.Different)
	}
	if r.Paused {
		line += ", paused"
	}
	return line
}

func drawBatch(r batchReport) string {
	var b strings.Builder
	end := "done"
	if r.Cancelled {
		end = "cancelled"
	}
	fmt.Fprintf(&b, "repetition %s: %s, %d of %s\n\n", r.ID, end, r.Done, term.Plural(r.Total, "run"))
	var t term.Table
	t.Row("OUTCOME", "ERROR", "RECORD", "RUNS")
	for _, c := range r.Counts {
		outcome, record := string(c.Outcome), ""
		if outcome == "" {
			outcome = runreport.Unfinished
		}
		if c.Identical != nil {
			record = "different"
			if *c.Identical {
				record = "identical"
			}
		}
		t.Row(outcome, string(c.ErrorKind), record, term.Count(c.Runs))
	}
	if r.Refused > 0 {
		t.Row("not repeated", "", "", term.Count(r.Refused))
	}
	_ = t.Write(&b) // a builder takes everything
	if len(r.Models) > 0 {
		b.WriteString("\n")
		var m term.Table
		m.Row("MODEL", "CALLS", "TOKENS IN", "TOKENS OUT")
		for _, u := range r.Models {
			m.Row(u.Model, term.Count(u.Calls), term.Count(int(u.Input)), term.Count(int(u.Output)))
		}
		_ = m.Write(&b)
		fmt.Fprintf(&b, "cost: %s\n", costWords(r.Cost, r.Models))
	}
	if r.Different > 0 {
		b.WriteString("\ndifferent: `precis show RUN` and the JSON of these tell where\n")
		for _, id := range r.DifferentIDs {
			b.WriteString("  " + id + "\n")
		}
	}
	return b.String()
}
