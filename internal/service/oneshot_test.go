package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
	"precis/internal/testkit/vendorserver"
)

func list(n int) []json.RawMessage {
	var out []json.RawMessage
	for range n {
		out = append(out, user("SECRET question"), assistant("an answer "+abc(400)))
	}
	return append(out, user("the last question"))
}

func TestCompactOnce(t *testing.T) {
	t.Parallel()
	_, s := served(t, always("SUM"))
	pin := "never push"
	got, err := s.CompactOnce(t.Context(), tenant, service.OneShotRequest{
		Format: "auto", Model: wire.Model{Vendor: "openai", Name: "test-agent", ContextWindow: 16000},
		Messages: list(8), State: map[string]wire.StateValue{"pins": {Text: &pin}}, Focus: "the last question",
	})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, m := range got.Messages {
		text += string(m) + "\n"
	}
	if got.Run.Outcome != precis.OutcomeApplied || got.Run.Focus == "" || strings.Count(text, "SUM: ") != 1 ||
		strings.Count(text, pin) != 1 ||
		!strings.HasSuffix(text, string(user("the last question"))+"\n") || strings.Contains(text, "SECRET") ||
		got.Stats.Marker == nil {
		t.Errorf("%+v\n%s", got.Run, text)
	}
	// Nothing is kept but the record.
	ref := storeRef{Tenant: tenant, ID: got.Run.Conversation}
	_, err = s.Context(t.Context(), ref, service.ContextRequest{})
	code(t, err, service.CodeNotFound)
	c, err := s.GetConversation(t.Context(), ref)
	if err != nil || !c.ContentDeleted || c.State != nil {
		t.Errorf("%+v, %v", c, err)
	}
	run, err := s.GetRun(t.Context(), store.RunRef{Tenant: tenant, ID: got.Run.ID}, []string{"prompts", "summary"})
	if err != nil || run.Focus != "" || run.RunTexts == nil || run.Deleted == 0 {
		t.Errorf("%+v, %v", run, err)
	}

	kept, err := s.CompactOnce(t.Context(), tenant,
		service.OneShotRequest{Format: "openai", Messages: list(8), Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if c := contextOf(t, s, storeRef{
		Tenant: tenant,
		ID:     kept.Run.Conversation,
	}); len(c.Messages) != len(kept.Messages) {
		t.Errorf("%d messages, and %d were given", len(c.Messages), len(kept.Messages))
	}
}

func TestCompactOnceRefuses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for field, req := range map[string]service.OneShotRequest{
		"messages":    {Format: "openai"},
		"messages[0]": {Format: "openai", Messages: []json.RawMessage{json.RawMessage(`{"role":"nobody"}`)}},
		"format":      {Format: "auto", Messages: []json.RawMessage{json.RawMessage(`{"what":"is this"}`)}},
		"state.nope":  {Format: "openai", Messages: list(1), State: map[string]wire.StateValue{"nope": {}}},
		"settings":    {Format: "openai", Messages: list(1), Settings: json.RawMessage(`{"nope":1}`)},
	} {
		_, err := s.CompactOnce(t.Context(), tenant, req)
		if e := code(t, err, service.CodeInvalid); e.Field != field {
			t.Errorf("field %q %q, wanted %q", e.Field, e.Detail, field)
		}
	}
	found, _, err := s.Store.Conversations.List(t.Context(), tenant, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		if c.ContentDeleted.IsZero() {
			t.Errorf("conversation %s of a refused call is there", c.Ref)
		}
	}
}

// A caller that goes away takes the run with it, and leaves nothing.
func TestCompactOnceEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	slow := summary("SUM")
	slow.Gate = vendorserver.NewGate()
	sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{slow}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.CompactOnce(ctx, tenant, service.OneShotRequest{
			Format: "openai", Model: wire.Model{Vendor: "openai", Name: "test-agent"}, Messages: list(8),
		})
		ended <- err
	}()
	if _, err := sys.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	found, _, err := s.Store.Conversations.List(t.Context(), tenant, "", 0)
	if err != nil || len(found) != 1 || found[0].ContentDeleted.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
	if run := runsOf(t, s, found[0].Ref)[0]; run.Outcome != precis.OutcomeCancelled {
		t.Errorf("the run is %q", run.Outcome)
	}
}

// What a caller that died left is removed by a worker.
func TestAbandonedOneShotsAreForgotten(t *testing.T) {
	t.Parallel()
	s := newService(t)
	left, _, err := s.Store.Conversations.Create(t.Context(), tenant,
		conversations.NewConversation{Format: "openai", Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	kept := create(t, s, window(1000), "")
	working, _, err := s.Store.Conversations.Create(t.Context(), tenant,
		conversations.NewConversation{Format: "openai", Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Store.Runs.Request(t.Context(), working.Ref, runs.Request{Kind: "manual"}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Store.Retention.ForgetAbandoned(t.Context(), time.Hour, 10); err != nil || n != 0 {
		t.Errorf("%d are gone that are new, %v", n, err)
	}
	if n, err := s.Store.Retention.ForgetAbandoned(t.Context(), 0, 10); err != nil || n != 1 {
		t.Errorf("%d are gone, %v", n, err)
	}
	for ref, gone := range map[storeRef]bool{left.Ref: true, kept: false, working.Ref: false} {
		c, err := s.Store.Conversations.Get(t.Context(), ref)
		if err != nil || c.ContentDeleted.IsZero() == gone {
			t.Errorf("%s: deleted %s, %v", ref, c.ContentDeleted, err)
		}
	}
}
