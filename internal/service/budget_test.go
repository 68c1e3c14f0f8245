package service_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// Beyond a tenant's daily tokens no model is asked: the digest stands in, and the record and the timeline say so.
func TestTenantBudget(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	setBudget := func(tokens string) {
		t.Helper()
		if _, err := s.SetTenantSettings(t.Context(), tenant,
			json.RawMessage(`{"tenant_daily_token_budget":`+tokens+`}`), true); err != nil {
			t.Fatal(err)
		}
	}
	talk := func(settings string) storeRef {
		t.Helper()
		ref := create(t, s, window(16000), settings)
		appendTo(t, s, ref, user("u1"), assistant(abc(4000)), user("u2"))
		return ref
	}
	setBudget("100000")
	if run := compact(t, s, talk(""), service.CompactRequest{}); run.Outcome != precis.OutcomeApplied || run.Digest {
		t.Fatalf("%+v", run)
	}
	used, err := s.Store.ModelCalls.TokensUsed(t.Context(), tenant, time.Now().UTC().Truncate(24*time.Hour))
	if err != nil || used < 1000 {
		t.Fatalf("%d tokens, %v", used, err)
	}

	setBudget("1000") // less than that
	ref := talk("")
	run := compact(t, s, ref, service.CompactRequest{})
	if run.Outcome != precis.OutcomeApplied || !run.Digest {
		t.Errorf("%+v", run)
	}
	told := false
	events, err := s.Events(t.Context(), ref, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		told = told || e.Kind == timeline.Warning && strings.Contains(string(e.Data), "tenant_budget_exceeded")
	}
	if !told {
		t.Error("no event tells of it")
	}
	full, err := s.GetRun(t.Context(), store.RunRef{Tenant: tenant, ID: run.ID}, nil)
	if err != nil || !strings.Contains(string(full.Steps[1].Numbers), "tenant_budget") {
		t.Errorf("the record does not: %v", err)
	}
	run = compact(t, s, talk(`{"digest":"never"}`), service.CompactRequest{})
	if run.Outcome != precis.OutcomeFailed || run.ErrorKind != pipeline.BudgetExceeded ||
		!strings.Contains(run.Reason, "tenant_daily_token_budget") {
		t.Errorf("%s %s %q", run.Outcome, run.ErrorKind, run.Reason)
	}

	// What is left of the day bounds a run too: this one would be over it.
	used, err = s.Store.ModelCalls.TokensUsed(t.Context(), tenant, time.Now().UTC().Truncate(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	setBudget(quotedInt(used + 500))
	if run := compact(t, s, talk(""), service.CompactRequest{}); run.Outcome != precis.OutcomeApplied || !run.Digest {
		t.Errorf("%+v", run)
	}
	if n := len(sys.Vendor.Requests()); n != 1 {
		t.Errorf("%d model calls", n)
	}

	// Another tenant has a budget of its own.
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

	groups, err := s.Usage(t.Context(), tenant, "conversation", time.Time{})
	if err != nil || len(groups) != 1 || groups[0].Calls != 1 || groups[0].Input < 1000 {
		t.Errorf("%+v, %v", groups, err)
	}
	_, err = s.Usage(t.Context(), tenant, "colour", time.Time{})
	code(t, err, service.CodeInvalid)
}

func quotedInt(n int64) string {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // a number
	}
	return string(b)
}
