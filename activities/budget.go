package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store/modelcalls"
	"precis/internal/store/timeline"
	"precis/pipeline"
	"precis/pipeline/transcript/request"
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
	limit, err := a.dailyBudget(view)
	if err != nil || limit <= 0 {
		return contract.TenantBudget{}, err
	}
	used, err := a.Store.ModelCalls.TokensUsed(ctx, view.Conversation.Ref.Tenant, today())
	return contract.TenantBudget{Limit: limit, Used: int(used)}, err
}

// dailyBudget is what the tenant may spend in a day, 0: no bound.
func (a *Activities) dailyBudget(view conversation.View) (int, error) {
	settings, err := conversation.Overlay(a.Config.Settings, view.Conversation.TenantSettings)
	return settings.TenantDailyTokenBudget, err
}

// today is when the budgets of the day began.
func today() time.Time { return time.Now().UTC().Truncate(24 * time.Hour) }

// booking is the prepared request as the ledger books it before it is sent: with the most that it may cost, and the
// budgets that it has to fit.
func (a *Activities) booking(w writing, input []byte) (modelcalls.Call, error) {
	req := w.req
	daily, err := a.dailyBudget(w.view)
	if err != nil {
		return modelcalls.Call{}, err
	}
	tokens := req.InputTokens
	if tokens == 0 { // an earlier build scheduled the activity
		tokens = pipeline.EstimateText(string(input))
	}
	return modelcalls.Call{
		Call: req.Call, Attempt: w.at.number, Vendor: req.Summarizer.Vendor, Model: req.Summarizer.Model,
		Request: input, Estimate: int64(tokens) + int64(a.allowedOutput(req, input)),
		Budgets: modelcalls.Budgets{
			Run: int64(w.view.Settings.RunTokenBudget), Tenant: int64(daily), Since: today(),
		},
	}, nil
}

// allowedOutput is the most that the model may write, in tokens. A request in the agent's own form may have a limit of
// the agent's.
func (a *Activities) allowedOutput(req contract.SummarizeRequest, input []byte) int {
	limit := req.MaxOutput
	if req.Summarizer.Kind != pipeline.SummarizerExternal {
		limit = max(limit, ownLimit(input))
	}
	if known, _ := a.installation.Models.Lookup(req.Summarizer.Vendor, req.Summarizer.Model); known.MaxOutput > 0 &&
		(limit == 0 || limit > known.MaxOutput) {
		limit = known.MaxOutput
	}
	if limit == 0 {
		limit = request.DefaultMaxTokens
	}
	return limit
}

// ownLimit is the output limit that a request in the agent's form has of its own, in tokens; 0: none. Vendors take a
// number in any form.
func ownLimit(body []byte) int {
	var own struct {
		Chat      float64 `json:"max_completion_tokens"`
		Messages  float64 `json:"max_tokens"`
		Responses float64 `json:"max_output_tokens"`
		Google    struct {
			MaxOutput float64 `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &own); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return 0
	}
	return int(min(max(own.Chat, own.Messages, own.Responses, own.Google.MaxOutput), math.MaxInt32))
}

// overBudget is the failure of a call that was not made, in the words that name the setting.
func overBudget(e *modelcalls.BudgetError) error {
	setting := "run_token_budget"
	if e.OfTenant {
		setting = "tenant_daily_token_budget"
	}
	return pipeline.Errorf(pipeline.BudgetExceeded, "%w (%s)", e, setting)
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
