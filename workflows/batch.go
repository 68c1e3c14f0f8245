package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/contract"
)

const (
	// batchPage is how many runs a page has.
	batchPage = 10
	// replaysPerExecution bounds the replays of an execution, and with them its history: each is about ten events.
	replaysPerExecution = 40
)

// batch is the state of an execution.
type batch struct {
	in contract.BatchInput
	contract.BatchProgress
	started int
}

// BatchReplayWorkflow executes a batch of replays: each is a child, a limited number of them at the same time, page by
// page until the batch's filter gives no more runs. Pausing it starts no more replays; cancelling it cancels those that
// are running too. If it is terminated, another start continues it: a run is replayed once in a batch.
func BatchReplayWorkflow(ctx workflow.Context, in contract.BatchInput) (contract.BatchProgress, error) {
	b := &batch{in: in, BatchProgress: in.Progress}
	if err := b.setHandlers(ctx); err != nil {
		return b.BatchProgress, err
	}

	more, err := b.walk(ctx)
	// Running replays end, or are cancelled with the batch, before it closes.
	drain, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if e := workflow.Await(drain, func() bool {
		return b.Running == 0 && workflow.AllHandlersFinished(ctx)
	}); e != nil {
		return b.BatchProgress, e
	}
	if more && err == nil && ctx.Err() == nil {
		in.Progress = b.BatchProgress
		in.Cursor = b.in.Cursor
		return b.BatchProgress, workflow.NewContinueAsNewError(ctx, contract.BatchWorkflowType, in)
	}
	finish := contract.FinishReplaysRequest{Tenant: in.Tenant, Batch: in.Batch, Cancelled: ctx.Err() != nil}
	if err == nil || ctx.Err() != nil {
		if e := execute(drain, quick, "Close the batch", contract.FinishReplaysActivity, finish, nil); e != nil {
			return b.BatchProgress, e
		}
	}
	if ctx.Err() != nil {
		return b.BatchProgress, temporal.NewCanceledError()
	}
	return b.BatchProgress, err
}

// setHandlers sets the handlers by which the batch is followed, paused and resumed.
func (b *batch) setHandlers(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, contract.BatchProgressQuery,
		func() (contract.BatchProgress, error) { return b.BatchProgress, nil }); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandler(ctx, contract.BatchPauseUpdate, b.setPaused(true)); err != nil {
		return err
	}
	return workflow.SetUpdateHandler(ctx, contract.BatchResumeUpdate, b.setPaused(false))
}

func (b *batch) setPaused(paused bool) func(workflow.Context) (contract.BatchProgress, error) {
	return func(workflow.Context) (contract.BatchProgress, error) {
		b.Paused = paused
		return b.BatchProgress, nil
	}
}

// walk goes through the pages. It reports true if another execution has to continue at the cursor.
func (b *batch) walk(ctx workflow.Context) (more bool, err error) {
	for {
		if err := workflow.Await(ctx, func() bool { return !b.Paused }); err != nil {
			return false, err
		}
		var page contract.NextReplaysResult
		request := contract.NextReplaysRequest{
			Tenant: b.in.Tenant, Batch: b.in.Batch, Cursor: b.in.Cursor, Limit: batchPage,
		}
		if err := execute(ctx, quick, "Which runs are next?", contract.NextReplaysActivity, request,
			&page); err != nil {
			return false, err
		}
		b.Done += page.Ended
		b.Refused += page.Refused
		for _, r := range page.Replays {
			if err := workflow.Await(ctx, func() bool {
				return b.Running < b.in.Concurrency && !b.Paused
			}); err != nil {
				return false, err
			}
			b.Running++
			b.started++
			workflow.Go(ctx, func(ctx workflow.Context) {
				b.replay(ctx, r)
				b.Running--
				b.Done++
			})
		}
		b.in.Cursor = page.Next
		if page.Next == "" {
			return false, nil
		}
		if b.started >= replaysPerExecution {
			return true, nil
		}
	}
}

// replay executes one replay. Its row in the database says how it ended; a failure is an end like any other.
func (b *batch) replay(ctx workflow.Context, r contract.NextReplay) {
	launch := precis.Launch{
		Input: precis.Input{
			Tenant: b.in.Tenant, Conversation: r.Conversation, Run: r.Run, Replay: r.Replay,
		},
		TaskQueue: workflow.GetInfo(ctx).TaskQueueName, Trigger: contract.TriggerReplay,
	}
	child := workflow.WithChildOptions(ctx, launch.ChildOptions())
	err := workflow.ExecuteChildWorkflow(child, precis.WorkflowType, launch.Input).Get(ctx, nil)
	if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return
	}
	// An execution of the batch that was terminated started it, and left it running.
	if err := execute(ctx, quick, "Wait for a replay that is running", precis.AwaitRunActivity,
		precis.AwaitRunRequest{Tenant: b.in.Tenant, Run: r.Run}, &precis.Result{}); err != nil {
		workflow.GetLogger(ctx).Warn("the batch did not wait for the end of a replay", "run", r.Run, "error", err)
	}
}
