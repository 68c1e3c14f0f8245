package cli

import (
	"context"
	"fmt"
	"time"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/contract"
	"precis/internal/store/runs"
)

// pollInterval is how often the progress line is updated from the record of a run.
const pollInterval = 250 * time.Millisecond

// waitFor waits until a run has ended and shows its progress. If the command is interrupted, it cancels the run.
func waitFor(ctx context.Context, a *app, s *session, p *term.Progress, run runs.Run, title string) (runs.Run, error) {
	began := time.Now()
	type end struct {
		run runs.Run
		err error
	}
	ended := make(chan end, 1)
	go func() {
		got, err := s.launcher().Wait(ctx, run)
		ended <- end{got, err}
	}()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	defer p.Clear()
	for {
		select {
		case e := <-ended:
			if ctx.Err() == nil || e.err == nil {
				return e.run, e.err
			}
			p.Clear()
			a.say("precis: interrupted; cancelling run %s (interrupt again to exit at once)", run.Ref.ID)
			got, err := s.launcher().Cancel(context.WithoutCancel(ctx), run)
			if err != nil {
				return got, err
			}
			a.say("precis: run %s ended %s", got.Ref.ID, got.Outcome)
			return got, fail.Silent(fail.ExitFailed)
		case <-tick.C:
			if !p.Terminal {
				continue
			}
			if now, err := s.store.Runs.Get(ctx, run.Ref); err == nil {
				p.Line("%s: %s · %s", title, doing(now), term.Took(time.Since(began)))
			}
		}
	}
}

// doing returns in a few words what a run is doing.
func doing(r runs.Run) string {
	if len(r.Attempts) == 0 {
		return "waiting for a worker"
	}
	s := r.Attempts[len(r.Attempts)-1]
	text := string(s.Stage)
	if s.Summarizer != "" {
		text += " by " + s.Summarizer
	}
	if s.Rung != "" && s.Rung != contract.RungFirst {
		text += " (" + string(s.Rung) + ")"
	}
	if s.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", s.Attempt)
	}
	if s.Outcome == contract.AttemptFailed && s.ErrorKind != "" {
		text += ": " + string(s.ErrorKind)
	}
	return text
}
