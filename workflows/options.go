package workflows

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis/internal/contract"
	"precis/pipeline"
)

// quick is for activities that read, compute and store: they wait for Postgres as long as it takes. Without a heartbeat
// for some seconds, the worker is taken for dead.
var quick = workflow.ActivityOptions{
	StartToCloseTimeout:    2 * time.Minute,
	ScheduleToCloseTimeout: 24 * time.Hour,
	HeartbeatTimeout:       5 * time.Second,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval:    500 * time.Millisecond,
		BackoffCoefficient: 2,
		MaximumInterval:    30 * time.Second,
		// The SDK would retry an oversize payload for ever.
		NonRetryableErrorTypes: []string{"payloadSizeError"},
	},
}

// modelCall is for the activity that calls a model, within what is left of the run's time. The activity has a
// deadline of its own for each attempt (worker.model_timeout_seconds), and its errors say whether and when to retry:
// it knows the vendor's Retry-After.
func modelCall(queue string, remaining time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    remaining,
		ScheduleToCloseTimeout: remaining,
		HeartbeatTimeout:       10 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        time.Second,
			BackoffCoefficient:     2,
			MaximumInterval:        time.Minute,
			NonRetryableErrorTypes: []string{"payloadSizeError"},
		},
	}
}

// execute runs the activity of that type, with a summary line for the Temporal UI.
func execute(ctx workflow.Context, options workflow.ActivityOptions, summary, activity string, request, result any,
) error {
	options.Summary = summary
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity, request).Get(ctx, result)
}

// budgetExceeded is the failure of a model call that was not made.
func budgetExceeded(message string) error {
	return pipeline.Errorf(pipeline.BudgetExceeded, "%s", message)
}

// kindOf gives the error kind of an error that an activity returned.
func kindOf(ctx workflow.Context, err error) pipeline.ErrorKind {
	var ours *pipeline.Error
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case temporal.IsCanceledError(err) || ctx.Err() != nil:
		return pipeline.Cancelled
	case errors.As(err, &ours):
		return ours.Kind
	case errors.As(err, &app):
		kind := pipeline.ErrorKind(app.Type())
		if kind == contract.KindDiverged || slices.Contains(pipeline.ErrorKinds, kind) {
			return kind
		}
		return pipeline.Internal
	case errors.As(err, &timeout):
		return pipeline.Timeout
	}
	return pipeline.Internal
}

// messageOf gives the activity's own message, without the words that Temporal puts around it.
func messageOf(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}
