package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/replays"
)

// steer follows, pauses, resumes or cancels a batch. Batches are not part of the HTTP API, so that it uses the
// launcher.
func (a *app) steer(ctx context.Context, s *session, id, what string) error {
	l := s.launcher()
	b, err := l.Batch(ctx, store.BatchRef{Tenant: a.tenant, ID: id})
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no batch %q", id)
	}
	if err != nil {
		return err
	}
	if what != "follow" && !b.Finished.IsZero() {
		return fmt.Errorf("batch %s has ended already", id)
	}
	switch what {
	case "follow":
		if err := l.ContinueBatch(ctx, b.Batch); err != nil {
			return err
		}
		return a.followBatch(ctx, s, b.Batch)
	case "cancel":
		if err := l.CancelBatch(ctx, b.Batch); err != nil {
			return err
		}
		a.say("precis: batch %s is cancelled, with its running replays", id)
	default:
		p, err := l.PauseBatch(ctx, b.Batch, what == "pause")
		if err != nil {
			return err
		}
		if what == "pause" {
			a.say("precis: batch %s is paused: %d ended, %d running will still end; `precis replay "+
				"--resume %s` resumes it", id, p.Done, p.Running, id)
		} else {
			a.say("precis: batch %s is resumed", id)
		}
	}
	if b, err = l.Batch(ctx, b.Ref); err == nil && a.json {
		return a.printJSON(draw.BatchOf(b, s.config.Prices))
	}
	return err
}

// followBatch shows the progress of a batch until it ends. If the command is interrupted, the batch keeps running.
func (a *app) followBatch(ctx context.Context, s *session, b replays.Batch) error {
	p := a.progress()
	defer p.Clear()
	if !a.json && b.Finished.IsZero() {
		a.say("precis: batch %s of %s", b.Ref.ID, term.Plural(b.Total, "run"))
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	began := time.Now()
	for {
		now, err := s.launcher().Batch(ctx, b.Ref)
		if err == nil && !now.Finished.IsZero() {
			p.Clear()
			return a.reportBatch(now, s)
		}
		if ctx.Err() == nil && err != nil {
			return err
		}
		p.Line("%s · %s", draw.BatchLine(now), term.Took(time.Since(began)))
		select {
		case <-ctx.Done():
			p.Clear()
			a.say("precis: interrupted; the batch keeps running without this command")
			a.say("        precis replay --follow %s   shows its progress; --pause, --resume and --cancel control it",
				b.Ref.ID)
			return fail.Silent(fail.ExitFailed)
		case <-tick.C:
		}
	}
}

func (a *app) reportBatch(b launch.Batch, s *session) error {
	report := draw.BatchOf(b, s.config.Prices)
	if a.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else if err := a.print(draw.Batch(report)); err != nil {
		return err
	}
	if report.Cancelled || report.Different > 0 || report.Failed > 0 {
		return fail.Silent(fail.ExitFailed)
	}
	return nil
}
