package cli

import (
	"context"
	"fmt"
	"time"

	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

// steer follows, pauses, resumes or cancels a batch.
func (a *app) steer(ctx context.Context, s *session, id, what string) error {
	svc := a.service(s)
	ref := service.BatchRef{Tenant: a.tenant, ID: id}
	b, err := svc.GetBatch(ctx, ref)
	switch {
	case service.CodeOf(err) == service.CodeNotFound:
		return fmt.Errorf("there is no batch %q", id)
	case err != nil:
		return err
	case what != "follow" && b.Finished:
		return fmt.Errorf("batch %s has ended already", id)
	}
	switch what {
	case "follow":
		if err := svc.ContinueBatch(ctx, ref); err != nil {
			return err
		}
		return a.followBatch(ctx, s, b)
	case "cancel":
		if err := svc.CancelBatch(ctx, ref); err != nil {
			return err
		}
		a.say("precis: batch %s is cancelled, with its running replays", id)
	case "pause":
		done, running, err := svc.PauseBatch(ctx, ref)
		if err != nil {
			return err
		}
		a.say("precis: batch %s is paused: %d ended, %d running will still end; `precis replay "+
			"--resume %s` resumes it", id, done, running, id)
	case "resume":
		if err := svc.ResumeBatch(ctx, ref); err != nil {
			return err
		}
		a.say("precis: batch %s is resumed", id)
	}
	if b, err = svc.GetBatch(ctx, ref); err == nil && a.json {
		return a.printJSON(b)
	}
	return err
}

// followBatch shows the progress of a batch until it ends. If the command is interrupted, the batch keeps running.
func (a *app) followBatch(ctx context.Context, s *session, b service.Batch) error {
	p := a.progress()
	defer p.Clear()
	if !a.json && !b.Finished {
		a.say("precis: batch %s of %s", b.ID, term.Plural(b.Total, "run"))
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	began := time.Now()
	for {
		now, err := a.service(s).GetBatch(ctx, service.BatchRef{Tenant: a.tenant, ID: b.ID})
		if err == nil && now.Finished {
			p.Clear()
			return a.reportBatch(now)
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
				b.ID)
			return fail.Silent(fail.ExitFailed)
		case <-tick.C:
		}
	}
}

func (a *app) reportBatch(report service.Batch) error {
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
