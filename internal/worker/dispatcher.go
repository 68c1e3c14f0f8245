package worker

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"precis"
	"precis/internal/store"
	"precis/internal/store/outbox"
)

const (
	// dispatchEvery is how often the outbox is looked at. It costs one indexed query.
	dispatchEvery = 500 * time.Millisecond
	// dispatchBatch bounds one claim.
	dispatchBatch = 100
	// dispatchLease is after how long another dispatcher takes over what this one claimed and did not start.
	dispatchLease = 30 * time.Second
	// againAfter is when a run is tried again whose conversation's workflow is still busy with an earlier one.
	againAfter = time.Second
	// reviveEvery is how often runs are looked for whose workflow has gone without a word, after reviveSilence.
	// The longest silence of a run that lives is a model's answer.
	reviveEvery   = time.Minute
	reviveSilence = 30 * time.Minute
	// abandonedAfter is when the content of a one-shot conversation is removed that nobody has removed. A file with
	// many conversations is stored whole before the first of them is compacted, which may take hours.
	abandonedAfter = 24 * time.Hour
	abandonedBatch = 100
	// maxAgainAfter bounds the wait after repeated failures.
	maxAgainAfter = time.Minute
)

// dispatcher starts the workflows that the outbox asks for. A run is asked for in the transaction of what
// fired it, so a crash between the two loses nothing; starting one twice is harmless, since the workflow id
// is the conversation's.
type dispatcher struct {
	store  *store.Store
	client client.Client
	queue  string
	log    *slog.Logger
}

func (d dispatcher) run(ctx context.Context) {
	tick := time.NewTicker(dispatchEvery)
	defer tick.Stop()
	revive := time.NewTicker(reviveEvery)
	defer revive.Stop()
	for {
		for d.batch(ctx) == dispatchBatch {
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-revive.C:
			d.revive(ctx)
			d.forget(ctx)
		}
	}
}

// revive asks again for runs whose workflow was terminated, or whose Temporal server is gone with all it had.
func (d dispatcher) revive(ctx context.Context) {
	n, err := d.store.Outbox.Revive(ctx, reviveSilence)
	switch {
	case err != nil && ctx.Err() == nil:
		d.log.Warn("silent runs could not be looked for: trying again", "error", err)
	case n > 0:
		d.log.Warn("runs without a living workflow are started again", "runs", n)
	}
}

// forget removes what one-shot calls brought whose callers have died.
func (d dispatcher) forget(ctx context.Context) {
	n, err := d.store.Retention.ForgetAbandoned(ctx, abandonedAfter, abandonedBatch)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("abandoned one-shot conversations could not be removed: trying again", "error", err)
	}
	if n > 0 {
		d.log.Info("the content of abandoned one-shot conversations was removed", "conversations", n)
	}
}

// batch starts what is due and gives how many there were.
func (d dispatcher) batch(ctx context.Context) int {
	due, err := d.store.Outbox.Claim(ctx, dispatchBatch, dispatchLease)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("the outbox could not be read: trying again", "error", err)
		}
		return 0
	}
	for _, run := range due {
		if err := d.start(ctx, run); err != nil && ctx.Err() == nil {
			d.log.Warn("a run was not started: trying again", "run", run.Run, "attempt", run.Attempts, "error", err)
		}
	}
	return len(due)
}

func (d dispatcher) start(ctx context.Context, run outbox.Dispatch) error {
	ref := store.RunRef{Tenant: run.Tenant, ID: run.Run}
	_, err := precis.Start(run.WithTrace(ctx), d.client, precis.Launch{
		Input: precis.Input{
			Tenant: run.Tenant, Conversation: run.Conversation, Run: run.Run,
			Replay: run.Replay,
		},
		TaskQueue: d.queue,
		Trigger:   run.Kind,
	})
	switch {
	case err == nil:
		return d.store.Outbox.MarkDispatched(ctx, run.ID)
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		// Either this run's workflow, started by a caller who waits for it, or an earlier run's that drains.
		known, err := d.store.Runs.Get(ctx, ref)
		if err != nil {
			return err
		}
		if known.TemporalRunID != "" || known.Outcome != "" {
			return d.store.Outbox.MarkDispatched(ctx, run.ID)
		}
		return d.store.Outbox.Postpone(ctx, run.ID, againAfter) // the workflow is busy with an earlier run
	default:
		wait := min(againAfter<<min(run.Attempts, 6), maxAgainAfter)
		if e := d.store.Outbox.Postpone(ctx, run.ID, wait); e != nil {
			return e
		}
		return err
	}
}
