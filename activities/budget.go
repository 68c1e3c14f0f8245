package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// tenantBudget looks at what the tenant has used since midnight, UTC. A conversation's own settings do not count: they
// are the client's to set.
func (a *Activities) tenantBudget(ctx context.Context, at *attempt, notes *contract.Given, view conversation.View) (
	contract.TenantBudget, error,
) {
	return given(at, notes, "tenant_budget", tenantBudgetField, func() (contract.TenantBudget, error) {
		return a.spentToday(ctx, view)
	})
}

func (a *Activities) spentToday(ctx context.Context, view conversation.View) (contract.TenantBudget, error) {
	settings, err := conversation.Overlay(a.Config.Settings, view.Conversation.TenantSettings)
	if err != nil || settings.TenantDailyTokenBudget <= 0 {
		return contract.TenantBudget{}, err
	}
	used, err := a.Store.ModelCalls.TokensUsed(ctx, view.Conversation.Ref.Tenant,
		time.Now().UTC().Truncate(24*time.Hour))
	return contract.TenantBudget{Limit: settings.TenantDailyTokenBudget, Used: int(used)}, err
}

// withoutModels reduces a choice to the digest, and notes that in the record and in the timeline.
func (a *Activities) withoutModels(ctx context.Context, at *attempt, choice pipeline.Choice,
	policy pipeline.DigestPolicy,
	budget contract.TenantBudget,
) (pipeline.Choice, error) {
	if policy == pipeline.DigestNever {
		return choice, pipeline.Errorf(pipeline.BudgetExceeded, "%s, and the digest is switched off", budget)
	}
	for _, s := range choice.Ladder {
		if s.Kind == pipeline.SummarizerExternal {
			choice.Skipped = append(choice.Skipped,
				pipeline.SkippedSummarizer{Model: s.String(), Reason: budget.String()})
		}
	}
	choice.Ladder = []pipeline.Summarizer{{Kind: pipeline.SummarizerDigest}}
	choice.SelfReason = budget.String()
	data, err := json.Marshal(map[string]any{
		"code": "tenant_budget_exceeded", "detail": budget.String() + ": the digest stands in", "limit": budget.Limit,
		"used": budget.Used,
	})
	if err != nil {
		return choice, fmt.Errorf("encode a warning: %w", err)
	}
	return choice, a.addEvent(ctx, at, timeline.Event{Kind: timeline.Warning, Data: data})
}
