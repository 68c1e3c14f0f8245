package precis

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis/pipeline"
)

const (
	// busyInterval is how long Compact waits before it tries again to start a child under the conversation's workflow
	// id. An earlier run that has ended holds the id until its workflow has closed.
	busyInterval = time.Second
	// maxBusy bounds those tries. After it a dispatcher of precis starts the run, and Compact waits for its end.
	maxBusy = 5
)

// Request is what a workflow asks Compact for.
type Request struct {
	// Tenant owns the conversation: the tenant of the API key with which the agent appends messages, "default" where
	// there are no keys.
	Tenant string
	// Conversation is its id in the HTTP API.
	Conversation string
	// Full also summarizes the last messages, which would otherwise stay verbatim.
	Full bool
	// TaskQueue is the queue of precis's workers (worker.task_queue). Defaults to TaskQueue.
	TaskQueue string
}

// AskForRunRequest is the argument of the activity AskForRun.
type AskForRunRequest struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Full         bool   `json:"full,omitempty"`
}

// AskForRunResult names the run to execute.
type AskForRunResult struct {
	Run string `json:"run"`
	// Attached is set if the run was asked for earlier and has not ended.
	Attached bool `json:"attached,omitempty"`
}

// AwaitRunRequest names a run that another workflow executes.
type AwaitRunRequest struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
}

// Compact compacts a conversation as a child of the calling workflow and gives the run's result. Precis's workers
// execute the child; they and the caller share a Temporal namespace.
//
// Compact records the run in precis's database, then executes the child under the conversation's workflow id. If the
// conversation is being compacted already, Compact waits for the end of that run instead: there are never two at the
// same time.
//
// A run that fails or is cancelled is a Result, not an error. An error means that the run could not be asked for, or
// that the caller was cancelled. The type of its application error is the error kind: bad_request if there is no such
// conversation, conflict if a reply is open (see the HTTP API).
//
// Cancelling the caller cancels the run. A caller that ends without waiting, is terminated or continues as new leaves
// it running: what a model has been paid for is not thrown away, and the next context has the summary.
//
// The run counts as asked for by hand: it runs whatever the numbers. Give the conversation the setting
// trigger.auto=false; otherwise precis also starts compactions automatically, and Compact waits for one that is
// running.
func Compact(ctx workflow.Context, r Request) (Result, error) {
	l := Launch{
		Input:     Input{Tenant: r.Tenant, Conversation: r.Conversation},
		TaskQueue: r.TaskQueue, Trigger: pipeline.TriggerManual,
	}
	var asked AskForRunResult
	request := AskForRunRequest{Tenant: r.Tenant, Conversation: r.Conversation, Full: r.Full}
	if err := l.execute(ctx, "Ask for a compaction", AskForRunActivity, request, &asked); err != nil {
		return Result{}, err
	}
	l.Input.Run = asked.Run

	for busy := 0; ; busy++ {
		var result Result
		child := workflow.WithChildOptions(ctx, l.ChildOptions())
		err := workflow.ExecuteChildWorkflow(child, WorkflowType, l.Input).Get(ctx, &result)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return ended(ctx, l.Input.Run, result, err)
		}
		if asked.Attached || busy == maxBusy {
			break
		}
		if err := workflow.Sleep(ctx, busyInterval); err != nil {
			return Result{}, err
		}
	}
	var result Result
	err := l.execute(ctx, "Wait for the compaction that is running", AwaitRunActivity,
		AwaitRunRequest{Tenant: r.Tenant, Run: asked.Run}, &result)
	if err != nil {
		return Result{}, err
	}
	result.Run = asked.Run // a worker of an earlier release does not name it
	return result, nil
}

// execute runs an activity of precis's workers that reads and writes the database, and waits for the database as long
// as it takes.
func (l Launch) execute(ctx workflow.Context, summary, activity string, request, result any) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              l.queue(),
		StartToCloseTimeout:    2 * time.Minute,
		ScheduleToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout:       5 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 500 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
			// The SDK would retry an oversize payload for ever.
			NonRetryableErrorTypes: []string{"payloadSizeError"},
		},
		Summary: summary,
	})
	return workflow.ExecuteActivity(ctx, activity, request).Get(ctx, result)
}

// ended gives the result of a child that has closed. A run that failed or was cancelled fails its workflow; here it is
// a result like any other.
func ended(ctx workflow.Context, run string, result Result, err error) (Result, error) {
	var app *temporal.ApplicationError
	switch {
	case err == nil || ctx.Err() != nil:
		return result, err
	case temporal.IsCanceledError(err):
		return Result{
			Run: run, Outcome: OutcomeCancelled, Kind: pipeline.Cancelled, Reason: "the run was cancelled",
		}, nil
	case errors.As(err, &app):
		kind := pipeline.ErrorKind(app.Type())
		if !slices.Contains(pipeline.ErrorKinds, kind) {
			kind = pipeline.Internal
		}
		return Result{Run: run, Outcome: OutcomeFailed, Kind: kind, Reason: app.Message()}, nil
	}
	return result, err
}
