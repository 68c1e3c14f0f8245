package store_test

import (
	"encoding/json"
	"testing"

	"precis"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/evidence"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
)

// A text that two conversations share stays when the content of one is deleted, and both verify.
func TestSharedTextVerifiesAfterContentIsRemoved(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	var refs []store.ConversationRef
	for _, id := range []string{"removed", "kept"} {
		c, _, err := s.Conversations.Create(t.Context(), store.DefaultTenant, conversations.NewConversation{
			ID: id, Format: "anthropic", Vendor: "v", Model: "m", System: json.RawMessage(`"x"`),
		})
		if err != nil {
			t.Fatal(err)
		}
		appendTurns(t, s, c.Ref, 2)
		r, _, err := s.Runs.Request(t.Context(), c.Ref, runs.Request{Kind: "manual"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Runs.Start(t.Context(), r.Ref, "temporal-run"); err != nil {
			t.Fatal(err)
		}
		call := modelcalls.Call{Call: 1, Attempt: 1, Vendor: "v", Model: "m", Request: []byte("the same request")}
		if _, err := s.ModelCalls.Begin(t.Context(), r.Ref, call); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ModelCalls.Finish(t.Context(), r.Ref, call,
			modelcalls.Result{Input: 5, Output: 3, Answer: []byte("the same answer")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Runs.Finish(t.Context(), r.Ref, runs.End{Outcome: precis.OutcomeCancelled}); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, c.Ref)
	}
	if err := s.Retention.DeleteContent(t.Context(), refs[0]); err != nil {
		t.Fatal(err)
	}
	removed := findingsOf(t, s, refs[0])
	texts := 0
	for _, f := range removed {
		if f.State != evidence.Pruned {
			t.Errorf("its content was removed, and it finds\n%s", textOf([]evidence.Finding{f}))
		}
		if f.Table == "artifacts" {
			texts++
		}
	}
	if texts != 2 {
		t.Errorf("%d texts are pruned, not the request and the answer:\n%s", texts, textOf(removed))
	}
	if kept := findingsOf(t, s, refs[1]); len(kept) > 0 {
		t.Errorf("the other has lost\n%s", textOf(kept))
	}
}
