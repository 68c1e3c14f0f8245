package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"precis/internal/store"
	"precis/internal/store/access"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
	"precis/pipeline"
)

func keyed(key, body string) access.KeyedRequest {
	return access.KeyedRequest{Tenant: store.DefaultTenant, Key: key, Request: store.Hash(sha256.Sum256([]byte(body)))}
}

func claim(t *testing.T, s *store.Store, k access.KeyedRequest, want access.KeyState) access.KeyedAnswer {
	t.Helper()
	state, answer, err := s.Idempotency.Claim(t.Context(), k)
	if err != nil || state != want {
		t.Fatalf("key %q: %s, %v, want %s", k.Key, state, err, want)
	}
	return answer
}

// expireKey ends the claim of a key, as if its holder had died.
func expireKey(t *testing.T, db *pgxpool.Pool, k access.KeyedRequest) {
	t.Helper()
	if _, err := db.Exec(t.Context(),
		`UPDATE idempotency_keys SET claimed_until = now() - interval '1 second' WHERE key = $1`, k.Key); err != nil {
		t.Fatal(err)
	}
}

// ageKey makes a key older than the day for which answers are kept.
func ageKey(t *testing.T, db *pgxpool.Pool, k access.KeyedRequest) {
	t.Helper()
	if _, err := db.Exec(t.Context(),
		`UPDATE idempotency_keys SET created_at = now() - interval '25 hours' WHERE key = $1`, k.Key); err != nil {
		t.Fatal(err)
	}
}

// writeWithKey appends a message under a key.
func writeWithKey(t *testing.T, s *store.Store, ref store.ConversationRef, k access.KeyedRequest) {
	t.Helper()
	if _, err := s.Changes.Append(access.WithKey(t.Context(), k), ref,
		[]conversations.NewMessage{message(pipeline.RoleUser, "x")}, changes.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestKeyedRequests(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	db := raw(t, url)

	t.Run("AnsweredOnce", func(t *testing.T) {
		k := keyed("answered", "body")
		claim(t, s, k, access.KeyOurs)
		claim(t, s, k, access.KeyBusy)
		want := access.KeyedAnswer{
			Status: 201, Headers: map[string]string{"Location": "/v1/x"},
			Body: bytes.Repeat([]byte("\x00{}<\xff"), 1000),
		}
		if err := s.Idempotency.Answer(t.Context(), k, want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, claim(t, s, k, access.KeyAnswered)); diff != "" {
			t.Error(diff)
		}
		claim(t, s, keyed("answered", "other body"), access.KeyOther)
		// Another tenant can use the same key.
		if _, err := s.Tenants.Ensure(t.Context(), "other", ""); err != nil {
			t.Fatal(err)
		}
		theirs := keyed("answered", "other body")
		theirs.Tenant = "other"
		claim(t, s, theirs, access.KeyOurs)
		// A day later the key is free for any request.
		ageKey(t, db, k)
		claim(t, s, keyed("answered", "other body"), access.KeyOurs)
	})
	t.Run("Extended", func(t *testing.T) {
		k := keyed("held", "body")
		claim(t, s, k, access.KeyOurs)
		expireKey(t, db, k)
		if err := s.Idempotency.Extend(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		claim(t, s, k, access.KeyBusy)
	})
	t.Run("OldKeysAreDeleted", func(t *testing.T) {
		for i := range 30 {
			k := keyed(fmt.Sprint("old", i), "body")
			claim(t, s, k, access.KeyOurs)
			expireKey(t, db, k)
			ageKey(t, db, k)
		}
		claim(t, s, keyed("new", "body"), access.KeyOurs)
		claim(t, s, keyed("newer", "body"), access.KeyOurs)
		var n int
		err := db.QueryRow(t.Context(), `SELECT count(*) FROM idempotency_keys
			WHERE created_at < now() - interval '24 hours' AND key LIKE 'old%'`).Scan(&n)
		if err != nil || n != 0 {
			t.Errorf("%d old keys are left, %v", n, err)
		}
	})
	t.Run("Invalid", func(t *testing.T) {
		for _, key := range []string{"", strings.Repeat("x", 256), "a\nb", "\xff"} {
			if _, _, err := s.Idempotency.Claim(t.Context(), keyed(key, "body")); err == nil {
				t.Errorf("key %q was taken", key)
			}
		}
	})
}

// A key whose request failed may be used again, unless the request had an effect.
func TestKeyedRequestsThatFail(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	db := raw(t, url)
	ref := newConversation(t, s, "c")

	t.Run("FailedWithoutEffect", func(t *testing.T) {
		k := keyed("failed", "body")
		claim(t, s, k, access.KeyOurs)
		if effective, err := s.Idempotency.Release(t.Context(), k); err != nil || effective {
			t.Fatalf("effective %t, %v", effective, err)
		}
		claim(t, s, k, access.KeyOurs)
	})
	t.Run("FailedAfterEffect", func(t *testing.T) {
		k := keyed("effect", "body")
		claim(t, s, k, access.KeyOurs)
		writeWithKey(t, s, ref, k)
		if effective, err := s.Idempotency.Release(t.Context(), k); err != nil || !effective {
			t.Fatalf("effective %t, %v", effective, err)
		}
		claim(t, s, k, access.KeyLost)
		k.Repeatable = true
		claim(t, s, k, access.KeyOurs)
	})
	t.Run("HolderDied", func(t *testing.T) {
		before, after := keyed("died before", "body"), keyed("died after", "body")
		claim(t, s, before, access.KeyOurs)
		expireKey(t, db, before)
		claim(t, s, before, access.KeyOurs)
		claim(t, s, after, access.KeyOurs)
		writeWithKey(t, s, ref, after)
		expireKey(t, db, after)
		claim(t, s, after, access.KeyLost)
	})
	t.Run("RolledBackWrite", func(t *testing.T) {
		k := keyed("rolled back", "body")
		claim(t, s, k, access.KeyOurs)
		stale := int64(12345)
		if _, err := s.Changes.Append(access.WithKey(t.Context(), k), ref, nil,
			changes.AppendOptions{IfSeq: &stale}); err == nil {
			t.Fatal("the append went through")
		}
		if effective, err := s.Idempotency.Release(t.Context(), k); err != nil || effective {
			t.Errorf("effective %t, %v", effective, err)
		}
	})
}

// Of many callers with the same request at once, one gets the key.
func TestKeyedRequestRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for round := range 10 {
		k := keyed(fmt.Sprint("k", round), "body")
		var mu sync.Mutex
		var wg sync.WaitGroup
		ours := 0
		for range 8 {
			wg.Go(func() {
				state, _, err := s.Idempotency.Claim(t.Context(), k)
				if err != nil || (state != access.KeyOurs && state != access.KeyBusy) {
					t.Errorf("%s, %v", state, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if state == access.KeyOurs {
					ours++
				}
			})
		}
		wg.Wait()
		if ours != 1 {
			t.Fatalf("round %d: %d callers had the key", round, ours)
		}
	}
}

func TestEventHeads(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a, b := newConversation(t, s, "a"), newConversation(t, s, "b")
	appendTurns(t, s, a, 1)
	request(t, s, a)
	unknown := store.ConversationRef{Tenant: store.DefaultTenant, ID: "unknown"}
	foreign := store.ConversationRef{Tenant: "other", ID: "a"}
	heads, err := s.Timeline.Heads(t.Context(), []store.ConversationRef{a, b, unknown, foreign, a})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[store.ConversationRef]int64{a: 1, b: 0}, heads); diff != "" {
		t.Error(diff)
	}
}

func TestHasAPIKeys(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	check := func(want bool) {
		t.Helper()
		if has, err := s.Keys.Any(t.Context()); err != nil || has != want {
			t.Errorf("%t, %v, want %t", has, err, want)
		}
	}
	check(false)
	key, _, err := s.Keys.Create(t.Context(), store.DefaultTenant, "", false)
	if err != nil {
		t.Fatal(err)
	}
	check(true)
	if err := s.Keys.Revoke(t.Context(), store.DefaultTenant, key.ID); err != nil {
		t.Fatal(err)
	}
	check(true)
}

// The trace of a request reaches the dispatcher that starts the run's workflow.
func TestATraceGoesWithTheRun(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	parent := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
		TraceFlags: trace.FlagsSampled,
	})
	traced := newConversation(t, s, "traced")
	if _, _, err := s.Runs.Request(trace.ContextWithSpanContext(t.Context(), parent), traced,
		runs.Request{Kind: "manual"}); err != nil {
		t.Fatal(err)
	}
	request(t, s, newConversation(t, s, "untraced"))
	due, err := s.Outbox.Claim(t.Context(), 10, 0)
	if err != nil || len(due) != 2 {
		t.Fatalf("%d due, %v", len(due), err)
	}
	for _, d := range due {
		got := trace.SpanContextFromContext(d.WithTrace(context.Background()))
		if d.Conversation == "traced" && (got.TraceID() != parent.TraceID() || !got.IsSampled()) ||
			d.Conversation == "untraced" && got.IsValid() {
			t.Errorf("%s: %v", d.Conversation, got)
		}
	}
}
