// Package workflows holds the CompactionWorkflow, and the ladder that it walks as a table. It is
// deterministic: it decides which activity comes next and computes nothing itself. Only ids, numbers,
// error kinds and hashes pass through it, so that a history stays small and holds no user text.
package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis/activities"
	"precis/pipeline"
)

// The names by which clients and workers meet.
const (
	// TaskQueue takes the workflow and all activities that call no model, unless worker.task_queue says
	// otherwise. Model calls have a queue of their own, so that slow vendors never hold up the rest.
	TaskQueue = "compaction"
	// WaitUpdate is the update by which a caller waits for the run's result. Callers share one update id
	// per run: more than ten different ones in flight would start a second run.
	WaitUpdate = "wait"
)

// The search attributes that make the Temporal UI readable by itself. SQL visibility allows ten of type
// Keyword in a namespace.
var (
	AttrTenant       = temporal.NewSearchAttributeKeyKeyword("PrecisTenant")
	AttrConversation = temporal.NewSearchAttributeKeyKeyword("PrecisConversation")
	AttrTrigger      = temporal.NewSearchAttributeKeyKeyword("PrecisTrigger")
	AttrOutcome      = temporal.NewSearchAttributeKeyKeyword("PrecisOutcome")
	AttrErrorKind    = temporal.NewSearchAttributeKeyKeyword("PrecisErrorKind")
	AttrSummarizer   = temporal.NewSearchAttributeKeyKeyword("PrecisSummarizer")
)

// The outcomes of a run.
const (
	OutcomeApplied    = "applied"
	OutcomePrepared   = "prepared"
	OutcomeSkipped    = "skipped"
	OutcomeSuperseded = "superseded"
	OutcomeCancelled  = "cancelled"
	OutcomeFailed     = "failed"
	// OutcomeReplayed is that of a replay that came to its end and took no effect.
	OutcomeReplayed = "replayed"
)

// ReplayMode says how a run is repeated.
type ReplayMode string

// The modes; "" is a run that repeats none.
const (
	// ReplayRecorded reads from the record what the models answered, and compares every stage.
	ReplayRecorded ReplayMode = "recorded"
	// ReplayLive asks the models anew.
	ReplayLive ReplayMode = "live"
)

// CompactionInput names the run. All else is read from the store by the activities.
type CompactionInput struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Run          string `json:"run"`
	// Replay says that the run repeats another one; the activities read which.
	Replay ReplayMode `json:"replay,omitempty"`
}

// WorkflowID is the id under which a conversation's compactions run: Temporal keeps it unique among the
// open ones, which is what makes a conversation compact once at a time. A replay runs beside them.
func (in CompactionInput) WorkflowID() string {
	if in.Replay != "" {
		return "replay/" + in.Tenant + "/" + in.Run
	}
	return "compaction/" + in.Tenant + "/" + in.Conversation
}

// CompactionResult is what became of the run.
type CompactionResult struct {
	Run          string             `json:"run"`
	Outcome      string             `json:"outcome"`
	Kind         pipeline.ErrorKind `json:"error_kind,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	Summarizer   string             `json:"summarizer,omitempty"`
	Marker       string             `json:"marker,omitempty"`
	TokensBefore int                `json:"tokens_before,omitempty"`
	TokensAfter  int                `json:"tokens_after,omitempty"`
}

// CompactionWorkflow compacts one conversation: trigger, pick a summarizer, partition, slim, summarize,
// reassemble, each an activity, with Ladder deciding what follows a failure. It ends in one of the
// outcomes; a failed run also fails the workflow, with the error kind as the error's type, so that it
// stands out in the Temporal UI.
func CompactionWorkflow(ctx workflow.Context, in CompactionInput) (result CompactionResult, err error) {
	done := false
	waitForEnd := func(ctx workflow.Context, _ string) (CompactionResult, error) {
		// A cancelled run still has a result, and its callers get it.
		ctx, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		if err := workflow.Await(ctx, func() bool { return done }); err != nil {
			return CompactionResult{}, err
		}
		return result, nil
	}
	rejectOtherRuns := func(_ workflow.Context, run string) error {
		if run != in.Run {
			return fmt.Errorf("this workflow executes run %s, not %s: ask again when it has ended", in.Run, run)
		}
		return nil
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, WaitUpdate, waitForEnd,
		workflow.UpdateHandlerOptions{Validator: rejectOtherRuns}); err != nil {
		return CompactionResult{}, err
	}
	defer func() {
		// Every exit path drains the handlers: else their callers would get an error that is not ours.
		done = true
		drain, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		_ = workflow.Await(drain, func() bool { return workflow.AllHandlersFinished(drain) })
	}()

	r := &run{in: in, used: taken{}, tail: taken{}}
	result = r.walk(ctx)
	if result.Outcome != OutcomeApplied && result.Outcome != OutcomePrepared || in.Replay != "" {
		result = r.finish(ctx, result)
	}
	upsertOutcome(ctx, result)

	switch result.Outcome {
	case OutcomeFailed:
		return result, temporal.NewApplicationErrorWithOptions(result.Reason, string(result.Kind),
			temporal.ApplicationErrorOptions{NonRetryable: true})
	case OutcomeCancelled:
		return result, temporal.NewCanceledError()
	}
	return result, nil
}

// run is the state of one walk down the ladder.
type run struct {
	in      CompactionInput
	calls   int
	started time.Time

	trigger activities.TriggerResult
	ladder  []pipeline.Summarizer
	// digestForBudget says that the digest may be added to the ladder when a token budget is spent.
	digestForBudget bool
	at              int // the summarizer whose turn it is
	used            taken
	tail            taken

	plan       activities.PartitionResult
	full       bool
	again      bool // the same messages once more
	factor     float64
	variation  pipeline.Variation
	rung       Step
	modelCalls int
	omitted    int
	tokens     int

	// native and nativeUse are what the vendor's own compaction gave, and nativeAt the summarizer that it was. A
	// summary that can be read goes with it.
	native, nativeUse string
	nativeAt          int

	path []string
	// failedStage, failedCall and failedKind are what the last note was about, until the next call takes them along.
	failedStage activities.Stage
	failedCall  int
	failedKind  pipeline.ErrorKind
}

func (r *run) ref() activities.Ref {
	r.calls++
	rung := string(r.rung)
	if rung == "" {
		rung = "first"
	}
	ref := activities.Ref{
		Tenant: r.in.Tenant, Conversation: r.in.Conversation, Run: r.in.Run, Call: r.calls, Rung: rung,
		FailedStage: r.failedStage, FailedCall: r.failedCall, FailedKind: r.failedKind,
	}
	r.failedStage, r.failedCall, r.failedKind = "", 0, ""
	return ref
}

// walk goes through the stages until the run has an outcome.
func (r *run) walk(ctx workflow.Context) CompactionResult {
	r.started = workflow.Now(ctx)
	var a *activities.Activities

	if err := execute(ctx, quick, "Is a compaction due?", a.Trigger, activities.TriggerRequest{Ref: r.ref()},
		&r.trigger); err != nil {
		end := r.ended(ctx, activities.StageTrigger, err)
		if end.Kind == pipeline.Conflict { // a replay that could not take effect any more
			end.Outcome, end.Reason = OutcomeSuperseded, messageOf(err)
		}
		return end
	}
	if r.trigger.Skip != "" {
		return r.skipped(r.trigger.Skip)
	}
	r.full = r.trigger.Full

	var choice activities.SummarizerResult
	r.again = r.trigger.Decision.Kind == pipeline.TriggerOverflow
	if err := execute(ctx, quick, "Who writes the summary?", a.Summarizer,
		activities.SummarizerRequest{Ref: r.ref(), Head: r.trigger.Head, AtOrOverLimit: r.overLimit()},
		&choice); err != nil {
		return r.ended(ctx, activities.StageSummarizer, err)
	}
	if len(choice.Ladder) == 0 {
		return r.failed(pipeline.ModelNotFound,
			"no summarizer can be used and the digest is switched off: configure one in settings.summarizers")
	}
	r.ladder, r.digestForBudget = choice.Ladder, choice.DigestForBudget

	if end := r.partition(ctx); end != nil {
		return *end
	}
	for {
		summary, end := r.summarize(ctx)
		if end != nil {
			return *end
		}
		again, end := r.reassemble(ctx, summary)
		if end != nil {
			return *end
		}
		if again {
			if end := r.partition(ctx); end != nil {
				return *end
			}
		}
	}
}

// partition plans what is summarized; the plan of a full one replaces an earlier plan.
func (r *run) partition(ctx workflow.Context) *CompactionResult {
	var a *activities.Activities
	var plan activities.PartitionResult
	if err := execute(ctx, quick, "What is summarised, what stays?", a.Partition,
		activities.PartitionRequest{
			Ref: r.ref(), Head: r.trigger.Head, Full: r.full, Again: r.again,
			ModelAsked: r.ladder[r.at].Kind != pipeline.SummarizerDigest,
		}, &plan); err != nil {
		end := r.ended(ctx, activities.StagePartition, err)
		return &end
	}
	if plan.Nothing == "" {
		r.plan = plan
		return nil
	}
	if r.overLimit() && plan.Plan != "" {
		// Nothing can be summarized, and the context is too large all the same: what is left is the tail.
		r.plan = plan
		end := r.squeeze(ctx)
		return &end
	}
	end := r.skipped(plan.Nothing)
	return &end
}

// overLimit says that the context is too large, by our count or by the vendor's word.
func (r *run) overLimit() bool {
	return r.trigger.Decision.OverLimit || r.trigger.Decision.Kind == pipeline.TriggerOverflow
}

// squeeze walks the steps of the tail alone, without a summary.
func (r *run) squeeze(ctx workflow.Context) CompactionResult {
	r.full = true // there is nothing more to summarize
	r.rung = r.tail.next(activities.StageReassemble, "", pipeline.NoShrink)
	for r.rung == StepFull {
		r.rung = r.tail.next(activities.StageReassemble, "", pipeline.NoShrink)
	}
	_, end := r.reassemble(ctx, activities.SummarizeResult{})
	return *end
}

// summarize walks the summarizers until one gives a summary.
func (r *run) summarize(ctx workflow.Context) (activities.SummarizeResult, *CompactionResult) {
	if r.factor == 0 {
		r.factor = 1
	}
	for {
		result, stage, err := r.attempt(ctx)
		if err == nil && result.Native != "" {
			r.native, r.nativeUse, r.nativeAt = result.Native, result.NativeUse, r.at
			if result.Summary == "" && r.goTo(r.at+1) { // nobody else can read it: another one writes what can be read
				r.rung = ""
				continue
			}
		}
		if err == nil {
			return result, nil
		}
		kind := kindOf(ctx, err)
		if kind == pipeline.Cancelled || kind == activities.KindDiverged {
			end := r.ended(ctx, stage, err)
			return activities.SummarizeResult{}, &end
		}
		if !r.step(ctx, r.used.next(stage, r.ladder[r.at].Kind, kind), stage, kind) {
			why := "settings.digest is never"
			if r.digestForBudget {
				why = "settings.digest is when_needed, and this was asked for by hand below the limit"
			}
			end := r.failed(kind, "no summarizer gave a usable summary, and no digest stands in, since "+why+": "+
				strings.Join(r.path, "; "))
			return activities.SummarizeResult{}, &end
		}
	}
}

// attempt prepares the input and asks the summarizer whose turn it is, once.
func (r *run) attempt(ctx workflow.Context) (activities.SummarizeResult, activities.Stage, error) {
	var a *activities.Activities
	s := r.ladder[r.at]
	var out activities.SummarizeResult
	if s.Kind != pipeline.SummarizerDigest && (r.modelCalls >= MaxModelCalls || r.timeSpent(ctx)) {
		return out, activities.StageSummarize, budgetExceeded("the run's time or number of model calls is spent")
	}

	var input activities.SlimResult
	if s.Kind != pipeline.SummarizerDigest {
		label := fmt.Sprintf("Input for %s (%s)", s, r.rungName())
		err := execute(ctx, quick, label, a.Slim,
			activities.SlimRequest{
				Ref: r.ref(), Plan: r.plan.Plan, Summarizer: s, Factor: r.factor,
				Variation: r.variation,
			}, &input)
		if err != nil {
			return out, activities.StageSlim, err
		}
		if r.trigger.TokenBudget > 0 && r.tokens+input.Tokens > r.trigger.TokenBudget {
			return out, activities.StageSlim, budgetExceeded("the run's token budget is spent")
		}
		r.modelCalls++
	}

	r.omitted = input.Omitted
	class := model(r.trigger.ModelQueue, r.remaining(ctx))
	if s.Kind == pipeline.SummarizerDigest || r.in.Replay == ReplayRecorded { // no model is called
		class = quick
	}
	err := execute(ctx, class, fmt.Sprintf("Summary by %s (%s)", s, r.rungName()), a.Summarise,
		activities.SummarizeRequest{
			Ref: r.ref(), Plan: r.plan.Plan, Input: input.Input, MaxOutput: input.MaxOutput,
			Summarizer: s,
		}, &out)
	if err == nil {
		r.tokens += out.InputTokens + out.OutputTokens
	} else if s.Kind != pipeline.SummarizerDigest {
		r.tokens += input.Tokens
	}
	return out, activities.StageSummarize, err
}

// reassemble builds the new context and makes it the conversation's own. again says that everything is to
// be partitioned and summarized anew.
func (r *run) reassemble(ctx workflow.Context, summary activities.SummarizeResult) (again bool, end *CompactionResult) {
	var a *activities.Activities
	request := activities.ReassembleRequest{
		Plan: r.plan.Plan, Summary: summary.Summary, Omitted: r.omitted, Manual: r.trigger.Manual,
		Valve: valveOf[r.rung],
	}
	if summary.Summary != "" {
		request.Summarizer = r.ladder[r.at]
		request.Native, request.NativeUse = r.native, r.nativeUse
	}
	for {
		request.Ref = r.ref()
		var out activities.ReassembleResult
		if err := execute(ctx, quick, "The new context "+string(request.Valve), a.Reassemble, request,
			&out); err != nil {
			end := r.ended(ctx, activities.StageReassemble, err)
			return false, &end
		}
		if out.Outcome != "" {
			return false, &CompactionResult{
				Run: r.in.Run, Outcome: out.Outcome, Kind: out.Kind, Reason: out.Reason,
				Summarizer: request.Summarizer.String(), Marker: out.Marker, TokensBefore: out.TokensBefore,
				TokensAfter: out.TokensAfter,
			}
		}
		step := r.tail.next(activities.StageReassemble, request.Summarizer.Kind, out.Kind)
		if step == StepFull && r.full {
			step = r.tail.next(activities.StageReassemble, request.Summarizer.Kind, out.Kind)
		}
		r.note(ctx, activities.StageReassemble, out.Kind, step)
		r.rung = step
		switch step {
		case StepFull:
			r.full, r.again, r.factor, r.variation = true, true, 1, pipeline.Variation{}
			if r.native != "" { // it stands for less than what is summarized now
				r.native, r.nativeUse = "", ""
				r.goTo(r.nativeAt)
			}
			return true, nil
		case StepPreviews, StepHeadAndTail:
			request.Valve = valveOf[step]
		case StepTakeSmaller:
			request.Final = true
		case StepSupersede:
			return false, &CompactionResult{
				Run: r.in.Run, Outcome: OutcomeSuperseded, Kind: out.Kind,
				Reason: out.Reason,
			}
		default:
			end := r.failed(out.Kind, out.Reason)
			return false, &end
		}
	}
}

// valveOf gives the valve that a step of the tail opens.
var valveOf = map[Step]pipeline.TailValve{
	StepPreviews:    pipeline.TailValvePreviews,
	StepHeadAndTail: pipeline.TailValveHeadTail,
}

// step changes the state for the step; false when the ladder has none left.
func (r *run) step(ctx workflow.Context, step Step, stage activities.Stage, kind pipeline.ErrorKind) bool {
	r.note(ctx, stage, kind, step)
	r.rung = step
	switch step {
	case StepShorterOutput:
		r.variation.Shorter = true
	case StepHalfInput:
		r.variation.Shorter = true
		r.factor *= 0.5
	case StepSlimHarder:
		r.factor *= 0.5
	case StepOnceMore:
		r.variation.Again++
	case StepPlainText:
		r.variation.Plain = true
	case StepNextSummarizer:
		next := r.at + 1
		for next < len(r.ladder) && r.inVain(r.ladder[next], kind) {
			next++
		}
		factor := 1.0
		if stage == activities.StageSummarize && r.refusedSo(next, kind) {
			factor = 0.5
		}
		if !r.goTo(next) {
			return false
		}
		r.factor = factor
		return true
	case StepLargerWindow:
		next := r.at + 1
		for next < len(r.ladder) && r.ladder[next].Kind != pipeline.SummarizerDigest &&
			r.ladder[next].Window <= r.ladder[r.at].Window {
			next++
		}
		return r.goTo(next)
	case StepDigest:
		for i := range r.ladder {
			if r.ladder[i].Kind == pipeline.SummarizerDigest {
				return r.goTo(i)
			}
		}
		if !r.digestForBudget || stage != activities.StageSlim { // only tokens are judged there
			return false
		}
		r.ladder = append(r.ladder, pipeline.Summarizer{Kind: pipeline.SummarizerDigest})
		return r.goTo(len(r.ladder) - 1)
	default:
		return false
	}
	return true
}

// inVain says that a summarizer need not be asked after the one whose turn it is failed with this kind: it is the
// same model at the same vendor, asked another way.
func (r *run) inVain(next pipeline.Summarizer, kind pipeline.ErrorKind) bool {
	if at := r.ladder[r.at]; at.Kind == pipeline.SummarizerNative {
		// The vendor's compaction may be at fault where the model is not; the account is the same.
		account := kind == pipeline.Auth || kind == pipeline.Quota || kind == pipeline.RateLimited
		return account && next.Vendor == at.Vendor && next.Model == at.Model
	}
	return next.Fallback && modelAtFault(kind)
}

// refusedSo says that a summarizer's model is the one that has just refused so many tokens: asked with the rendering it
// is sent fewer. Too many bytes are another matter: the rendering has no images.
func (r *run) refusedSo(next int, kind pipeline.ErrorKind) bool {
	if next >= len(r.ladder) || kind != pipeline.InputTokensExceeded {
		return false
	}
	at, to := r.ladder[r.at], r.ladder[next]
	return to.Kind == pipeline.SummarizerExternal && to.Vendor == at.Vendor && to.Model == at.Model
}

// modelAtFault says that the failure is the model's or its vendor's, so that asking the same model another way
// does not help.
func modelAtFault(kind pipeline.ErrorKind) bool {
	switch kind {
	case pipeline.Auth, pipeline.Quota, pipeline.ModelNotFound, pipeline.Refused:
		return true
	}
	return kind.Transient()
}

// goTo starts over with another summarizer.
func (r *run) goTo(i int) bool {
	if i >= len(r.ladder) {
		return false
	}
	r.at, r.used, r.factor, r.variation = i, taken{}, 1, pipeline.Variation{}
	return true
}

func (r *run) rungName() string { return or(string(r.rung), "first") }

// remaining is what is left of the run's time.
func (r *run) remaining(ctx workflow.Context) time.Duration {
	return r.trigger.Budget - workflow.Now(ctx).Sub(r.started)
}

// timeSpent says that no model is asked any more. A replay from the record takes no time, and asks the record.
func (r *run) timeSpent(ctx workflow.Context) bool {
	if r.in.Replay == ReplayRecorded {
		return r.trigger.SpentAt > 0 && r.calls+1 >= r.trigger.SpentAt
	}
	return r.remaining(ctx) <= 0
}

// note writes the way down the ladder where the Temporal UI shows it; it costs no event.
func (r *run) note(ctx workflow.Context, stage activities.Stage, kind pipeline.ErrorKind, step Step) {
	who := ""
	if len(r.ladder) > 0 {
		who = " by " + r.ladder[r.at].String()
	}
	r.failedStage, r.failedCall, r.failedKind = stage, r.calls, kind
	r.path = append(r.path, fmt.Sprintf("%s%s: %s → %s", stage, who, kind, step))
	workflow.SetCurrentDetails(ctx, "* "+strings.Join(r.path, "\n* "))
}

func (r *run) skipped(reason string) CompactionResult {
	return CompactionResult{Run: r.in.Run, Outcome: OutcomeSkipped, Reason: reason}
}

func (r *run) cancelled() CompactionResult {
	return CompactionResult{
		Run: r.in.Run, Outcome: OutcomeCancelled, Kind: pipeline.Cancelled,
		Reason: "the run was cancelled",
	}
}

func (r *run) failed(kind pipeline.ErrorKind, reason string) CompactionResult {
	return CompactionResult{Run: r.in.Run, Outcome: OutcomeFailed, Kind: kind, Reason: reason}
}

// ended is the outcome of a run whose stage failed for good.
func (r *run) ended(ctx workflow.Context, stage activities.Stage, err error) CompactionResult {
	kind := kindOf(ctx, err)
	if kind == pipeline.Cancelled {
		return r.cancelled()
	}
	return r.failed(kind, fmt.Sprintf("stage %s: %s", stage, messageOf(err)))
}

// finish closes the run's row. It must go through, so it is not cancelled with the workflow.
func (r *run) finish(ctx workflow.Context, result CompactionResult) CompactionResult {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var a *activities.Activities
	var out activities.FinishResult
	request := activities.FinishRequest{
		Ref: r.ref(), Outcome: result.Outcome, Kind: result.Kind, Reason: result.Reason,
		Summarizer: result.Summarizer,
	}
	if err := execute(ctx, quick, "Close the run: "+result.Outcome, a.Finish, request, &out); err != nil {
		workflow.GetLogger(ctx).Error("the run could not be closed", "run", r.in.Run, "error", err)
		return result
	}
	// A cancel that came after the marker was applied changes nothing: the row tells what really happened.
	result.Outcome, result.Kind, result.Reason = out.Outcome, out.Kind, out.Reason
	return result
}

func upsertOutcome(ctx workflow.Context, result CompactionResult) {
	updates := []temporal.SearchAttributeUpdate{AttrOutcome.ValueSet(result.Outcome)}
	if result.Kind != "" {
		updates = append(updates, AttrErrorKind.ValueSet(string(result.Kind)))
	}
	if result.Summarizer != "" {
		updates = append(updates, AttrSummarizer.ValueSet(result.Summarizer))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not set", "error", err)
	}
	if !changed(ctx, changeResultInMemo) {
		return
	}
	memo := map[string]any{
		"tokens_before": result.TokensBefore, "tokens_after": result.TokensAfter,
		"reason": result.Reason,
	}
	if err := workflow.UpsertMemo(ctx, memo); err != nil {
		workflow.GetLogger(ctx).Warn("the memo was not set", "error", err)
	}
}
