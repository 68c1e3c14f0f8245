package cli

import (
	"context"
	"fmt"
	"time"

	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/contract"
	"precis/internal/service"
)

// pollInterval is how often the progress line of a batch is updated.
const pollInterval = 250 * time.Millisecond

// follower shows the progress of a run after a title, and says so when the run is cancelled because the command was
// interrupted.
func (a *app) follower(p *term.Progress, title string) service.Follower {
	began := time.Now()
	f := service.Follower{Cancelling: func(run string) {
		p.Clear()
		a.say("precis: interrupted; cancelling run %s (interrupt again to exit at once)", run)
	}}
	if p.Terminal {
		f.Progress = func(now wire.Run) { p.Line("%s: %s · %s", title, doing(now), term.Took(time.Since(began))) }
	}
	return f
}

// interrupted returns the error of a wait for a run. If the command was interrupted and the run has ended, it says how.
func (a *app) interrupted(ctx context.Context, run wire.Run, err error) error {
	if ctx.Err() == nil || run.Outcome == "" {
		return err
	}
	a.say("precis: run %s ended %s", run.ID, run.Outcome)
	return fail.Silent(fail.ExitFailed)
}

// doing returns in a few words what a run is doing.
func doing(r wire.Run) string {
	if len(r.Steps) == 0 {
		return "waiting for a worker"
	}
	s := r.Steps[len(r.Steps)-1]
	text := s.Stage
	if s.Summarizer != "" {
		text += " by " + s.Summarizer
	}
	if s.Rung != "" && s.Rung != string(contract.RungFirst) {
		text += " (" + s.Rung + ")"
	}
	if s.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", s.Attempt)
	}
	if s.Outcome == contract.AttemptFailed && s.ErrorKind != "" {
		text += ": " + string(s.ErrorKind)
	}
	return text
}
