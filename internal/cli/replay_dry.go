package cli

import (
	"context"
	"time"

	"precis"
	"precis/internal/cli/draw"
	"precis/internal/cli/term"
	"precis/internal/store/replays"
	"precis/pipeline"
)

// dryReport is the JSON of `precis replay --dry-run`.
type dryReport struct {
	Runs []dryRun `json:"runs"`
	// Total is the number of matching runs; Runs has the oldest of them.
	Total int `json:"total"`
}

type dryRun struct {
	Run          string             `json:"run"`
	Conversation string             `json:"conversation"`
	Outcome      precis.Outcome     `json:"outcome"`
	ErrorKind    pipeline.ErrorKind `json:"error_kind"`
	Digest       bool               `json:"digest"`
	Created      time.Time          `json:"created"`
}

// dryShown is the maximum number of runs that a dry run lists.
const dryShown = 50

// dryReplay lists the runs that a batch would replay. It works on the store, like the batches themselves, which are not
// part of the service.
func (a *app) dryReplay(ctx context.Context, s *session, filter replays.Filter, f *replayFlags) error {
	report := dryReport{Runs: []dryRun{}}
	var err error
	if report.Total, err = s.store.Replays.Count(ctx, a.tenant, filter); err != nil {
		return err
	}
	list, _, err := s.store.Replays.List(ctx, a.tenant, filter, "", dryShown)
	if err != nil {
		return err
	}
	var t term.Table
	t.Row("RUN", "ASKED FOR (UTC)", "CONV", "OUTCOME", "ERROR")
	for _, r := range list {
		report.Runs = append(report.Runs,
			dryRun{r.Run.ID, r.Conversation, r.Outcome, r.ErrorKind, r.Digest, r.Created.UTC()})
		outcome := string(r.Outcome)
		if r.Digest {
			outcome += " (digest)"
		}
		t.Row(draw.ShortRun(r.Run.ID), term.When(r.Created), r.Conversation, outcome, string(r.ErrorKind))
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
	if report.Total > len(list) {
		a.say("precis: only the oldest %d are shown", len(list))
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
