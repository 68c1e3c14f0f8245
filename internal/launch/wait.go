package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"precis"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

const (
	// pollInterval is how often a run's row is read if its workflow cannot be waited for, because an earlier run of the
	// conversation is still closing.
	pollInterval = 250 * time.Millisecond
	// cancelTimeout is how long a cancelled run has to end: a model call notices with its next heartbeat.
	cancelTimeout = 20 * time.Second
	// cancelRequestTimeout is how long Temporal has to accept a cancellation.
	cancelRequestTimeout = 5 * time.Second
)

// Wait starts the run's workflow, unless a dispatcher has started it, and returns the run when it has ended. If the
// context ends first, the run continues.
func (l Launcher) Wait(ctx context.Context, run runs.Run) (runs.Run, error) {
	launch := precis.Launch{Input: run.Input(), TaskQueue: l.Config.Worker.TaskQueue, Trigger: run.Kind}
	if run, err := l.Store.Runs.Get(ctx, run.Ref); err != nil || run.Outcome != "" {
		return run, err // a run that has ended is not started again
	}
	for {
		_, waited := precis.Wait(ctx, l.Client, launch)
		// Whatever Temporal's answer is, the row has the outcome.
		now, err := l.Store.Runs.Get(ctx, run.Ref)
		switch {
		case ctx.Err() != nil:
			return run, ctx.Err()
		case err != nil:
			return run, err
		case now.Outcome != "":
			return now, nil
		case waited != nil && StartRefused(waited, 1):
			if err := EndUnstarted(ctx, l.Store, run.Ref, waited); err != nil {
				return now, err
			}
			continue
		case waited != nil && !retryable(waited):
			return now, waited
		}
		// The conversation's workflow is that of an earlier run which has not closed, or this run's workflow ended
		// before it could close the row. The next iteration starts it.
		if err := sleep(ctx, pollInterval); err != nil {
			return now, err
		}
	}
}

// retryable reports whether waiting for the workflow once more may succeed.
func retryable(err error) bool {
	var rejected *temporal.ApplicationError // by the workflow of another run
	var unavailable *serviceerror.Unavailable
	var deadline *serviceerror.DeadlineExceeded
	var notFound *serviceerror.NotFound
	var precondition *serviceerror.FailedPrecondition
	var exhausted *serviceerror.ResourceExhausted
	var cancelled *temporal.CanceledError
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	return errors.As(err, &rejected) || errors.As(err, &unavailable) || errors.As(err, &deadline) ||
		errors.As(err, &notFound) || errors.As(err, &precondition) || errors.As(err, &exhausted) ||
		errors.As(err, &cancelled) || errors.As(err, &timeout)
}

// Cancel cancels a run and returns it when it has ended: as cancelled, unless its marker was applied just before. The
// error is ErrTemporalAway if Temporal did not answer: then nothing was cancelled.
func (l Launcher) Cancel(ctx context.Context, run runs.Run) (runs.Run, error) {
	ctx, done := context.WithTimeout(ctx, cancelTimeout)
	defer done()
	asked := false
	for {
		now, err := l.Store.Runs.Get(ctx, run.Ref)
		if err != nil || now.Outcome != "" {
			return now, err
		}
		if !asked {
			if err := l.cancelOnce(ctx, now); err != nil {
				return now, err
			}
			asked = true
			continue
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return now, fmt.Errorf("run %s was cancelled and has not ended within %s: %w", run.Ref.ID, cancelTimeout,
				err)
		}
	}
}

// cancelOnce cancels the run's workflow. If there is none, it closes the run.
func (l Launcher) cancelOnce(ctx context.Context, run runs.Run) error {
	if run.TemporalRunID != "" {
		request, done := context.WithTimeout(ctx, cancelRequestTimeout)
		err := precis.Cancel(request, l.Client, run.Input(), run.TemporalRunID)
		timedOut := request.Err() != nil && ctx.Err() == nil
		done()
		switch {
		case err != nil && (timedOut || Away(err)):
			return fmt.Errorf("cancel run %s: %w: %w", run.Ref.ID, ErrTemporalAway, err)
		case !errors.As(err, new(*serviceerror.NotFound)):
			return err
		}
	}
	end := runs.End{
		Outcome: precis.OutcomeCancelled, ErrorKind: pipeline.Cancelled,
		Reason: "the run was cancelled before it began",
	}
	if run.ReplayOf == "" {
		end.Event = &timeline.Event{Kind: timeline.Finished, Data: json.RawMessage(`{"outcome":"cancelled"}`)}
	}
	_, err := l.Store.Runs.Finish(ctx, run.Ref, end)
	return err
}
