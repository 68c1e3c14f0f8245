package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis/activities"
)

// The names by which a batch of replays is followed and steered.
const (
	// BulkProgressQuery gives a BulkProgress.
	BulkProgressQuery = "progress"
	// BulkPauseUpdate and BulkResumeUpdate give one too: of the moment from which nothing new begins, or begins again.
	BulkPauseUpdate  = "pause"
	BulkResumeUpdate = "resume"
)

const (
	// bulkPage is how many replays are asked for at once.
	bulkPage = 10
	// bulkPerExecution bounds the replays of one execution, and with them its history: each takes some ten events.
	bulkPerExecution = 40
	// MaxBulkConcurrency bounds how many replays of a batch go on at once.
	MaxBulkConcurrency = 64
)

// BulkReplayInput is a batch, and how far it is.
type BulkReplayInput struct {
	Tenant      string `json:"tenant"`
	Batch       string `json:"batch"`
	Concurrency int    `json:"concurrency"`
	// What follows is carried from one execution to the next.
	Cursor   string       `json:"cursor,omitempty"`
	Progress BulkProgress `json:"progress,omitzero"`
}

// BulkProgress is how far a batch is. What became of each replay is in the store.
type BulkProgress struct {
	// Done counts replays that have ended, Running those under way, Refused runs that cannot be repeated.
	Done    int  `json:"done"`
	Running int  `json:"running"`
	Refused int  `json:"refused"`
	Paused  bool `json:"paused"`
}

// bulk is the state of one execution.
type bulk struct {
	in BulkReplayInput
	BulkProgress
	begun int
}

// BulkReplayWorkflow works a batch of replays off: each is a child, so many at once, page by page, until no run is
// left that the batch's filter picks. It can be paused, which lets those under way end, and cancelled, which does
// not. Killed or started again it goes on: a run is repeated once in a batch.
func BulkReplayWorkflow(ctx workflow.Context, in BulkReplayInput) (BulkProgress, error) {
	b := &bulk{in: in, BulkProgress: in.Progress}
	if err := workflow.SetQueryHandler(ctx, BulkProgressQuery,
		func() (BulkProgress, error) { return b.BulkProgress, nil }); err != nil {
		return b.BulkProgress, err
	}
	set := func(paused bool) func(workflow.Context) (BulkProgress, error) {
		return func(workflow.Context) (BulkProgress, error) {
			b.Paused = paused
			return b.BulkProgress, nil
		}
	}
	if err := workflow.SetUpdateHandler(ctx, BulkPauseUpdate, set(true)); err != nil {
		return b.BulkProgress, err
	}
	if err := workflow.SetUpdateHandler(ctx, BulkResumeUpdate, set(false)); err != nil {
		return b.BulkProgress, err
	}

	goesOn, err := b.walk(ctx)
	// Those under way end, or are cancelled with this one: nothing is left behind.
	drain, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if e := workflow.Await(drain, func() bool {
		return b.Running == 0 &&
			workflow.AllHandlersFinished(ctx)
	}); e != nil {
		return b.BulkProgress, e
	}
	if goesOn && err == nil && ctx.Err() == nil {
		in.Progress = b.BulkProgress
		in.Cursor = b.in.Cursor
		return b.BulkProgress, workflow.NewContinueAsNewError(ctx, BulkReplayWorkflow, in)
	}
	var a *activities.Activities
	finish := activities.FinishReplaysRequest{Tenant: in.Tenant, Batch: in.Batch, Cancelled: ctx.Err() != nil}
	if err == nil || ctx.Err() != nil {
		if e := execute(drain, quick, "Close the batch", a.FinishReplays, finish, nil); e != nil {
			return b.BulkProgress, e
		}
	}
	if ctx.Err() != nil {
		return b.BulkProgress, temporal.NewCanceledError()
	}
	return b.BulkProgress, err
}

// walk goes through the pages. goesOn says that another execution is to go on from the cursor.
func (b *bulk) walk(ctx workflow.Context) (goesOn bool, err error) {
	var a *activities.Activities
	for {
		if err := workflow.Await(ctx, func() bool { return !b.Paused }); err != nil {
			return false, err
		}
		var page activities.NextReplaysResult
		request := activities.NextReplaysRequest{
			Tenant: b.in.Tenant, Batch: b.in.Batch, Cursor: b.in.Cursor,
			Limit: bulkPage,
		}
		if err := execute(ctx, quick, "Which runs are next?", a.NextReplays, request, &page); err != nil {
			return false, err
		}
		b.Done += page.Ended
		b.Refused += page.Refused
		for _, r := range page.Replays {
			if err := workflow.Await(ctx, func() bool {
				return b.Running < b.in.Concurrency &&
					!b.Paused
			}); err != nil {
				return false, err
			}
			b.Running++
			b.begun++
			workflow.Go(ctx, func(ctx workflow.Context) {
				b.repeat(ctx, r)
				b.Running--
				b.Done++
			})
		}
		b.in.Cursor = page.Next
		if page.Next == "" {
			return false, nil
		}
		if b.begun >= bulkPerExecution {
			return true, nil
		}
	}
}

// repeat executes one replay. How it ends is in the store; one that fails is an end like any other.
func (b *bulk) repeat(ctx workflow.Context, r activities.NextReplay) {
	launch := Launch{
		Input: CompactionInput{
			Tenant: b.in.Tenant, Conversation: r.Conversation, Run: r.Run,
			Replay: ReplayMode(r.Replay),
		},
		TaskQueue: workflow.GetInfo(ctx).TaskQueueName, Trigger: "replay",
	}
	err := workflow.ExecuteChildWorkflow(launch.child(ctx), CompactionWorkflow, launch.Input).Get(ctx, nil)
	if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return
	}
	// An earlier execution of the batch began it, and was terminated: it goes on by itself.
	var a *activities.Activities
	var ended activities.RunResult
	if err := execute(ctx, quick, "Wait for a replay that goes on by itself", a.AwaitRun,
		activities.AwaitRequest{Tenant: b.in.Tenant, Run: r.Run}, &ended); err != nil {
		workflow.GetLogger(ctx).Warn("a replay was not waited for", "run", r.Run, "error", err)
	}
}
