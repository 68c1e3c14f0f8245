package service_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// setBudget sets the daily token budget of the tenant.
func setBudget(t *testing.T, s *service.Service, tokens int64) {
	t.Helper()
	settings := fmt.Appendf(nil, `{"tenant_daily_token_budget":%d}`, tokens)
	if _, err := s.SetTenantSettings(t.Context(), tenant, settings, true); err != nil {
		t.Fatal(err)
	}
}

// tokensUsed returns the tokens that the tenant has used today.
func tokensUsed(t *testing.T, s *service.Service) int64 {
	t.Helper()
	used, err := s.Store.ModelCalls.TokensUsed(t.Context(), tenant, time.Now().UTC().Truncate(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// large creates a conversation with messages to summarize.
func large(t *testing.T, s *service.Service, settings string) storeRef {
	t.Helper()
	ref := create(t, s, window(16000), settings)
	appendTo(t, s, ref, user("u1"), assistant(abc(4000)), user("u2"))
	return ref
}

// wantWarning checks that the timeline of a conversation has a warning with the text.
func wantWarning(t *testing.T, s *service.Service, ref storeRef, text string) {
	t.Helper()
	events, err := s.Events(t.Context(), ref, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Kind == timeline.Warning && strings.Contains(string(e.Data), text) {
			return
		}
	}
	t.Errorf("the timeline has no warning %q", text)
}

// When a tenant's daily token budget is spent, no model is called: the digest is used, and the record and the timeline
// have the reason.
func TestTenantBudget(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	setBudget(t, s, 100000)
	if run := compact(t, s, large(t, s, ""), service.CompactRequest{}); run.Outcome != precis.OutcomeApplied ||
		run.Digest {
		t.Fatalf("%+v", run)
	}
	if used := tokensUsed(t, s); used < 1000 {
		t.Fatalf("%d tokens used", used)
	}

	setBudget(t, s, 1000) // less than was used
	ref := large(t, s, "")
	run := compact(t, s, ref, service.CompactRequest{})
	if run.Outcome != precis.OutcomeApplied || !run.Digest {
		t.Errorf("%+v", run)
	}
	wantWarning(t, s, ref, "tenant_budget_exceeded")
	full, err := s.GetRun(t.Context(), store.RunRef{Tenant: tenant, ID: run.ID}, nil)
	if err != nil || !strings.Contains(string(full.Steps[1].Numbers), "tenant_budget") {
		t.Errorf("the record does not mention the budget: %v", err)
	}
	run = compact(t, s, large(t, s, `{"digest":"never"}`), service.CompactRequest{})
	if run.Outcome != precis.OutcomeFailed || run.ErrorKind != pipeline.BudgetExceeded ||
		!strings.Contains(run.Reason, "tenant_daily_token_budget") {
		t.Errorf("%s %s %q", run.Outcome, run.ErrorKind, run.Reason)
	}

	// The rest of the budget bounds a run too: this one would exceed it.
	setBudget(t, s, tokensUsed(t, s)+500)
	if run := compact(t, s, large(t, s, ""), service.CompactRequest{}); run.Outcome != precis.OutcomeApplied ||
		!run.Digest {
		t.Errorf("%+v", run)
	}
	if n := len(sys.Vendor.Requests()); n != 1 {
		t.Errorf("%d model calls", n)
	}

	groups, err := s.Usage(t.Context(), tenant, "conversation", time.Time{})
	if err != nil || len(groups) != 1 || groups[0].Calls != 1 || groups[0].Input < 1000 {
		t.Errorf("%+v, %v", groups, err)
	}
	_, err = s.Usage(t.Context(), tenant, "colour", time.Time{})
	code(t, err, service.CodeInvalid)
}

// A tenant's budget does not bound another tenant.
func TestTenantBudgetIsOfOneTenant(t *testing.T) {
	t.Parallel()
	_, s := served(t, always("SUM"))
	setBudget(t, s, 1)
	if _, err := s.Store.Tenants.Ensure(t.Context(), "other", ""); err != nil {
		t.Fatal(err)
	}
	c, _, err := s.CreateConversation(t.Context(), "other",
		service.NewConversation{Format: "openai", Model: window(16000).Model})
	if err != nil {
		t.Fatal(err)
	}
	other := storeRef{Tenant: "other", ID: c.ID}
	appendTo(t, s, other, user("u1"), assistant(abc(4000)), user("u2"))
	if run := compact(t, s, other, service.CompactRequest{}); run.Outcome != precis.OutcomeApplied || run.Digest {
		t.Errorf("%+v", run)
	}
}
