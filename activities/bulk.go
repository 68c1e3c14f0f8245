package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"

	"precis/internal/conversation"
	"precis/internal/store"
)

// NextReplaysRequest asks for the next runs of a batch.
type NextReplaysRequest struct {
	Tenant string `json:"tenant"`
	Batch  string `json:"batch"`
	// Cursor is "" for the first page, and what came back for the next.
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit"`
}

// NextReplay is a replay that is to be executed.
type NextReplay struct {
	Run          string `json:"run"`
	Conversation string `json:"conversation"`
	// Replay is "recorded" or "live".
	Replay string `json:"replay"`
}

// NextReplaysResult is a page of a batch.
type NextReplaysResult struct {
	Replays []NextReplay `json:"replays,omitempty"`
	// Ended counts replays of the page that have ended before, Refused runs that cannot be repeated.
	Ended   int `json:"ended,omitempty"`
	Refused int `json:"refused,omitempty"`
	// Next is the cursor of the next page, "" after the last.
	Next string `json:"next,omitempty"`
}

// NextReplays makes the next replays of a batch. Asked again, it gives those that it has made: a run is repeated once
// in a batch, however often that is begun.
func (a *Activities) NextReplays(ctx context.Context, req NextReplaysRequest) (NextReplaysResult, error) {
	defer heartbeat(ctx)()
	out, err := a.nextReplays(ctx, req)
	return out, toTemporal(ctx, err, activity.GetInfo(ctx).Attempt)
}

func (a *Activities) nextReplays(ctx context.Context, req NextReplaysRequest) (NextReplaysResult, error) {
	var out NextReplaysResult
	batch, err := a.Store.Batches.Get(ctx, store.BatchRef{Tenant: req.Tenant, ID: req.Batch})
	if err != nil {
		return out, err
	}
	q, err := conversation.ReplayBatchRequestOf(batch)
	if err != nil {
		return out, err
	}
	list, next, err := a.Store.Replays.List(ctx, req.Tenant, q.Filter, req.Cursor, req.Limit)
	if err != nil {
		return out, err
	}
	out.Next = next
	for _, r := range list {
		run, _, err := conversation.AskReplay(ctx, a.Store, a.Config, r.Run, q.Replay)
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
				NextReplay{Run: run.Ref.ID, Conversation: run.Conversation, Replay: run.ReplayMode()})
		}
		activity.RecordHeartbeat(ctx)
	}
	return out, nil
}

// FinishReplaysRequest says that a batch has nothing more to do.
type FinishReplaysRequest struct {
	Tenant    string `json:"tenant"`
	Batch     string `json:"batch"`
	Cancelled bool   `json:"cancelled,omitempty"`
}

// FinishReplays closes a batch.
func (a *Activities) FinishReplays(ctx context.Context, req FinishReplaysRequest) error {
	defer heartbeat(ctx)()
	_, err := a.Store.Batches.Finish(ctx, store.BatchRef{Tenant: req.Tenant, ID: req.Batch}, req.Cancelled)
	return toTemporal(ctx, err, activity.GetInfo(ctx).Attempt)
}
