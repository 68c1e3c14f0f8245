package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/pipeline"
)

// newBody returns a conversation to create, with every field set that another body can differ in.
func newBody() conversations.NewConversation {
	return conversations.NewConversation{
		ID: "c1", Format: "anthropic", Vendor: "anthropic", Model: "m", Window: 200_000, MaxOutput: 8192,
		System: json.RawMessage(`[{"type":"text","text":"s"}]`), Tools: json.RawMessage(`[]`),
		Envelope: json.RawMessage(`{"messages":[]}`), Settings: json.RawMessage(`{"digest":"never"}`),
		Metadata: json.RawMessage(`{"a":1}`),
	}
}

func TestCreateConversation(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	body := newBody()

	first, created, err := s.Conversations.Create(t.Context(), store.DefaultTenant, body)
	if err != nil || !created {
		t.Fatalf("created %t, %v", created, err)
	}
	want := conversations.Conversation{
		OverheadTokens: pipeline.EstimateText(string(body.System)) + pipeline.EstimateText(string(body.Tools)),
		Ref:            store.ConversationRef{Tenant: "default", ID: "c1"}, Format: "anthropic", Vendor: "anthropic",
		Model: "m", Window: 200_000, MaxOutput: 8192, System: body.System, Tools: body.Tools, Envelope: body.Envelope,
		Settings: body.Settings, Metadata: body.Metadata,
	}
	ignore := cmp.Options{
		cmpopts.IgnoreFields(conversations.Conversation{}, "CID", "Created", "Now", "SealChain", "SyncChain"),
	}
	if diff := cmp.Diff(want, first, ignore); diff != "" {
		t.Error(diff)
	}

	t.Run("SameAgain", func(t *testing.T) {
		again, created, err := s.Conversations.Create(t.Context(), store.DefaultTenant, body)
		if err != nil || created {
			t.Fatalf("created %t, %v", created, err)
		}
		if diff := cmp.Diff(first, again, ignore); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("OtherBody", func(t *testing.T) {
		for name, change := range map[string]func(*conversations.NewConversation){
			"format": func(n *conversations.NewConversation) { n.Format = "openai" },
			"model":  func(n *conversations.NewConversation) { n.Model = "n" },
			"window": func(n *conversations.NewConversation) { n.Window++ },
			"system": func(
				n *conversations.NewConversation,
			) {
				n.System = json.RawMessage(`[{"type":"text","text": "s"}]`)
			},
			"none": func(n *conversations.NewConversation) { n.Metadata = nil },
			// The same value in another field is another body.
			"moved": func(n *conversations.NewConversation) { n.System, n.Tools = nil, n.System },
		} {
			other := body
			change(&other)
			_, _, err := s.Conversations.Create(t.Context(), store.DefaultTenant, other)
			if !errors.Is(err, store.ErrConflict) || store.ConflictReasonOf(err) != store.ConflictDifferent {
				t.Errorf("%s: error %v", name, err)
			}
		}
	})
}

func TestCreateConversationInvalid(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)

	t.Run("Invalid", func(t *testing.T) {
		for _, n := range []conversations.NewConversation{
			{ID: "x"},
			{ID: strings.Repeat("x", 161), Format: "openai"},
			{ID: "a\x00b", Format: "openai"},
			{ID: "a\xffb", Format: "openai"},
			{ID: "x", Format: "openai", Window: -1},
			{ID: "x", Format: "openai", Model: "a\nb"},
		} {
			if _, _, err := s.Conversations.Create(t.Context(), store.DefaultTenant, n); !errors.Is(err,
				store.ErrInvalid) {
				t.Errorf("%+v: error %v", n, err)
			}
		}
	})
	t.Run("NoTenant", func(t *testing.T) {
		if _, _, err := s.Conversations.Create(t.Context(), "nobody", newBody()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("error %v", err)
		}
	})
}

func TestCreateConversationMakesAnID(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	c, created, err := s.Conversations.Create(t.Context(), store.DefaultTenant,
		conversations.NewConversation{Format: "openai"})
	if err != nil || !created || c.Ref.ID == "" {
		t.Errorf("%q created %t, %v", c.Ref.ID, created, err)
	}
}

// If many callers create the same id at once, one creates it and all get it.
func TestCreateConversationRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for round := range 30 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		made := 0
		for range 8 {
			wg.Go(func() {
				_, created, err := s.Conversations.Create(t.Context(), store.DefaultTenant,
					conversations.NewConversation{ID: fmt.Sprint("c", round), Format: "openai"})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if created {
					made++
				}
			})
		}
		wg.Wait()
		if made != 1 {
			t.Fatalf("round %d: created %d times", round, made)
		}
	}
}

func TestUpdateConversation(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 1)
	tools, model, window := json.RawMessage(`[{"name":"t"}]`), "other", 32_000
	if _, err := s.Changes.Update(t.Context(), ref,
		conversations.Patch{Tools: &tools, Model: &model, Window: &window}); err != nil {
		t.Fatal(err)
	}
	c, err := s.Conversations.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != model || c.Vendor != "anthropic" || c.Window != window || string(c.Tools) != string(tools) ||
		c.HeadSeq != 2 {
		t.Errorf("%+v", c)
	}
	negative := -1
	if _, err := s.Changes.Update(t.Context(), ref, conversations.Patch{Window: &negative}); !errors.Is(err,
		store.ErrInvalid) {
		t.Errorf("error %v", err)
	}
	// The body with which it was created still matches.
	if _, created, err := s.Conversations.Create(t.Context(), store.DefaultTenant,
		conversations.NewConversation{ID: "c", Format: "anthropic", Vendor: "anthropic", Model: "m"}); err != nil ||
		created {
		t.Errorf("created %t, %v", created, err)
	}
	var none json.RawMessage
	if _, err := s.Changes.Update(t.Context(), ref, conversations.Patch{Tools: &none}); err != nil {
		t.Fatal(err)
	}
	if c, err = s.Conversations.Get(t.Context(), ref); err != nil || c.Tools != nil {
		t.Errorf("tools %q, %v", c.Tools, err)
	}
}

func TestListConversations(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	var want []string
	for i := range 7 {
		want = append([]string{newConversation(t, s, fmt.Sprint("c", i)).ID}, want...)
	}
	var got []string
	cursor := ""
	for {
		page, next, err := s.Conversations.List(t.Context(), store.DefaultTenant, cursor, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			got = append(got, c.Ref.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := s.Conversations.List(t.Context(), store.DefaultTenant, "nonsense", 3); !errors.Is(err,
		store.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}
