package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis"
)

// CompactionWorkflow compacts a conversation: trigger, summarizer, partition, slim, summarize, reassemble, each an
// activity, with Ladder to decide what follows a failure. Its result is how the run ended. A failed run also fails
// the workflow, with the error kind as the error's type, and a cancelled run cancels it: so both are seen in the
// Temporal UI.
func CompactionWorkflow(ctx workflow.Context, in precis.Input) (result precis.Result, err error) {
	done := false
	waitForEnd := func(ctx workflow.Context, _ string) (precis.Result, error) {
		// A cancelled run has a result too, and its callers get it.
		ctx, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		if err := workflow.Await(ctx, func() bool { return done }); err != nil {
			return precis.Result{}, err
		}
		return result, nil
	}
	rejectOtherRuns := func(_ workflow.Context, run string) error {
		if run != in.Run {
			return fmt.Errorf("this workflow executes run %s, not %s: try again when %s has ended", in.Run, run, in.Run)
		}
		return nil
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, precis.WaitUpdate, waitForEnd,
		workflow.UpdateHandlerOptions{Validator: rejectOtherRuns}); err != nil {
		return precis.Result{}, err
	}
	defer func() {
		// A handler that has not returned when the workflow closes gives its caller an error of Temporal's.
		done = true
		drain, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		_ = workflow.Await(drain, func() bool { return workflow.AllHandlersFinished(drain) })
	}()

	r := &run{in: in, used: taken{}, tailUsed: taken{}}
	result = r.walk(ctx)
	if result.Outcome != precis.OutcomeApplied && result.Outcome != precis.OutcomePrepared || in.Replay != "" {
		result = r.finish(ctx, result)
	}
	showOutcome(ctx, result)

	switch result.Outcome {
	case precis.OutcomeFailed:
		return result, temporal.NewApplicationErrorWithOptions(result.Reason, string(result.Kind),
			temporal.ApplicationErrorOptions{NonRetryable: true})
	case precis.OutcomeCancelled:
		return result, temporal.NewCanceledError()
	}
	return result, nil
}

// showOutcome sets the search attributes and the memo by which the Temporal UI shows how the run ended.
func showOutcome(ctx workflow.Context, result precis.Result) {
	updates := []temporal.SearchAttributeUpdate{precis.AttributeOutcome.ValueSet(string(result.Outcome))}
	if result.Kind != "" {
		updates = append(updates, precis.AttributeErrorKind.ValueSet(string(result.Kind)))
	}
	if result.Summarizer != "" {
		updates = append(updates, precis.AttributeSummarizer.ValueSet(result.Summarizer))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not set", "error", err)
	}
	if !changed(ctx, changeResultInMemo) {
		return
	}
	memo := map[string]any{
		"tokens_before": result.TokensBefore, "tokens_after": result.TokensAfter, "reason": result.Reason,
	}
	if err := workflow.UpsertMemo(ctx, memo); err != nil {
		workflow.GetLogger(ctx).Warn("the memo was not set", "error", err)
	}
}
