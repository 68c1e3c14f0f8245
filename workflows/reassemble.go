package workflows

import (
	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/contract"
	"precis/pipeline"
)

// valves are the fallbacks that shorten the tail.
var valves = map[contract.Fallback]pipeline.TailValve{
	contract.TailPreviews:    pipeline.TailValvePreviews,
	contract.TailHeadAndTail: pipeline.TailValveHeadTail,
}

// reassemble builds the new context and applies it. planAgain reports that everything is to be planned and summarized
// once more.
func (r *run) reassemble(ctx workflow.Context, summary contract.SummarizeResult) (planAgain bool, end *precis.Result) {
	request := contract.ReassembleRequest{
		Plan: r.plan.Plan, Summary: summary.Summary, Omitted: r.omitted, Manual: r.trigger.Manual,
		Valve: valves[r.rung],
	}
	if summary.Summary != "" {
		request.Summarizer = r.summarizers[r.current]
		request.Native, request.NativeUse = r.native, r.nativeUse
	}
	for {
		request.Ref = r.ref()
		var out contract.ReassembleResult
		if err := execute(ctx, quick, "The new context "+string(request.Valve), contract.StageReassemble.Activity(),
			request, &out); err != nil {
			end := r.endedBy(ctx, contract.StageReassemble, err)
			return false, &end
		}
		if out.Outcome != "" {
			return false, &precis.Result{
				Run: r.in.Run, Outcome: out.Outcome, Kind: out.Kind, Reason: out.Reason,
				Summarizer: request.Summarizer.String(), Marker: out.Marker, TokensBefore: out.TokensBefore,
				TokensAfter: out.TokensAfter,
			}
		}
		fallback := r.nextOfTail(request.Summarizer.Kind, out.Kind)
		r.note(ctx, contract.StageReassemble, out.Kind, fallback)
		r.rung = fallback
		switch fallback {
		case contract.SummarizeAll:
			r.summarizeAll()
			return true, nil
		case contract.TailPreviews, contract.TailHeadAndTail:
			request.Valve = valves[fallback]
		case contract.TakeSmaller:
			request.Final = true
		case contract.Supersede:
			return false, &precis.Result{
				Run: r.in.Run, Outcome: precis.OutcomeSuperseded, Kind: out.Kind, Reason: out.Reason,
			}
		default:
			return false, r.failed(out.Kind, out.Reason)
		}
	}
}

// nextOfTail gives the fallback for a failure of stage reassemble. A run that summarizes everything already does not do
// so twice.
func (r *run) nextOfTail(s pipeline.SummarizerKind, kind pipeline.ErrorKind) contract.Fallback {
	fallback := r.tailUsed.next(contract.StageReassemble, s, kind)
	for fallback == contract.SummarizeAll && r.full {
		fallback = r.tailUsed.next(contract.StageReassemble, s, kind)
	}
	return fallback
}

// summarizeAll prepares the run for another plan. What the vendor's own compaction gave covers less than that plan, so
// the vendor is asked once more.
func (r *run) summarizeAll() {
	r.full, r.again, r.factor, r.variation = true, true, 1, pipeline.Variation{}
	if r.native != "" {
		r.native, r.nativeUse = "", ""
		r.switchTo(r.nativeIndex)
	}
}
