package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/contract"
	"precis/pipeline"
)

// run is the state of a run on its walk through the stages.
type run struct {
	in      precis.Input
	started time.Time
	// calls counts the activities, modelCalls those that call a model, tokens what these sent and received.
	calls, modelCalls, tokens int

	trigger contract.TriggerResult
	plan    contract.PartitionResult
	// summarizers is the list, best first, and current the index of the one that is used.
	summarizers []pipeline.Summarizer
	current     int
	// digestForBudget: the digest may be added to the list when a token budget is spent.
	digestForBudget bool
	// overBudget: a token budget has no room for the last call, which was not made.
	overBudget bool

	// used counts the fallbacks with the current summarizer, tailUsed those of stage reassemble.
	used, tailUsed taken
	// rung is the last fallback, "" before the first.
	rung contract.Fallback
	// full summarizes everything, again also what is summarized already.
	full, again bool
	// factor scales the summarizer's input, variation changes its prompt.
	factor    float64
	variation pipeline.Variation
	// omitted counts the messages that the summarizer's input did not hold.
	omitted int

	// native and nativeUse are what the vendor's own compaction gave, and nativeIndex the summarizer that gave it. The
	// summary of another summarizer is stored beside it.
	native, nativeUse string
	nativeIndex       int

	// path is the way down the ladder, a line a failure. failedStage, failedCall and failedKind are the last failure,
	// until the next activity records it.
	path        []string
	failedStage contract.Stage
	failedCall  int
	failedKind  pipeline.ErrorKind
}

// walk goes through the stages until the run has an outcome.
func (r *run) walk(ctx workflow.Context) precis.Result {
	r.started = workflow.Now(ctx)
	if end := r.evaluateTrigger(ctx); end != nil {
		return *end
	}
	if end := r.chooseSummarizers(ctx); end != nil {
		return *end
	}
	if end := r.partition(ctx); end != nil {
		return *end
	}
	for {
		summary, end := r.summarize(ctx)
		if end != nil {
			return *end
		}
		planAgain, end := r.reassemble(ctx, summary)
		if end != nil {
			return *end
		}
		if planAgain {
			if end := r.partition(ctx); end != nil {
				return *end
			}
		}
	}
}

func (r *run) evaluateTrigger(ctx workflow.Context) *precis.Result {
	request := contract.TriggerRequest{Ref: r.ref()}
	if err := execute(ctx, quick, "Is a compaction due?", contract.StageTrigger.Activity(), &request,
		&r.trigger); err != nil {
		end := r.endedBy(ctx, contract.StageTrigger, err)
		if end.Kind == pipeline.Conflict { // a replay that can no longer be applied
			end.Outcome, end.Reason = precis.OutcomeSuperseded, messageOf(err)
		}
		return &end
	}
	if r.trigger.Skip != "" {
		return r.skipped(r.trigger.Skip)
	}
	r.full = r.trigger.Full
	r.again = r.trigger.Decision.Kind == pipeline.TriggerOverflow
	return nil
}

func (r *run) chooseSummarizers(ctx workflow.Context) *precis.Result {
	var choice contract.SummarizerResult
	request := contract.SummarizerRequest{Ref: r.ref(), Head: r.trigger.Head, AtOrOverLimit: r.overLimit()}
	if err := execute(ctx, quick, "Who writes the summary?", contract.StageSummarizer.Activity(), &request,
		&choice); err != nil {
		end := r.endedBy(ctx, contract.StageSummarizer, err)
		return &end
	}
	if len(choice.Ladder) == 0 {
		return r.failed(pipeline.ModelNotFound,
			"no summarizer can be used and the digest is switched off: configure one in settings.summarizers")
	}
	r.summarizers, r.digestForBudget = choice.Ladder, choice.DigestForBudget
	return nil
}

// ref gives the reference for the next activity.
func (r *run) ref() contract.Ref {
	r.calls++
	ref := contract.Ref{
		Tenant: r.in.Tenant, Conversation: r.in.Conversation, Run: r.in.Run, Call: r.calls, Rung: r.rungName(),
		FailedStage: r.failedStage, FailedCall: r.failedCall, FailedKind: r.failedKind,
	}
	r.failedStage, r.failedCall, r.failedKind = "", 0, ""
	return ref
}

func (r *run) rungName() contract.Fallback {
	if r.rung == "" {
		return contract.RungFirst
	}
	return r.rung
}

// overLimit reports whether the context is too large, by our count or because the vendor refused it.
func (r *run) overLimit() bool {
	return r.trigger.Decision.OverLimit || r.trigger.Decision.Kind == pipeline.TriggerOverflow
}

// remaining is what is left of the run's time.
func (r *run) remaining(ctx workflow.Context) time.Duration {
	return r.trigger.Budget - workflow.Now(ctx).Sub(r.started)
}

// timeSpent reports whether the run's time is used up. A recorded replay takes no time: it ends where its original did.
func (r *run) timeSpent(ctx workflow.Context) bool {
	if r.in.Replay == precis.ReplayRecorded {
		return r.trigger.SpentAt > 0 && r.calls+1 >= r.trigger.SpentAt
	}
	return r.remaining(ctx) <= 0
}

// note shows a failure and its fallback in the Temporal UI, and has the next activity record them. It adds no event.
func (r *run) note(ctx workflow.Context, stage contract.Stage, kind pipeline.ErrorKind, fallback contract.Fallback) {
	by := ""
	if len(r.summarizers) > 0 {
		by = " by " + r.summarizers[r.current].String()
	}
	r.failedStage, r.failedCall, r.failedKind = stage, r.calls, kind
	r.path = append(r.path, fmt.Sprintf("%s%s: %s → %s", stage, by, kind, fallback))
	workflow.SetCurrentDetails(ctx, "* "+strings.Join(r.path, "\n* "))
}
