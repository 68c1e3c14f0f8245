// Package launch asks for compactions by hand and waits for them: what the command line and the HTTP API share.
//
//	launch.go  ask, wait, cancel
//	replay.go  batches of replays
//	models.go  who writes the summary where nobody said
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
	"precis/internal/config"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

const (
	// lookAgain is how often a run's row is read when its workflow cannot be waited for: an earlier run of the
	// conversation is still closing.
	lookAgain = 250 * time.Millisecond
	// cancelPatience is how long a cancelled run has to end: a model call notices with its next heartbeat.
	cancelPatience = 20 * time.Second
)

// Launcher starts runs.
type Launcher struct {
	Store  *store.Store
	Client client.Client
	Config config.Config
}

// Ask is conversation.Ask.
func (l Launcher) Ask(ctx context.Context, ref store.ConversationRef,
	req runs.Request,
) (run runs.Run, attached bool, err error) {
	return conversation.Ask(ctx, l.Store, l.Config, ref, req)
}

// Wait starts the run's workflow, unless a dispatcher was faster, and waits until the run has ended. When the
// context ends first the run goes on.
func (l Launcher) Wait(ctx context.Context, run runs.Run) (runs.Run, error) {
	launch := precis.Launch{Input: run.Input(), TaskQueue: l.Config.Worker.TaskQueue, Trigger: run.Kind}
	for {
		_, waited := precis.Wait(ctx, l.Client, launch)
		// Whatever came back, the row tells what became of the run.
		now, err := l.Store.Runs.Get(ctx, run.Ref)
		switch {
		case ctx.Err() != nil:
			return run, ctx.Err()
		case err != nil:
			return run, err
		case now.Outcome != "":
			return now, nil
		case waited != nil && !passing(waited):
			return now, waited
		}
		// The conversation's workflow is an earlier run's that has not closed yet, or it ended before it could
		// close its row: the next look starts it anew.
		if err := sleep(ctx, lookAgain); err != nil {
			return now, err
		}
	}
}

// passing says whether waiting again may help.
func passing(err error) bool {
	var rejected *temporal.ApplicationError // by the workflow of another run
	var unavailable *serviceerror.Unavailable
	var deadline *serviceerror.DeadlineExceeded
	var gone *serviceerror.NotFound
	var precondition *serviceerror.FailedPrecondition
	var exhausted *serviceerror.ResourceExhausted
	var cancelled *temporal.CanceledError
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	return errors.As(err, &rejected) || errors.As(err, &unavailable) || errors.As(err, &deadline) ||
		errors.As(err, &gone) ||
		errors.As(err, &precondition) || errors.As(err, &exhausted) || errors.As(err, &cancelled) ||
		errors.As(err, &timeout)
}

// Cancel ends a run and gives it as it ended: cancelled, unless its marker was applied just before.
func (l Launcher) Cancel(ctx context.Context, run runs.Run) (runs.Run, error) {
	ctx, done := context.WithTimeout(ctx, cancelPatience)
	defer done()
	told := false
	for {
		now, err := l.Store.Runs.Get(ctx, run.Ref)
		if err != nil || now.Outcome != "" {
			return now, err
		}
		if !told {
			if err := l.cancelOnce(ctx, now); err != nil {
				return now, err
			}
			told = true
			continue
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return now, fmt.Errorf("run %s was told to stop and has not ended within %s: %w", run.Ref.ID,
				cancelPatience, err)
		}
	}
}

// cancelOnce cancels the run's workflow, or closes the run at once where no workflow works on it.
func (l Launcher) cancelOnce(ctx context.Context, run runs.Run) error {
	if run.TemporalRunID != "" {
		err := l.Client.CancelWorkflow(ctx, run.WorkflowID, run.TemporalRunID)
		if !errors.As(err, new(*serviceerror.NotFound)) {
			if err != nil {
				err = fmt.Errorf("cancel workflow %s: %w", run.WorkflowID, err)
			}
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

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
