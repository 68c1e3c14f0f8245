package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"precis/internal/conversation"
	"precis/internal/store"
	"precis/pipeline"
)

// tenantBudget is what a tenant's runs may send and receive today, and have.
type tenantBudget struct {
	Limit int `json:"limit"`
	Used  int `json:"used"`
}

// left is what remains of it, 0 when nothing does or nothing is bounded.
func (b tenantBudget) left() int { return max(b.Limit-b.Used, 0) }

// spent says whether no model may be asked any more.
func (b tenantBudget) spent() bool { return b.Limit > 0 && b.Used >= b.Limit }

func (b tenantBudget) String() string {
	return fmt.Sprintf("the tenant's runs have used %d of %d tokens today (tenant_daily_token_budget)", b.Used, b.Limit)
}

// tenantBudget looks at what the tenant has used since midnight, UTC. A conversation's own settings do not count: they
// are the client's to set.
func (a *Activities) tenantBudget(ctx context.Context, view conversation.View) (tenantBudget, error) {
	return given(ctx, "tenant_budget", func() (tenantBudget, error) { return a.spentToday(ctx, view) })
}

func (a *Activities) spentToday(ctx context.Context, view conversation.View) (tenantBudget, error) {
	settings, err := conversation.Overlay(a.Config.Settings, view.Conversation.TenantSettings)
	if err != nil || settings.TenantDailyTokenBudget <= 0 {
		return tenantBudget{}, err
	}
	used, err := a.Store.TokensUsed(ctx, view.Conversation.Ref.Tenant, time.Now().UTC().Truncate(24*time.Hour))
	return tenantBudget{Limit: settings.TenantDailyTokenBudget, Used: int(used)}, err
}

// withoutModels leaves nothing but the digest of a choice, and says so: on the record and in the timeline.
func (a *Activities) withoutModels(ctx context.Context, ref Ref, choice pipeline.Choice, policy pipeline.DigestPolicy,
	budget tenantBudget,
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
	notesOf(ctx).number("tenant_budget", budget)
	data, err := json.Marshal(map[string]any{
		"code": "tenant_budget_exceeded", "detail": budget.String() + ": the digest stands in", "limit": budget.Limit,
		"used": budget.Used,
	})
	if err != nil {
		return choice, fmt.Errorf("encode a warning: %w", err)
	}
	return choice, a.tell(ctx, ref, store.Event{Kind: store.EventWarning, Data: data})
}
