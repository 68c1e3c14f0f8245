package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/store/schema"
	"precis/internal/testkit/stacktest"
	"precis/pipeline"
)

// newStore returns a store on a migrated schema of its own, and the URL for direct access to the schema.
func newStore(t testing.TB) (*store.Store, string) {
	t.Helper()
	url := stacktest.DatabaseURL(t)
	if err := schema.Migrate(t.Context(), url, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{MaxConns: 12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, url
}

// raw returns a pool on the store's schema, for SQL that the store does not have.
func raw(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func newConversation(t testing.TB, s *store.Store, id string) store.ConversationRef {
	t.Helper()
	c, _, err := s.Conversations.Create(t.Context(), store.DefaultTenant,
		conversations.NewConversation{ID: id, Format: "anthropic", Vendor: "anthropic", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return c.Ref
}

func message(role pipeline.Role, text string) conversations.NewMessage {
	return conversations.NewMessage{
		Role: role, Genuine: role == pipeline.RoleUser,
		Native: fmt.Appendf(nil, `{"role":%q,"content":%q}`, role, text), Chars: utf8.RuneCountInString(text),
		Tokens: 1 + len(text)/4,
	}
}

// appendTurns appends n turns of two messages.
func appendTurns(t testing.TB, s *store.Store, ref store.ConversationRef, n int) changes.AppendResult {
	t.Helper()
	var list []conversations.NewMessage
	for i := range n {
		list = append(list, message(pipeline.RoleUser, fmt.Sprintf("question %d", i)),
			message(pipeline.RoleAssistant, fmt.Sprintf("answer %d", i)))
	}
	res, err := s.Changes.Append(t.Context(), ref, list, changes.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// request requests a manual run.
func request(t testing.TB, s *store.Store, ref store.ConversationRef) runs.Run {
	t.Helper()
	r, attached, err := s.Runs.Request(t.Context(), ref, runs.Request{Kind: "manual"})
	if err != nil {
		t.Fatal(err)
	}
	if attached {
		t.Fatalf("attached to run %s, wanted a new one", r.Ref.ID)
	}
	return r
}

// prepare requests a run that only prepares.
func prepare(t testing.TB, s *store.Store, ref store.ConversationRef) runs.Run {
	t.Helper()
	r, attached, err := s.Runs.Request(t.Context(), ref, runs.Request{Kind: "background", Prepare: true})
	if err != nil || attached {
		t.Fatalf("attached %t, %v", attached, err)
	}
	return r
}

// plan stores a summary and returns a marker with it for all messages up to upTo, based on the active marker.
func plan(t testing.TB, s *store.Store, ref store.ConversationRef, upTo int64, summary string) markers.NewMarker {
	t.Helper()
	v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Artifacts.Put(t.Context(), ref, "summary", []byte(summary))
	if err != nil {
		t.Fatal(err)
	}
	chain, ok := v.ChainAt(upTo)
	if !ok {
		t.Fatalf("message %d is not live", upTo)
	}
	n := markers.NewMarker{
		CoversFrom: 1, CoversTo: upTo, CoveredMessages: int(upTo), CoveredChain: chain, Summary: a.SHA256,
		SummaryTokens: 7, TokensBefore: 1000, TokensAfter: 100,
	}
	if v.Marker != nil {
		n.Base = v.Marker.ID
		n.CoversFrom = min(v.Marker.CoversTo+1, upTo)
		n.CoveredMessages = int(upTo - n.CoversFrom + 1)
	}
	return n
}

// compact requests a run and applies its marker.
func compact(t testing.TB, s *store.Store, ref store.ConversationRef, upTo int64, summary string) markers.Marker {
	t.Helper()
	m, err := s.Markers.Apply(t.Context(), request(t, s, ref).Ref, plan(t, s, ref, upTo, summary),
		runs.Facts{Summarizer: "self"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// contextOf returns the summary and messages of the current context as text.
func contextOf(t testing.TB, s *store.Store, ref store.ConversationRef) string {
	t.Helper()
	v, err := s.Contexts.Read(context.Background(), ref, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "summary: %s\n", v.Summary)
	for _, list := range [][]conversations.Message{v.Carried, v.Tail} {
		for _, m := range list {
			fmt.Fprintf(&b, "%d %s\n", m.Seq, m.Native)
		}
	}
	return b.String()
}
