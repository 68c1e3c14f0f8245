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
	// childPatience is how long a run that an agent's workflow asks for is left to it. Should its workers be away for
	// longer, a dispatcher starts the run like any other, and the agent's workflow finds it running.
	childPatience = 30 * time.Second
	// maxAwaitDelay bounds the wait between two looks at a run that somebody else's workflow executes.
	maxAwaitDelay = 5 * time.Second
)

// AskForRun notes the run which a workflow executes as its child next: the settings of this moment are kept with it,
// and while it is unfinished no other one of the conversation begins. With a reply open it fails with kind conflict.
func (a *Activities) AskForRun(ctx context.Context, req precis.AskForRunRequest) (precis.AskForRunResult, error) {
	defer heartbeat(ctx)()
	ref := store.ConversationRef{Tenant: req.Tenant, ID: req.Conversation}
	run, attached, err := launch.Ask(ctx, a.Store, a.Config, ref, runs.Request{
		Full: req.Full, Trigger: json.RawMessage(`{"kind":"manual"}`), Hold: childPatience,
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

// AwaitRun gives a run when it has ended. Until then each attempt is one look, and its failure says when to look again:
// so waiting takes neither a worker's slot nor an event of the history.
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

// typeUnfinished is the application error type for "look again later".
const typeUnfinished = "unfinished"
