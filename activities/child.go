package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"precis"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

const (
	// childHold is how long a run is reserved for the workflow that requested it. If that workflow does not start the
	// run in time, a dispatcher starts it like any other, and the workflow finds it running.
	childHold = 30 * time.Second
	// maxAwaitDelay bounds the interval at which AwaitRun checks a run.
	maxAwaitDelay = 5 * time.Second
)

// AskForRun creates the run that a workflow executes as its child next, with the settings of this moment. While it is
// unfinished, no other run of the conversation begins. While a reply is open, it fails with kind conflict.
func (a *Activities) AskForRun(ctx context.Context, req precis.AskForRunRequest) (precis.AskForRunResult, error) {
	defer heartbeat(ctx)()
	ref := store.ConversationRef{Tenant: req.Tenant, ID: req.Conversation}
	run, attached, err := launch.Ask(ctx, a.Store, a.Config, ref, runs.Request{
		Full: req.Full, Trigger: json.RawMessage(`{"kind":"manual"}`), Hold: childHold,
	})
	switch {
	case errors.Is(err, store.ErrReplyOpen):
		err = &pipeline.Error{
			Kind:    pipeline.Conflict,
			Message: "the agent's model is generating: end the reply before the compaction", Cause: err,
		}
	case errors.Is(err, store.ErrContentDeleted): // it is an ErrNotFound too
		err = &pipeline.Error{
			Kind: pipeline.BadRequest, Message: "the conversation's content has been deleted",
			Cause: err,
		}
	case errors.Is(err, store.ErrNotFound):
		err = &pipeline.Error{
			Kind:    pipeline.BadRequest,
			Message: fmt.Sprintf("tenant %s has no conversation %q", req.Tenant, req.Conversation), Cause: err,
		}
	}
	return precis.AskForRunResult{Run: run.Ref.ID, Attached: attached},
		toTemporal(ctx, err, activity.GetInfo(ctx).Attempt)
}

// AwaitRun returns a run's result once it has ended. Until then each attempt checks once and fails with the delay until
// the next one, so that waiting takes neither a worker's slot nor an event of the history.
func (a *Activities) AwaitRun(ctx context.Context, req precis.AwaitRunRequest) (precis.Result, error) {
	defer heartbeat(ctx)()
	attempt := activity.GetInfo(ctx).Attempt
	run, err := a.Store.Runs.Get(ctx, store.RunRef{Tenant: req.Tenant, ID: req.Run})
	if err != nil {
		return precis.Result{}, toTemporal(ctx, err, attempt)
	}
	if run.Outcome == "" {
		return precis.Result{}, temporal.NewApplicationErrorWithOptions("the run has not ended", typeUnfinished,
			temporal.ApplicationErrorOptions{
				NextRetryDelay: min(time.Duration(attempt)*time.Second/2, maxAwaitDelay),
				Category:       temporal.ApplicationErrorCategoryBenign,
			})
	}
	return precis.Result{
		Outcome: run.Outcome, Kind: run.ErrorKind, Reason: run.Reason, Summarizer: run.Facts.Summarizer,
		Marker: run.Marker, TokensBefore: run.Facts.TokensBefore, TokensAfter: run.Facts.TokensAfter,
	}, nil
}

// typeUnfinished is the application error type of a check that found the run unfinished.
const typeUnfinished = "unfinished"
