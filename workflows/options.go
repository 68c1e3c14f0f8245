package workflows

import (
	"errors"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
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
		InitialInterval:        500 * time.Millisecond,
		BackoffCoefficient:     2,
		MaximumInterval:        30 * time.Second,
		NonRetryableErrorTypes: notRetried,
	},
}

// typePanic is the type that the SDK gives to the error of an activity that panicked.
const typePanic = "PanicError"

// notRetried are the failures that Temporal does not retry. The SDK would retry an oversize payload for ever. An
// attempt that panicked, took too long, or whose worker died is one of contract.MaxTries, which execute counts; other
// failures say themselves whether they are retried, and one of them is retried for as long as it takes: the database is
// away.
var notRetried = []string{"payloadSizeError", typePanic, "TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat"}

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
			NonRetryableErrorTypes: notRetried,
		},
	}
}

// execute runs the activity of that type, with a summary line for the Temporal UI. An activity that panics, takes too
// long or takes its worker down is tried contract.MaxTries times; then the error is a *poisonedError. request may be a
// pointer to what has a contract.Ref, in which the tries are noted.
func execute(ctx workflow.Context, options workflow.ActivityOptions, summary, activity string, request, result any,
) error {
	options.Summary = summary
	began := workflow.Now(ctx)
	startToClose, scheduleToClose := options.StartToCloseTimeout, options.ScheduleToCloseTimeout
	for tries := 1; ; tries++ {
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity, request).Get(ctx, result)
		left := scheduleToClose - workflow.Now(ctx).Sub(began)
		if !ranOut(err) || ctx.Err() != nil || left <= 0 || !changed(ctx, changeBoundedTries) {
			return err
		}
		if tries == contract.MaxTries {
			return &poisonedError{err: pipeline.Errorf(pipeline.Internal, "it was tried %d times, and each time it "+
				"panicked, took too long or took its worker down; its input is kept", tries)}
		}
		if r, ok := request.(interface{ CountTry() }); ok {
			r.CountTry()
		}
		options.ScheduleToCloseTimeout, options.StartToCloseTimeout = left, min(startToClose, left)
	}
}

// poisonedError is the failure of an activity that no worker can finish.
type poisonedError struct{ err *pipeline.Error }

func (e *poisonedError) Error() string { return e.err.Error() }

// Unwrap returns the error with its kind.
func (e *poisonedError) Unwrap() error { return e.err }

// ranOut reports whether an attempt at an activity did not end as it should: it panicked, took too long, or its worker
// died.
func ranOut(err error) bool {
	if errors.As(err, new(*temporal.PanicError)) {
		return true
	}
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) {
		return false
	}
	switch timeout.TimeoutType() {
	case enumspb.TIMEOUT_TYPE_START_TO_CLOSE, enumspb.TIMEOUT_TYPE_HEARTBEAT:
		return true
	}
	return false
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
	var ours *pipeline.Error
	if errors.As(err, &ours) {
		return ours.Message
	}
	return err.Error()
}
