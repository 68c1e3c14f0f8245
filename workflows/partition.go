package workflows

import (
	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/contract"
	"precis/pipeline"
)

// partition plans what is summarized and what stays. The result is nil if there is something to summarize.
func (r *run) partition(ctx workflow.Context) *precis.Result {
	var plan contract.PartitionResult
	request := contract.PartitionRequest{
		Ref: r.ref(), Head: r.trigger.Head, Full: r.full, Again: r.again,
		ModelAsked: r.summarizers[r.current].Kind != pipeline.SummarizerDigest,
	}
	if err := execute(ctx, quick, "What is summarized, what stays?", contract.StagePartition.Activity(), &request,
		&plan); err != nil {
		end := r.endedBy(ctx, contract.StagePartition, err)
		return &end
	}
	if plan.Nothing == "" {
		r.plan = plan
		return nil
	}
	if r.overLimit() && plan.Plan != "" {
		// Nothing can be summarized, and the context is too large all the same: only the tail can be shortened.
		r.plan = plan
		return r.shortenTail(ctx)
	}
	return r.skipped(plan.Nothing)
}

// shortenTail takes the fallbacks of stage reassemble that need no summary.
func (r *run) shortenTail(ctx workflow.Context) *precis.Result {
	r.full = true // there is nothing more to summarize
	r.rung = r.nextOfTail("", pipeline.NoShrink)
	_, end := r.reassemble(ctx, contract.SummarizeResult{})
	return end
}
