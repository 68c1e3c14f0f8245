package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/contract"
	"precis/pipeline"
)

// summarize takes one fallback after another until a summarizer gives a summary, or none is left.
func (r *run) summarize(ctx workflow.Context) (contract.SummarizeResult, *precis.Result) {
	if r.factor == 0 {
		r.factor = 1
	}
	for {
		result, stage, err := r.attempt(ctx)
		if err == nil && result.Native != "" {
			r.native, r.nativeUse, r.nativeIndex = result.Native, result.NativeUse, r.current
			// If only the vendor can read it, the next summarizer writes a summary that can be read.
			if result.Summary == "" && r.switchTo(r.current+1) {
				r.rung = ""
				continue
			}
		}
		if err == nil {
			return result, nil
		}
		kind := kindOf(ctx, err)
		if kind == pipeline.Cancelled || kind == contract.KindDiverged || r.poisoned(stage, err) {
			end := r.endedBy(ctx, stage, err)
			return contract.SummarizeResult{}, &end
		}
		fallback := r.used.next(stage, r.summarizers[r.current].Kind, kind)
		r.note(ctx, stage, kind, fallback)
		if !r.take(fallback, stage, kind) {
			return contract.SummarizeResult{}, r.noSummary(kind)
		}
	}
}

// noSummary is the end of a run that has no fallback left.
func (r *run) noSummary(kind pipeline.ErrorKind) *precis.Result {
	why := "settings.digest is never"
	if r.digestForBudget {
		why = "settings.digest is when_needed, and this was asked for by hand below the limit"
	}
	return r.failed(kind, "no summarizer gave a usable summary, and no digest stands in, since "+why+": "+
		strings.Join(r.path, "; "))
}

// attempt prepares the input of the current summarizer and asks for a summary, once. The stage is where it failed.
func (r *run) attempt(ctx workflow.Context) (contract.SummarizeResult, contract.Stage, error) {
	s := r.summarizers[r.current]
	var out contract.SummarizeResult
	var input contract.SlimResult
	if s.Kind != pipeline.SummarizerDigest {
		if r.modelCalls >= MaxModelCalls || r.timeSpent(ctx) {
			return out, contract.StageSummarize, budgetExceeded("the run's time or number of model calls is spent")
		}
		request := contract.SlimRequest{
			Ref: r.ref(), Plan: r.plan.Plan, Summarizer: s, Factor: r.factor, Variation: r.variation,
		}
		if err := execute(ctx, quick, fmt.Sprintf("Input for %s (%s)", s, r.rungName()),
			contract.StageSlim.Activity(), &request, &input); err != nil {
			return out, contract.StageSlim, err
		}
		if r.trigger.TokenBudget > 0 && r.tokens+input.Tokens > r.trigger.TokenBudget {
			return out, contract.StageSlim, budgetExceeded("the run's token budget is spent")
		}
		r.modelCalls++
	}

	r.omitted = input.Omitted
	options := modelCall(r.trigger.ModelQueue, r.remaining(ctx))
	if s.Kind == pipeline.SummarizerDigest || r.in.Replay == precis.ReplayRecorded { // no model is called
		options = quick
	}
	request := contract.SummarizeRequest{
		Ref: r.ref(), Plan: r.plan.Plan, Input: input.Input, InputTokens: input.Tokens, MaxOutput: input.MaxOutput,
		Summarizer: s,
	}
	err := execute(ctx, options, fmt.Sprintf("Summary by %s (%s)", s, r.rungName()),
		contract.StageSummarize.Activity(), &request, &out)
	if err == nil {
		r.tokens += out.InputTokens + out.OutputTokens
	} else if s.Kind != pipeline.SummarizerDigest {
		r.tokens += input.Tokens
		r.overBudget = kindOf(ctx, err) == pipeline.BudgetExceeded
	}
	return out, contract.StageSummarize, err
}

// poisoned reports whether a stage of our own cannot be done: it would fail for every summarizer. A model call that
// took its worker down is followed by the next summarizer.
func (r *run) poisoned(stage contract.Stage, err error) bool {
	modelCalled := stage == contract.StageSummarize && r.summarizers[r.current].Kind != pipeline.SummarizerDigest
	return errors.As(err, new(*poisonedError)) && !modelCalled
}
