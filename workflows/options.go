package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis/activities"
	"precis/pipeline"
)

// quick is for activities that read, compute and store: they wait for Postgres as long as it takes. The
// heartbeat tells within seconds that a worker died.
var quick = workflow.ActivityOptions{
	StartToCloseTimeout:    2 * time.Minute,
	ScheduleToCloseTimeout: 24 * time.Hour,
	HeartbeatTimeout:       5 * time.Second,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval:    500 * time.Millisecond,
		BackoffCoefficient: 2,
		MaximumInterval:    30 * time.Second,
		// An oversize payload is a fault of ours that no retry mends, and the SDK would retry it for ever.
		NonRetryableErrorTypes: []string{"payloadSizeError"},
	},
}

// model is for the activity that calls a model, within what is left of the run's time. One attempt's
// deadline is the activity's own (worker.model_timeout_seconds); which errors are retried, after how long
// and how often, is told by the activity's errors: it knows the vendor's Retry-After.
func model(queue string, remaining time.Duration) workflow.ActivityOptions {
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

// execute runs one activity with a summary line for the Temporal UI.
func execute(ctx workflow.Context, options workflow.ActivityOptions, summary string, activity, request,
	result any,
) error {
	options.Summary = summary
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity, request).Get(ctx, result)
}

// budgetExceeded is the failure of a call that was not made.
func budgetExceeded(message string) error {
	return pipeline.Errorf(pipeline.BudgetExceeded, "%s", message)
}

// kindOf reads the error kind out of what an activity returned.
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
		for _, k := range pipeline.ErrorKinds {
			if string(k) == app.Type() {
				return k
			}
		}
		if app.Type() == string(activities.KindDiverged) {
			return activities.KindDiverged
		}
		return pipeline.Internal
	case errors.As(err, &timeout):
		return pipeline.Timeout
	}
	return pipeline.Internal
}

// messageOf is the innermost message: the activity's own, without Temporal's frame around it.
func messageOf(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}
