package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"precis/internal/conversation"
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

// AskRequest asks for a run that the caller's workflow executes as its child. It holds no text of the conversation, as
// nothing does that passes through Temporal.
type AskRequest struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Full         bool   `json:"full,omitempty"`
}

// AskResult names the run. Attached says that it is one that was unfinished already, of whoever asked first.
type AskResult struct {
	Run      string `json:"run"`
	Attached bool   `json:"attached,omitempty"`
}

// AskForRun notes the run which a workflow executes as its child next: the settings of this moment are kept with it,
// and while it is unfinished no other one of the conversation begins. With a reply open it fails with kind conflict.
func (a *Activities) AskForRun(ctx context.Context, req AskRequest) (AskResult, error) {
	defer heartbeat(ctx)()
	ref := store.ConversationRef{Tenant: req.Tenant, ID: req.Conversation}
	run, attached, err := conversation.Ask(ctx, a.Store, a.Config, ref, runs.Request{
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
	return AskResult{Run: run.Ref.ID, Attached: attached}, toTemporal(ctx, err, activity.GetInfo(ctx).Attempt)
}

// AwaitRequest names a run that another workflow executes.
type AwaitRequest struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
}

// RunResult is how a run ended.
type RunResult struct {
	Outcome      string             `json:"outcome"`
	Kind         pipeline.ErrorKind `json:"error_kind,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	Summarizer   string             `json:"summarizer,omitempty"`
	Marker       string             `json:"marker,omitempty"`
	TokensBefore int                `json:"tokens_before,omitempty"`
	TokensAfter  int                `json:"tokens_after,omitempty"`
}

// AwaitRun gives a run when it has ended. Until then each attempt is one look, and its failure says when to look again:
// so waiting takes neither a worker's slot nor an event of the history.
func (a *Activities) AwaitRun(ctx context.Context, req AwaitRequest) (RunResult, error) {
	defer heartbeat(ctx)()
	attempt := activity.GetInfo(ctx).Attempt
	run, err := a.Store.Runs.Get(ctx, store.RunRef{Tenant: req.Tenant, ID: req.Run})
	if err != nil {
		return RunResult{}, toTemporal(ctx, err, attempt)
	}
	if run.Outcome == "" {
		return RunResult{}, temporal.NewApplicationErrorWithOptions("the run has not ended", typeUnfinished,
			temporal.ApplicationErrorOptions{
				NextRetryDelay: min(time.Duration(attempt)*time.Second/2, maxAwaitDelay),
				Category:       temporal.ApplicationErrorCategoryBenign,
			})
	}
	return RunResult{
		Outcome: string(run.Outcome), Kind: run.ErrorKind, Reason: run.Reason, Summarizer: run.Facts.Summarizer,
		Marker: run.Marker, TokensBefore: run.Facts.TokensBefore, TokensAfter: run.Facts.TokensAfter,
	}, nil
}

// typeUnfinished is the application error type for "look again later".
const typeUnfinished = "unfinished"
