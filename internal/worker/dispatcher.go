package worker

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"precis"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/outbox"
)

const (
	// dispatchInterval is how often the outbox is read. It costs one indexed query.
	dispatchInterval = 500 * time.Millisecond
	// dispatchBatch bounds a claim of the outbox.
	dispatchBatch = 100
	// dispatchLease is how long a claim lasts; after it, another dispatcher starts what this one claimed and did not.
	dispatchLease = 30 * time.Second
	// retryInterval is when the start of a run is tried again, for instance because an earlier run of the conversation
	// has not closed. After repeated failures it doubles up to maxRetryInterval.
	retryInterval    = time.Second
	maxRetryInterval = time.Minute
	// reviveInterval is how often runs are looked for that have shown no progress for silenceTimeout, because their
	// workflow was terminated. The longest a healthy run shows none is a model call.
	reviveInterval = time.Minute
	silenceTimeout = 30 * time.Minute
	// abandonedTimeout is when the content of a one-shot conversation is removed if its caller has not done so. A file
	// with many conversations is stored whole before the first of them is compacted, which may take hours.
	abandonedTimeout = 24 * time.Hour
	abandonedBatch   = 100
)

// dispatcher starts the workflows of the runs in the outbox. A run is written there in the transaction that requests
// it, so a crash loses nothing. Starting a run twice is harmless, since the workflow id is the conversation's.
type dispatcher struct {
	store  *store.Store
	client client.Client
	queue  string
	log    *slog.Logger
}

func (d dispatcher) run(ctx context.Context) {
	tick := time.NewTicker(dispatchInterval)
	defer tick.Stop()
	revive := time.NewTicker(reviveInterval)
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

// revive puts runs back into the outbox whose workflow was terminated, or whose Temporal server lost its data.
func (d dispatcher) revive(ctx context.Context) {
	n, err := d.store.Outbox.Revive(ctx, silenceTimeout)
	switch {
	case err != nil && ctx.Err() == nil:
		d.log.Warn("runs without progress could not be looked for: trying again", "error", err)
	case n > 0:
		d.log.Warn("runs without a running workflow are started again", "runs", n)
	}
}

// forget removes the content of one-shot conversations whose caller has died.
func (d dispatcher) forget(ctx context.Context) {
	n, err := d.store.Retention.ForgetAbandoned(ctx, abandonedTimeout, abandonedBatch)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("abandoned one-shot conversations could not be removed: trying again", "error", err)
	}
	if n > 0 {
		d.log.Info("the content of abandoned one-shot conversations was removed", "conversations", n)
	}
}

// batch starts the runs that are due and gives their number.
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
			Tenant: run.Tenant, Conversation: run.Conversation, Run: run.Run, Replay: run.Replay,
		},
		TaskQueue: d.queue, Trigger: run.Kind,
	})
	switch {
	case err == nil:
		return d.store.Outbox.MarkDispatched(ctx, run.ID)
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		// It is the workflow of this run, started by a caller who waits for it, or of an earlier run that drains.
		known, err := d.store.Runs.Get(ctx, ref)
		if err != nil {
			return err
		}
		if known.TemporalRunID != "" || known.Outcome != "" {
			return d.store.Outbox.MarkDispatched(ctx, run.ID)
		}
		return d.store.Outbox.Postpone(ctx, run.ID, retryInterval) // the workflow is busy with an earlier run
	case launch.StartRefused(err, run.Attempts):
		if e := launch.EndUnstarted(ctx, d.store, ref, err); e != nil {
			return e
		}
		d.log.Error("a run was ended as failed: Temporal refuses to start its workflow", "run", run.Run, "error", err)
		return d.store.Outbox.MarkDispatched(ctx, run.ID)
	default:
		wait := min(retryInterval<<min(run.Attempts, 6), maxRetryInterval)
		if e := d.store.Outbox.Postpone(ctx, run.ID, wait); e != nil {
			return e
		}
		return err
	}
}
