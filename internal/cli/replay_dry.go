package cli

import (
	"context"

	"precis/internal/cli/draw"
	"precis/internal/cli/term"
	"precis/internal/service"
)

// dryReport is the JSON of `precis replay --dry-run`.
type dryReport struct {
	Runs []service.ReplayableRun `json:"runs"`
	// Total is the number of matching runs; Runs has the oldest of them.
	Total int `json:"total"`
}

// dryShown is the maximum number of runs that a dry run lists.
const dryShown = 50

// dryReplay lists the runs that a batch would replay.
func (a *app) dryReplay(ctx context.Context, s *session, filter service.ReplayFilter, f *replayFlags) error {
	var report dryReport
	var err error
	if report.Runs, report.Total, err = a.service(s).Replayable(ctx, a.tenant, filter, dryShown); err != nil {
		return err
	}
	var t term.Table
	t.Row("RUN", "ASKED FOR (UTC)", "CONV", "OUTCOME", "ERROR")
	for _, r := range report.Runs {
		outcome := string(r.Outcome)
		if r.Digest {
			outcome += " (digest)"
		}
		t.Row(draw.ShortRun(r.Run), term.When(r.Created), r.Conversation, outcome, string(r.ErrorKind))
	}
	if a.json {
		return a.printJSON(report)
	}
	if report.Total > 0 {
		t.Fit(2)
		if err := a.printRows(t); err != nil {
			return err
		}
	}
	if report.Total > len(report.Runs) {
		a.say("precis: only the oldest %d are shown", len(report.Runs))
	}
	how := "from their record"
	if f.Live {
		how = "with the models called again"
	}
	if f.Apply {
		how += ", and the summaries would take effect"
	}
	a.say("precis: %s would be replayed, %s", term.Plural(report.Total, "run"), how)
	return nil
}
