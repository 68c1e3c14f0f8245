package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/term"
	"precis/internal/config"
)

// printOutcome reports the outcome for one conversation. n is the number of conversations in the file.
func (c *compaction) printOutcome(one compacted, n int) {
	r := one.Run
	head := string(r.Outcome)
	switch r.Outcome {
	case precis.OutcomeApplied:
		head = "compacted"
	case precis.OutcomeSkipped:
		head = "unchanged"
	}
	title := fmt.Sprintf("%-11s", head+":")
	if n > 1 {
		c.say("")
	}
	switch r.Outcome {
	case precis.OutcomeApplied:
		c.say("%s%s, %s tokens → %s, ≈%s tokens", title, term.Plural(one.MessagesBefore, "message"),
			term.Tokens(r.TokensBefore, r.Trigger.Estimated), term.Plural(one.MessagesAfter, "message"),
			term.Count(r.TokensAfter))
		if r.TokensAfter > r.TokensBefore {
			c.say("           it is larger than it was: there was too little to summarize")
		}
		c.say("summary:   %s", draw.WrittenBy(r))
		for _, line := range draw.WhyDigest(r, c.flags.summarizer) {
			c.say("           %s", line)
		}
		c.say("covered:   messages %d to %d; %s", r.Covers.From, r.Covers.To, keptWords(one))
		if omitted := draw.Omitted(r); omitted != "" {
			c.say("omitted:   %s", omitted)
		}
		if found := draw.Verification(r); found != "" {
			c.say("checked:   %s", found)
		}
	case precis.OutcomeSkipped:
		c.say("%s%s; the context is printed as it is", title, draw.Skipped(r.Reason))
	default:
		c.say("%s%s", title, draw.Failed(r))
		if hint := draw.Hint(r.ErrorKind); hint != "" {
			c.say("           %s", hint)
		}
	}
	c.say("run:       %s  %s", r.ID, c.runHint(r))
	if c.flags.keep {
		c.say("kept as:   conversation %s  (precis context %s)", one.ID, one.ID)
	}
	if c.flags.summary && one.Summary != "" {
		c.say("")
		c.say("%s", term.Printable(one.Summary))
	}
}

func (c *compaction) runHint(r wire.Run) string {
	if c.s.Ephemeral {
		return "(its record is deleted with the stack of this call; --keep, or a running stack, keeps it)"
	}
	return fmt.Sprintf("(precis show %s)", r.ID)
}

func keptWords(one compacted) string {
	kept := one.MessagesAfter - 1
	if kept <= 0 {
		return "nothing is kept verbatim"
	}
	return term.Plural(kept, "message") + " beside the summary"
}

func vendorNames(c config.Config) string {
	return strings.Join(slices.Sorted(maps.Keys(c.Vendors)), ", ")
}
