package draw

import (
	"fmt"
	"strings"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/contract"
)

// Replay returns a replay as text.
func Replay(r wire.Run) string {
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

// replayEnd returns how a replay ended that was live or did not finish.
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
		same := "different"
		if x.Identical {
			same = "identical"
		}
		if x.SHA256 == "" {
			head.Add("context", "the replay produced none")
			return
		}
		head.Add("context", fmt.Sprintf("%s, %s bytes, sha256 %s", same, term.Count(x.Bytes), x.SHA256))
	}
}

// whatDiffers returns the part of a step that differs, and where.
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
