package draw

import (
	"fmt"
	"strings"
	"time"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/service"
)

// Report returns the report on a run as text: a line per check, and below it what is wrong.
func Report(r wire.AuditReport) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s of conversation %s: %s\n", r.Run, term.Printable(r.Conversation), verdict(r))
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "  %-9s  %-8s  %s\n", c.Name, c.State, c.Detail)
		for i, f := range c.Faults {
			if i == 0 && service.CheckFailed(c) && len(c.Faults) == 1 {
				break // the line of the check says the same
			}
			place := f.Table + " " + f.Key
			if f.Column != "" {
				place += ", " + f.Column
			}
			fmt.Fprintf(&b, "             %-8s  %s: %s\n", f.State, place, f.Detail)
		}
	}
	return b.String()
}

func verdict(r wire.AuditReport) string {
	switch {
	case !r.OK:
		return "NOT as it was written"
	case r.Pruned:
		return "as it was written, as far as it was not pruned"
	}
	return "as it was written"
}

// Swept returns the result of a verification of many conversations as text.
func Swept(s service.Swept) string {
	var b strings.Builder
	for _, f := range s.Failures {
		what := "conversation " + term.Printable(f.Conversation)
		if f.Run != "" {
			what = "run " + f.Run + " of " + what
		}
		fmt.Fprintf(&b, "%-8s  %s (tenant %s), %s: %s\n", f.State, what, term.Printable(f.Tenant), f.Check, f.Detail)
	}
	for _, d := range s.DeletedConversations {
		fmt.Fprintf(&b, "%-8s  conversation %s (tenant %s): deleted on %s, %s; its tombstone is sealed\n", "deleted",
			term.Printable(d.Conversation), term.Printable(d.Tenant), d.At.Format(time.DateOnly),
			term.Plural(int(d.Messages), "message"))
	}
	fmt.Fprintf(&b, "%s, %s: %s messages, events, records and texts compared",
		term.Plural(s.Conversations, "conversation"),
		term.Plural(s.Runs, "run"), term.Count(s.Checked))
	if s.Resumed > 0 {
		fmt.Fprintf(&b, " (%s by an earlier call)", term.Plural(s.Resumed, "conversation"))
	}
	fmt.Fprintf(&b, "\n%s not as written, %s pruned\n", term.Plural(s.Failed, "conversation"),
		term.Count(s.Pruned)+" things")
	return b.String()
}
