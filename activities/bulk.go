package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"

	"precis/internal/contract"
	"precis/internal/launch"
	"precis/internal/store"
)

// NextReplays creates the next replays of a batch. A retry returns the ones that exist: a batch replays a run once,
// however often it is started.
func (a *Activities) NextReplays(ctx context.Context,
	req contract.NextReplaysRequest,
) (contract.NextReplaysResult, error) {
	defer heartbeat(ctx)()
	out, err := a.nextReplays(ctx, req)
	return out, toTemporal(ctx, err, activity.GetInfo(ctx).Attempt)
}

func (a *Activities) nextReplays(ctx context.Context,
	req contract.NextReplaysRequest,
) (contract.NextReplaysResult, error) {
	var out contract.NextReplaysResult
	batch, err := a.Store.Batches.Get(ctx, store.BatchRef{Tenant: req.Tenant, ID: req.Batch})
	if err != nil {
		return out, err
	}
	q, err := launch.BatchRequestOf(batch)
	if err != nil {
		return out, err
	}
	list, next, err := a.Store.Replays.List(ctx, req.Tenant, q.Filter, req.Cursor, req.Limit)
	if err != nil {
		return out, err
	}
	out.Next = next
	for _, r := range list {
		run, _, err := launch.AskReplay(ctx, a.Store, a.Config, r.Run, q.Replay)
		switch {
		case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrNotFound):
			out.Refused++
			a.Log.Warn("a run of a batch cannot be repeated", "batch", req.Batch, "run", r.Run.ID, "error", err)
		case err != nil:
			return out, err
		case run.Outcome != "":
			out.Ended++
		default:
			out.Replays = append(out.Replays,
				contract.NextReplay{Run: run.Ref.ID, Conversation: run.Conversation, Replay: run.ReplayMode()})
		}
		activity.RecordHeartbeat(ctx)
	}
	return out, nil
}

// FinishReplays closes a batch.
func (a *Activities) FinishReplays(ctx context.Context, req contract.FinishReplaysRequest) error {
	defer heartbeat(ctx)()
	_, err := a.Store.Batches.Finish(ctx, store.BatchRef{Tenant: req.Tenant, ID: req.Batch}, req.Cancelled)
	return toTemporal(ctx, err, activity.GetInfo(ctx).Attempt)
}
