package workflows

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// Launch is what a workflow is started with beside its input.
type Launch struct {
	Input CompactionInput
	// TaskQueue is the queue of the workers, TaskQueue by default.
	TaskQueue string
	// Trigger is the kind of trigger, for the search attribute and the summary line.
	Trigger string
}

func (l Launch) queue() string {
	if l.TaskQueue == "" {
		return TaskQueue
	}
	return l.TaskQueue
}

func (l Launch) options(conflict enumspb.WorkflowIdConflictPolicy) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                       l.Input.WorkflowID(),
		TaskQueue:                l.queue(),
		WorkflowIDConflictPolicy: conflict,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes:    l.attributes(),
		Memo:                     l.memo(),
		StaticSummary:            l.summary(),
		StaticDetails:            l.details(),
		Priority:                 l.priority(),
	}
}

func (l Launch) attributes() temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		AttrTenant.ValueSet(l.Input.Tenant),
		AttrConversation.ValueSet(l.Input.Conversation),
		AttrTrigger.ValueSet(l.Trigger),
	)
}

func (l Launch) memo() map[string]any { return map[string]any{"run": l.Input.Run} }

func (l Launch) summary() string {
	return fmt.Sprintf("%s compaction of %s", l.Trigger, l.Input.Conversation)
}

func (l Launch) details() string {
	return fmt.Sprintf("Run `%s` of tenant `%s`. `precis show %s` draws its way down the ladder.", l.Input.Run,
		l.Input.Tenant, l.Input.Run)
}

// priority keeps one tenant's storm from starving another: the server shares a queue out by its key.
func (l Launch) priority() temporal.Priority {
	return temporal.Priority{FairnessKey: fairnessKey(l.Input.Tenant)}
}

// fairnessKey fits a tenant's id into the 64 bytes that Temporal allows.
func fairnessKey(tenant string) string { return tenant[:min(len(tenant), 64)] }

// Start starts the run's workflow. It returns an error for which temporal.IsWorkflowExecutionAlreadyStartedError
// holds when the conversation's workflow is running, be it this run's or an earlier one that is about to end.
func Start(ctx context.Context, c client.Client, l Launch) (temporalRunID string, err error) {
	options := l.options(enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err := c.ExecuteWorkflow(ctx, options, CompactionWorkflow, l.Input)
	if err != nil {
		return "", fmt.Errorf("start workflow %s: %w", l.Input.WorkflowID(), err)
	}
	return run.GetRunID(), nil
}

// Wait starts the run's workflow unless it is running already, and waits for its result, in one round trip.
// When the context ends first the work goes on: the same call attaches to it again.
func Wait(ctx context.Context, c client.Client, l Launch) (CompactionResult, error) {
	start := c.NewWithStartWorkflowOperation(l.options(enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING),
		CompactionWorkflow, l.Input)
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
		return CompactionResult{}, fmt.Errorf("start and wait for workflow %s: %w", l.Input.WorkflowID(), err)
	}
	var result CompactionResult
	if err := handle.Get(ctx, &result); err != nil {
		return CompactionResult{}, fmt.Errorf("wait for workflow %s: %w", l.Input.WorkflowID(), err)
	}
	return result, nil
}
