package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/contract"
	"precis/pipeline"
)

// A recorded replay compares its reason with that of the original run, which an earlier release may have executed: the
// words of a reason do not change.

func (r *run) skipped(reason string) *precis.Result {
	return &precis.Result{Run: r.in.Run, Outcome: precis.OutcomeSkipped, Reason: reason}
}

func (r *run) failed(kind pipeline.ErrorKind, reason string) *precis.Result {
	return &precis.Result{Run: r.in.Run, Outcome: precis.OutcomeFailed, Kind: kind, Reason: reason}
}

// endedBy is the end of a run by the failure of a stage that no fallback follows.
func (r *run) endedBy(ctx workflow.Context, stage contract.Stage, err error) precis.Result {
	kind := kindOf(ctx, err)
	if kind == pipeline.Cancelled {
		return precis.Result{
			Run: r.in.Run, Outcome: precis.OutcomeCancelled, Kind: kind, Reason: "the run was cancelled",
		}
	}
	return *r.failed(kind, fmt.Sprintf("stage %s: %s", stage, messageOf(err)))
}

// finish closes the run's row, also if the workflow is cancelled, and gives the result that the row has.
func (r *run) finish(ctx workflow.Context, result precis.Result) precis.Result {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var out contract.FinishResult
	request := contract.FinishRequest{
		Ref: r.ref(), Outcome: result.Outcome, Kind: result.Kind, Reason: result.Reason, Summarizer: result.Summarizer,
	}
	if err := execute(ctx, quick, "Close the run: "+string(result.Outcome), contract.StageFinish.Activity(), &request,
		&out); err != nil {
		workflow.GetLogger(ctx).Error("the run could not be closed", "run", r.in.Run, "error", err)
		return result
	}
	// If the marker was applied just before the workflow was cancelled, the row says applied.
	result.Outcome, result.Kind, result.Reason = out.Outcome, out.Kind, out.Reason
	return result
}
