package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"precis"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store/breakers"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// Finish closes a run that applied nothing. A run that has ended otherwise meanwhile, because its marker was
// applied just before it was cancelled, stays as it is.
func (a *Activities) Finish(ctx context.Context, req contract.FinishRequest) (contract.FinishResult, error) {
	var notes contract.FinishNotes
	return recorded(ctx, a, contract.StageFinish, req.Ref, "", &notes,
		func(ctx context.Context, at *attempt) (contract.FinishResult, error) {
			if err := a.open(ctx, at); err != nil {
				return contract.FinishResult{}, err
			}
			if at.original != nil {
				return a.finishReplay(ctx, at, req)
			}
			return a.finish(ctx, req, *at.run)
		})
}

func (a *Activities) finish(ctx context.Context, req contract.FinishRequest,
	before runs.Run,
) (contract.FinishResult, error) {
	data, err := json.Marshal(map[string]any{"outcome": req.Outcome, "error_kind": req.Kind, "reason": req.Reason})
	if err != nil {
		return contract.FinishResult{}, fmt.Errorf("encode the event: %w", err)
	}
	run, err := a.Store.Runs.Finish(ctx, runOf(req.Ref), runs.End{
		Outcome: precis.Outcome(req.Outcome), ErrorKind: req.Kind, Reason: shorten(req.Reason),
		Facts: runs.Facts{Summarizer: req.Summarizer, TokensAfter: 0},
		Event: &timeline.Event{Kind: timeline.Finished, Data: data},
	})
	if err != nil {
		return contract.FinishResult{}, err
	}
	if before.Outcome == "" {
		a.countRun(ctx, run, lastStage(before))
	}
	if before.Outcome == "" && countsAgainst(run) {
		if err := a.countFailure(ctx, req.Ref, run); err != nil {
			return contract.FinishResult{}, err
		}
	}
	return contract.FinishResult{Outcome: run.Outcome, Kind: run.ErrorKind, Reason: run.Reason}, nil
}

// countFailure counts the run against its conversation, and adds an event when that stops automatic runs.
func (a *Activities) countFailure(ctx context.Context, ref contract.Ref, run runs.Run) error {
	settings, err := conversation.Overlay(a.Config.Settings, run.Settings)
	if err != nil {
		return err
	}
	b, err := a.Store.Breakers.Trip(ctx, breakers.OfConversation(conversationOf(ref)), run.ErrorKind, run.Reason,
		settings.Breaker.Failures)
	if err != nil || !b.Open() {
		return err
	}
	data, err := json.Marshal(map[string]any{
		"code": "breaker_open", "failures": b.Failures, "error_kind": b.ErrorKind,
		"cooldown_seconds": settings.Breaker.CooldownSeconds,
		"detail":           "no compaction starts by itself until the cooldown has passed or somebody asks for one",
	})
	if err != nil {
		return fmt.Errorf("encode a warning: %w", err)
	}
	_, err = a.Store.Timeline.Append(ctx, conversationOf(ref),
		timeline.Event{Kind: timeline.Warning, Run: ref.Run, Data: data})
	return err
}

// countsAgainst reports whether an automatic run of the same kind would end the same way.
func countsAgainst(run runs.Run) bool {
	switch run.Outcome {
	case precis.OutcomeFailed:
		return run.ErrorKind != pipeline.RateLimited
	case precis.OutcomeSkipped:
		return run.ErrorKind == pipeline.NoShrink
	}
	return false
}
