package draw

import (
	"fmt"
	"strings"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store/replays"
)

// batchReport is the JSON of a batch of replays.
type batchReport struct {
	ID      string              `json:"id"`
	Request launch.BatchRequest `json:"request"`
	// Total is the number of runs that matched, Replays the number that have a replay, Done how many of those have
	// ended.
	Total   int `json:"total"`
	Replays int `json:"replays"`
	Done    int `json:"done"`
	// Running, Refused (runs that cannot be replayed) and Paused are reported by the workflow of the batch.
	Running   int  `json:"running"`
	Refused   int  `json:"refused"`
	Paused    bool `json:"paused"`
	Cancelled bool `json:"cancelled"`
	Finished  bool `json:"finished"`
	// Failed counts replays that failed, Different those whose result differs from the record.
	Failed       int                  `json:"failed"`
	Different    int                  `json:"different"`
	Counts       []replays.Count      `json:"counts"`
	DifferentIDs []string             `json:"different_runs,omitempty"`
	Models       []wire.RunModelUsage `json:"models"`
	Cost         *wire.RunCost        `json:"cost"`
}

// BatchOf returns the JSON of a batch, with its cost by the given prices.
func BatchOf(b launch.Batch, prices map[string]config.Price) batchReport {
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

// BatchLine returns the progress of a batch as one line.
func BatchLine(b launch.Batch) string {
	r := BatchOf(b, nil)
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
func Batch(r batchReport) string {
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
