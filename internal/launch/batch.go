package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"precis"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/replays"
)

// BatchRequest requests a batch of replays.
type BatchRequest struct {
	Filter replays.Filter `json:"filter"`
	Replay ReplayRequest  `json:"replay"`
	// Concurrency is the maximum number of replays running at the same time.
	Concurrency int `json:"concurrency"`
}

// BatchRequestOf returns the request of a stored batch.
func BatchRequestOf(b replays.Batch) (BatchRequest, error) {
	var q BatchRequest
	if err := json.Unmarshal(b.Request, &q); err != nil {
		return q, fmt.Errorf("read the request of batch %s: %w", b.Ref.ID, err)
	}
	q.Replay.Batch = b.Ref.ID
	return q, nil
}

// Batch is a batch of replays with its progress.
type Batch struct {
	replays.Batch
	Request BatchRequest
	Totals  replays.Totals
	// Progress is the answer of its workflow, nil if the workflow is not running or no worker answers.
	Progress *contract.BatchProgress
}

// StartBatch starts the workflow that replays all runs that match the filter. It does not wait for its end.
func (l Launcher) StartBatch(ctx context.Context, tenant string,
	q BatchRequest,
) (replays.Batch, error) {
	if err := q.Replay.Validate(); err != nil {
		return replays.Batch{}, err
	}
	if q.Concurrency < 1 || q.Concurrency > contract.MaxBatchConcurrency {
		return replays.Batch{}, store.Invalidf("concurrency is from 1 to %d, not %d", contract.MaxBatchConcurrency,
			q.Concurrency)
	}
	total, err := l.Store.Replays.Count(ctx, tenant, q.Filter)
	if err != nil {
		return replays.Batch{}, err
	}
	request, err := json.Marshal(q)
	if err != nil {
		return replays.Batch{}, fmt.Errorf("encode the request: %w", err)
	}
	b, err := l.Store.Batches.Create(ctx, tenant, request, total)
	if err != nil {
		return b, err
	}
	return b, l.ContinueBatch(ctx, b)
}

// ContinueBatch starts the workflow of a batch that has not ended, unless it is running. No run is replayed twice.
func (l Launcher) ContinueBatch(ctx context.Context, b replays.Batch) error {
	if !b.Finished.IsZero() {
		return nil
	}
	q, err := BatchRequestOf(b)
	if err != nil {
		return err
	}
	_, err = l.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: b.WorkflowID, TaskQueue: l.Config.Worker.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(precis.AttributeTenant.ValueSet(b.Ref.Tenant),
			precis.AttributeTrigger.ValueSet(string(contract.TriggerReplay))),
		StaticSummary: fmt.Sprintf("replay of %d runs", b.Total),
		StaticDetails: fmt.Sprintf(
			"Batch `%s` of tenant `%s`. `precis replay --follow %s` shows how far it is.", b.Ref.ID, b.Ref.Tenant,
			b.Ref.ID),
	}, contract.BatchWorkflowType,
		contract.BatchInput{Tenant: b.Ref.Tenant, Batch: b.Ref.ID, Concurrency: q.Concurrency})
	if err != nil {
		return fmt.Errorf("start workflow %s: %w", b.WorkflowID, err)
	}
	return nil
}

// Batch returns a batch with its progress.
func (l Launcher) Batch(ctx context.Context, ref store.BatchRef) (Batch, error) {
	var b Batch
	var err error
	if b.Batch, err = l.Store.Batches.Get(ctx, ref); err != nil {
		return b, err
	}
	if b.Request, err = BatchRequestOf(b.Batch); err != nil {
		return b, err
	}
	if b.Totals, err = l.Store.Batches.Totals(ctx, ref); err != nil || !b.Finished.IsZero() {
		return b, err
	}
	value, err := l.Client.QueryWorkflow(ctx, b.WorkflowID, "", contract.BatchProgressQuery)
	if err != nil { // no worker answers, or the workflow has closed: the store has the results all the same
		return b, ctx.Err()
	}
	var p contract.BatchProgress
	if err := value.Get(&p); err != nil {
		return b, fmt.Errorf("read the progress of batch %s: %w", ref.ID, err)
	}
	b.Progress = &p
	return b, nil
}

// PauseBatch pauses a batch (running replays finish, no new ones start), or resumes it.
func (l Launcher) PauseBatch(ctx context.Context, b replays.Batch, pause bool) (contract.BatchProgress, error) {
	name := contract.BatchResumeUpdate
	if pause {
		name = contract.BatchPauseUpdate
	}
	var p contract.BatchProgress
	handle, err := l.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: b.WorkflowID, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &p)
	}
	if err != nil {
		err = fmt.Errorf("%s batch %s: %w", name, b.Ref.ID, err)
	}
	return p, err
}

// CancelBatch cancels a batch and its running replays.
func (l Launcher) CancelBatch(ctx context.Context, b replays.Batch) error {
	err := l.Client.CancelWorkflow(ctx, b.WorkflowID, "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		_, err = l.Store.Batches.Finish(ctx, b.Ref, true)
	}
	if err != nil {
		return fmt.Errorf("cancel batch %s: %w", b.Ref.ID, err)
	}
	return nil
}
