package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"precis"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Trigger starts the run and decides, with the numbers of this moment, whether a compaction is still due: the request
// may be old, and another run may have compacted the conversation since.
func (a *Activities) Trigger(ctx context.Context, req contract.TriggerRequest) (contract.TriggerResult, error) {
	var notes contract.TriggerNotes
	return recorded(ctx, a, contract.StageTrigger, req.Ref, "", &notes, func(ctx context.Context, at *attempt) (
		contract.TriggerResult, error,
	) {
		run, err := a.Store.Runs.Start(ctx, runOf(req.Ref), activity.GetInfo(ctx).WorkflowExecution.RunID)
		if err != nil {
			return contract.TriggerResult{}, err
		}
		if run.Outcome != "" {
			// A workflow was started again for a run that has ended: what the first one left must not lead it
			// through the stages again.
			return contract.TriggerResult{Skip: fmt.Sprintf("the run has ended %s already", run.Outcome)}, nil
		}
		at.run = &run
		return once(ctx, a, at, &notes,
			func(runs.Run) (contract.TriggerResult, error) { return a.trigger(ctx, at, &notes) })
	})
}

func (a *Activities) trigger(ctx context.Context, at *attempt,
	notes *contract.TriggerNotes,
) (contract.TriggerResult, error) {
	view, err := a.load(ctx, at, 0, false)
	if err != nil {
		return contract.TriggerResult{}, err
	}
	if err := a.mayReplace(ctx, at, view); err != nil {
		return contract.TriggerResult{}, err
	}
	run := at.run
	now, err := view.Context(ctx)
	if err != nil {
		return contract.TriggerResult{}, err
	}
	in := view.TriggerInput(now)
	in.Manual = run.Kind == pipeline.TriggerManual
	in.Overflow = run.Kind == pipeline.TriggerOverflow
	notes.Input = &in
	decision := pipeline.EvaluateTrigger(in, view.Settings.Settings)
	result := contract.TriggerResult{
		Decision:    decision,
		Head:        view.Head(),
		Base:        view.Conversation.ActiveMarker,
		Manual:      in.Manual,
		Full:        run.Full,
		Budget:      time.Duration(a.Config.BoundRunSeconds(view.Settings.RunTimeBudgetSeconds)) * time.Second,
		TokenBudget: view.Settings.RunTokenBudget,
		ModelQueue:  a.Config.Worker.LLMTaskQueue,
	}
	if !decision.Fired && !run.Replay.Live { // a live replay was requested, whatever the numbers
		result.Skip = decision.Reason
	}
	if at.record != nil {
		result.SpentAt = spentAt(at.record.original)
	}
	budget, err := a.tenantBudget(ctx, at, &notes.Given, view)
	if err != nil {
		return result, err
	}
	if left := budget.Left(); left > 0 && (result.TokenBudget == 0 || left < result.TokenBudget) {
		result.TokenBudget = left
	}
	numbers, err := json.Marshal(contract.RunNumbers{Trigger: &decision})
	if err != nil {
		return result, fmt.Errorf("encode the decision: %w", err)
	}
	return result, a.Store.Runs.RecordFacts(ctx, runOf(at.ref),
		runs.Facts{TokensBefore: decision.Used, Head: result.Head, Numbers: numbers})
}

// mayReplace returns a conflict when a live replay could not take effect, before any model is called: the conversation
// starts neither from what the original started from nor from what the original left.
func (a *Activities) mayReplace(ctx context.Context, at *attempt, view conversation.View) error {
	if !at.run.Replay.Apply {
		return nil
	}
	now, err := a.Store.Conversations.Get(ctx, view.Conversation.Ref)
	if err != nil {
		return err
	}
	original := at.original
	if m := now.ActiveMarker; m == view.Conversation.ActiveMarker || m != "" && m == original.Marker {
		return nil
	}
	return pipeline.Errorf(pipeline.Conflict,
		"another compaction of the conversation has come, or one was undone, since run %s", original.Ref.ID)
}

// spentAt returns the activity of a run before which its time was used up, so that no model was called any more; 0: it
// was not. It is the one decision of a run that no stage makes.
func spentAt(r runs.Run) int {
	failed := r.Outcome == precis.OutcomeFailed && r.ErrorKind == pipeline.BudgetExceeded
	for _, s := range r.Attempts {
		byDigest := s.Stage == contract.StageSummarize && s.Summarizer == string(pipeline.SummarizerDigest) &&
			s.Rung == contract.UseDigest
		if !byDigest && !(failed && s.Stage == contract.StageFinish) {
			continue
		}
		// A budget of tokens is judged by the input that was prepared just before.
		before := lastAttempt(r, contract.StageSlim, s.Call-1)
		if before == nil {
			before = refusedCall(r, s.Call-1)
		}
		if before == nil || before.Stage == contract.StageSlim && before.Outcome == contract.AttemptFailed {
			return s.Call
		}
	}
	return 0
}

// refusedCall returns the run's last attempt at a call that a token budget had no room for, nil if that was not so.
func refusedCall(r runs.Run, call int) *runs.Attempt {
	s := lastAttempt(r, contract.StageSummarize, call)
	if s == nil || s.ErrorKind != pipeline.BudgetExceeded {
		return nil
	}
	return s
}
