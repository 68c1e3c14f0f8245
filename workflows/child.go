package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis/activities"
	"precis/pipeline"
)

const (
	// busyFor is how long a child waits for the conversation's workflow id, which an earlier run that has ended holds
	// until its workflow has closed.
	busyFor = time.Second
	// maxBusy bounds the number of those waits: after that a dispatcher starts the run, and the child waits for its
	// end.
	maxBusy = 5
)

// Child is a compaction that an agent's own workflow executes as its child.
type Child struct {
	// Tenant owns the conversation: that of the API key with which the agent appends, "default" where there are none.
	Tenant string
	// Conversation is its id, as the HTTP API has it.
	Conversation string
	// Full summarizes everything, what would stay verbatim too.
	Full bool
	// TaskQueue is that of precis's workers (worker.task_queue), TaskQueue by default.
	TaskQueue string
}

// Compact compacts a conversation as a child of the calling workflow and gives what became of it. The workers of precis
// execute the child; the caller's own need to know nothing of it, and both are in one Temporal namespace.
//
// It first has the run noted in precis's database, then executes CompactionWorkflow under the conversation's workflow
// id. While the conversation is being compacted already, whoever asked for it, it waits for the end of that run
// instead: there are never two at once. Every end that a run can have is a result, a failed and a cancelled one too.
// The error is for a run that could not be asked for, with its kind as an application error's type (bad_request:
// there is no such conversation; conflict: a reply is open, see the HTTP API), and for a caller that is cancelled
// meanwhile.
//
// Cancelling the caller cancels the run. A caller that ends without waiting, is terminated or continues as new leaves
// it running: what a model has been paid for is not thrown away, and the next context has the summary.
//
// What is asked for counts as by hand: it runs whatever the numbers. Give the conversation the setting
// trigger.auto=false, else precis starts compactions by itself as well, of which this waits for the one under way.
func Compact(ctx workflow.Context, c Child) (CompactionResult, error) {
	launch := Launch{
		Input:     CompactionInput{Tenant: c.Tenant, Conversation: c.Conversation},
		TaskQueue: c.TaskQueue, Trigger: string(pipeline.TriggerManual),
	}
	var a *activities.Activities
	var asked activities.AskResult
	onTheirs := quick
	onTheirs.TaskQueue = launch.queue()
	request := activities.AskRequest{Tenant: c.Tenant, Conversation: c.Conversation, Full: c.Full}
	if err := execute(ctx, onTheirs, "Ask for a compaction", a.AskForRun, request, &asked); err != nil {
		return CompactionResult{}, err
	}
	launch.Input.Run = asked.Run

	for busy := 0; ; busy++ {
		var result CompactionResult
		err := workflow.ExecuteChildWorkflow(launch.child(ctx), CompactionWorkflow, launch.Input).Get(ctx, &result)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return ended(ctx, launch.Input.Run, result, err)
		}
		if asked.Attached || busy == maxBusy {
			break
		}
		if err := workflow.Sleep(ctx, busyFor); err != nil {
			return CompactionResult{}, err
		}
	}
	var other activities.RunResult
	if err := execute(ctx, onTheirs, "Wait for the compaction under way", a.AwaitRun,
		activities.AwaitRequest{Tenant: c.Tenant, Run: asked.Run}, &other); err != nil {
		return CompactionResult{}, err
	}
	return CompactionResult{
		Run: asked.Run, Outcome: other.Outcome, Kind: other.Kind, Reason: other.Reason, Summarizer: other.Summarizer,
		Marker: other.Marker, TokensBefore: other.TokensBefore, TokensAfter: other.TokensAfter,
	}, nil
}

func (l Launch) child(ctx workflow.Context) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            l.Input.WorkflowID(),
		TaskQueue:             l.queue(),
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation:   true,
		TypedSearchAttributes: l.attributes(),
		Memo:                  l.memo(),
		StaticSummary:         l.summary(),
		StaticDetails:         l.details(),
		Priority:              l.priority(),
	})
}

// ended is what became of a child: a run that failed or was cancelled fails its workflow, and is an end like others.
func ended(ctx workflow.Context, run string, result CompactionResult, err error) (CompactionResult, error) {
	var app *temporal.ApplicationError
	switch {
	case err == nil || ctx.Err() != nil:
		return result, err
	case temporal.IsCanceledError(err):
		return CompactionResult{
			Run: run, Outcome: OutcomeCancelled, Kind: pipeline.Cancelled,
			Reason: "the run was cancelled",
		}, nil
	case errors.As(err, &app):
		return CompactionResult{Run: run, Outcome: OutcomeFailed, Kind: kindOf(ctx, err), Reason: app.Message()}, nil
	}
	return result, err
}
