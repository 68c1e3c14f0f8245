package precis

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// Start starts the run's workflow and gives its Temporal run id. If a workflow of the conversation is running, be it
// this run's or an earlier one's that is about to end, temporal.IsWorkflowExecutionAlreadyStartedError holds for the
// error.
func Start(ctx context.Context, c client.Client, l Launch) (temporalRunID string, err error) {
	options := l.startOptions(enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err := c.ExecuteWorkflow(ctx, options, WorkflowType, l.Input)
	if err != nil {
		return "", fmt.Errorf("start workflow %s: %w", l.Input.WorkflowID(), err)
	}
	return run.GetRunID(), nil
}

// Wait starts the run's workflow unless it is running already, and gives the run's result when it has ended, in one
// round trip. If the context ends first, the run goes ahead, and the same call waits for it once more.
func Wait(ctx context.Context, c client.Client, l Launch) (Result, error) {
	start := c.NewWithStartWorkflowOperation(l.startOptions(enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING),
		WorkflowType, l.Input)
	handle, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID:     "wait-" + l.Input.Run,
			UpdateName:   WaitUpdate,
			Args:         []any{l.Input.Run},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return Result{}, fmt.Errorf("start and wait for workflow %s: %w", l.Input.WorkflowID(), err)
	}
	var result Result
	if err := handle.Get(ctx, &result); err != nil {
		return Result{}, fmt.Errorf("wait for workflow %s: %w", l.Input.WorkflowID(), err)
	}
	return result, nil
}

// Cancel asks the run's workflow to end and returns at once; Wait gives the result. temporalRunID is what Start gave.
// With "" Cancel ends whichever run of the conversation is running. The error is a *serviceerror.NotFound if the
// workflow has closed already.
func Cancel(ctx context.Context, c client.Client, in Input, temporalRunID string) error {
	if err := c.CancelWorkflow(ctx, in.WorkflowID(), temporalRunID); err != nil {
		return fmt.Errorf("cancel workflow %s: %w", in.WorkflowID(), err)
	}
	return nil
}
