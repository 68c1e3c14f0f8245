package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"precis/internal/conversation"
	"precis/internal/store"
	"precis/pipeline"
)

// Trigger takes the run up and decides, with the numbers of this moment, whether it is still due: what asked
// for it may be long ago, and another run may have compacted the conversation since.
func (a *Activities) Trigger(ctx context.Context, req TriggerRequest) (TriggerResult, error) {
	run, err := a.Store.StartRun(ctx, req.run(), activity.GetInfo(ctx).WorkflowExecution.RunID)
	if err != nil {
		return TriggerResult{}, err
	}
	if run.Outcome != "" {
		// A workflow that was started again for a run that has ended: what is kept of the first time must not lead
		// it through the stages once more.
		return TriggerResult{Skip: fmt.Sprintf("the run has ended %s already", run.Outcome)}, nil
	}
	return once(ctx, a, StageTrigger, req.Ref, func() (TriggerResult, error) {
		view, err := a.view(ctx, req.Ref, run, 0)
		if err != nil {
			return TriggerResult{}, err
		}
		in := view.TriggerInput(view.Context())
		in.Manual = run.Kind == pipeline.TriggerManual
		in.Overflow = run.Kind == pipeline.TriggerOverflow
		decision := pipeline.EvaluateTrigger(in, view.Settings)
		result := TriggerResult{
			Decision:    decision,
			Head:        view.Head(),
			Base:        view.Conversation.ActiveMarker,
			Manual:      in.Manual,
			Full:        run.Full,
			Budget:      time.Duration(view.Settings.RunTimeBudgetSeconds) * time.Second,
			TokenBudget: view.Settings.RunTokenBudget,
			ModelQueue:  a.Config.Worker.LLMTaskQueue,
		}
		if !decision.Fired {
			result.Skip = decision.Reason
		}
		budget, err := a.tenantBudget(ctx, view)
		if err != nil {
			return result, err
		}
		if left := budget.left(); left > 0 && (result.TokenBudget == 0 || left < result.TokenBudget) {
			result.TokenBudget = left
		}
		numbers, err := json.Marshal(map[string]any{"trigger": decision, "head": result.Head})
		if err != nil {
			return result, fmt.Errorf("encode the decision: %w", err)
		}
		return result, a.Store.RecordFacts(ctx, req.run(), store.RunFacts{TokensBefore: decision.Used, Numbers: numbers})
	})
}

// view loads the run's conversation with the settings that counted when the run was asked for.
func (a *Activities) view(ctx context.Context, ref Ref, run store.Run, upTo int64) (conversation.View, error) {
	return a.load(ctx, ref, run, upTo, conversation.Load)
}

// planView loads what the plan works on: for a plan that replaces a digest, the messages beneath it.
func (a *Activities) planView(ctx context.Context, ref Ref, run store.Run, upTo int64, beneathDigest bool) (conversation.View, error) {
	if beneathDigest {
		return a.load(ctx, ref, run, upTo, conversation.LoadBeneathDigest)
	}
	return a.view(ctx, ref, run, upTo)
}

type loader func(context.Context, *store.Store, store.ConversationRef, pipeline.Settings, int64) (conversation.View, error)

func (a *Activities) load(ctx context.Context, ref Ref, run store.Run, upTo int64, load loader) (conversation.View, error) {
	v, err := load(ctx, a.Store, ref.conversation(), a.Config.Settings, upTo)
	if err != nil {
		return v, err
	}
	if len(run.Settings) > 0 {
		if v.Settings, err = conversation.Overlay(pipeline.DefaultSettings(), run.Settings); err != nil {
			return v, err
		}
	}
	return v, nil
}
