package draw

import (
	"fmt"
	"strings"

	"precis/internal/cli/term"
	"precis/internal/runreport"
	"precis/internal/service"
)

// BatchLine returns the progress of a batch as one line.
func BatchLine(r service.Batch) string {
	line := fmt.Sprintf("replaying %d of %s", r.Done, term.Plural(r.Total, "run"))
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

// Batch returns the result of a batch as text.
func Batch(r service.Batch) string {
	var b strings.Builder
	end := "done"
	if r.Cancelled {
		end = "cancelled"
	}
	fmt.Fprintf(&b, "batch %s: %s, %d of %s\n\n", r.ID, end, r.Done, term.Plural(r.Total, "run"))
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
		t.Row("not replayed", "", "", term.Count(r.Refused))
	}
	_ = t.Write(&b) // a strings.Builder never fails
	if len(r.Models) > 0 {
		b.WriteString("\n")
		var m term.Table
		m.Row("MODEL", "CALLS", "TOKENS IN", "TOKENS OUT")
		for _, u := range r.Models {
			m.Row(u.Model, term.Count(u.Calls), term.Count(int(u.Input)), term.Count(int(u.Output)))
		}
		_ = m.Write(&b)
		fmt.Fprintf(&b, "cost: %s\n", Cost(r.Cost, r.Models))
	}
	if r.Different > 0 {
		b.WriteString("\ndifferent: `precis show RUN` shows where, for each of these runs\n")
		for _, id := range r.DifferentIDs {
			b.WriteString("  " + id + "\n")
		}
	}
	return b.String()
}
