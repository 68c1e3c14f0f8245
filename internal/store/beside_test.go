package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/livestate"
	"precis/internal/store/timeline"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 1)
	p, err := s.Replies.Open(t.Context(), ref, time.Hour)
	if err != nil || p.HeadSeq != 2 || p.Epoch != 0 || p.Expires.Sub(p.Opened).Round(time.Minute) != time.Hour ||
		!p.Closed.IsZero() {
		t.Fatalf("%+v, %v", p, err)
	}
	if v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); err != nil || !v.ReplyOpen {
		t.Errorf("open %t, %v", v.ReplyOpen, err)
	}
	if _, err := s.Replies.Open(t.Context(), ref, time.Hour); !errors.Is(err, store.ErrReplyOpen) {
		t.Errorf("error %v", err)
	}
	appendTurns(t, s, ref, 1) // appends are never blocked
	closed, err := s.Replies.Close(t.Context(), ref, p.ID)
	if err != nil || closed.Closed.IsZero() {
		t.Errorf("%+v, %v", closed, err)
	}
	if again, err := s.Replies.Close(t.Context(), ref, p.ID); err != nil || !again.Closed.Equal(closed.Closed) {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := s.Replies.Close(t.Context(), ref, "nope"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if _, err := s.Replies.Open(t.Context(), ref, 0); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("error %v", err)
	}

	// The agent died during the next reply. Its lease expires, and a new reply can be opened.
	dead, err := s.Replies.Open(t.Context(), ref, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, url).Exec(t.Context(), `UPDATE replies SET expires_at = clock_timestamp() WHERE id = $1`,
		dead.ID); err != nil {
		t.Fatal(err)
	}
	next, err := s.Replies.Open(t.Context(), ref, time.Hour)
	if err != nil || next.ID == dead.ID {
		t.Errorf("%+v, %v", next, err)
	}
	if late, err := s.Replies.Close(t.Context(), ref, dead.ID); err != nil || !late.Closed.Equal(late.Expires) {
		t.Errorf("%+v, %v", late, err)
	}
}

func TestEnrichments(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	set := func(key, value string) livestate.Enrichment {
		t.Helper()
		e, err := s.LiveState.Set(t.Context(), ref, key, []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	live := func() map[string]string {
		t.Helper()
		v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range v.Enrichments {
			got[e.Key] = string(e.Value)
		}
		return got
	}
	check := func(when string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, live()); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}

	set("plan", "plan 1")
	check("before any message", map[string]string{"plan": "plan 1"})
	appendTurns(t, s, ref, 1)
	if e := set("plan", "plan 2\x00"); e.Version != 2 {
		t.Errorf("%+v", e)
	}
	if e := set("plan", "plan 2\x00"); e.Version != 2 {
		t.Errorf("the same again made version %d", e.Version)
	}
	set("todo", "todo 1")
	check("within the turn", map[string]string{"plan": "plan 1"})
	if e, err := s.LiveState.Get(t.Context(), ref, "plan"); err != nil || string(e.Value) != "plan 2\x00" {
		t.Errorf("%+v, %v", e, err)
	}
	appendTurns(t, s, ref, 1)
	check("in the next turn", map[string]string{"plan": "plan 2\x00", "todo": "todo 1"})
	set("todo", "")
	set("pins", "pin")
	check("removed within the turn", map[string]string{"plan": "plan 2\x00", "todo": "todo 1"})
	compact(t, s, ref, 2, "SUM")
	check("at a marker", map[string]string{"plan": "plan 2\x00", "pins": "pin"})
	set("plan", "plan 3")
	check("after the marker, in the same turn", map[string]string{"plan": "plan 2\x00", "pins": "pin"})
	appendTurns(t, s, ref, 1)
	check("in the turn after", map[string]string{"plan": "plan 3", "pins": "pin"})

	if _, err := s.LiveState.Get(t.Context(), ref, "todo"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a removed one: error %v", err)
	}
	for _, key := range []string{"", "Plan", "a b", strings.Repeat("x", 65), "a\x00"} {
		if _, err := s.LiveState.Set(t.Context(), ref, key, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("key %q: error %v", key, err)
		}
	}
}

// Events of concurrent writers have no gap that is filled later: a reader that resumes after a number has seen all
// events before it.
func TestEvents(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	const writers, each = 6, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				data := json.RawMessage(fmt.Sprintf(`{"w": %d, "i": %d, "s": "\u0000"}`, w, i))
				if _, err := s.Timeline.Append(t.Context(), ref,
					timeline.Event{Kind: timeline.Warning, Data: data}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var last int64
	for last < writers*each {
		list, err := s.Timeline.After(t.Context(), ref, last, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Seq != last+1 {
				t.Fatalf("event %d after %d", e.Seq, last)
			}
			last = e.Seq
		}
	}
	<-done
	if _, err := s.Timeline.Append(t.Context(), ref,
		timeline.Event{Kind: timeline.Warning, Data: json.RawMessage(`nope`)}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestTenantsAndKeys(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := s.Tenants.Ensure(t.Context(), "acme", "Acme"); err != nil || got.ID != "acme" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	list, err := s.Tenants.List(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != "acme" || list[1].ID != "default" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, id := range []string{"", "a/b", "a\n", strings.Repeat("x", 65), "\xff"} {
		if _, err := s.Tenants.Ensure(t.Context(), id, ""); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("tenant %q: error %v", id, err)
		}
	}

	key, secret, err := s.Keys.Create(t.Context(), "acme", "ci", true)
	if err != nil || key.Tenant != "acme" || !key.Trusted || len(secret) < 40 {
		t.Fatalf("%+v, %v", key, err)
	}
	if found, err := s.Keys.Find(t.Context(), secret); err != nil || found.ID != key.ID {
		t.Errorf("%+v, %v", found, err)
	}
	var kept string
	if err := raw(t, url).QueryRow(t.Context(), `SELECT api_keys::text FROM api_keys`).Scan(&kept); err != nil ||
		strings.Contains(kept, secret) {
		t.Errorf("the row %s, %v", kept, err)
	}
	if _, err := s.Keys.Find(t.Context(), secret+"x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if err := s.Keys.Revoke(t.Context(), "default", key.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant: error %v", err)
	}
	if err := s.Keys.Revoke(t.Context(), "acme", key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keys.Find(t.Context(), secret); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("revoked: error %v", err)
	}
	if keys, err := s.Keys.List(t.Context(), "acme"); err != nil || len(keys) != 1 || keys[0].Revoked.IsZero() {
		t.Errorf("%+v, %v", keys, err)
	}
	if _, _, err := s.Keys.Create(t.Context(), "nobody", "x", false); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref, other := newConversation(t, s, "c"), newConversation(t, s, "d")
	data := bytes.Repeat([]byte("the same line\n"), 10_000)
	a, err := s.Artifacts.Put(t.Context(), ref, "prompt", data)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Artifacts.Put(t.Context(), other, "answer", data)
	if err != nil || b != a {
		t.Errorf("%+v, %+v, %v: equal content is one artifact", a, b, err)
	}
	db := raw(t, url)
	var rows, bytes int
	if err := db.QueryRow(t.Context(), `SELECT count(*), sum(octet_length(data)) FROM artifacts`).Scan(&rows,
		&bytes); err != nil || rows != 1 || bytes > len(data)/50 {
		t.Errorf("%d rows of %d bytes for %d, %v", rows, bytes, len(data), err)
	}
	if empty, err := s.Artifacts.Put(t.Context(), ref, "answer", nil); err != nil {
		t.Error(err)
	} else if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, empty.SHA256); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
	for _, sha := range []string{"", "xyz", strings.Repeat("0", 64), "../etc", strings.ToUpper(a.SHA256) + "0"} {
		if _, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, sha); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: error %v", sha, err)
		}
	}
	// Content that does not match its hash is not returned.
	if _, err := db.Exec(t.Context(),
		`UPDATE artifacts SET data = (SELECT data FROM artifacts WHERE size = 0) WHERE size > 0`); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, a.SHA256); err == nil {
		t.Errorf("damaged content was given: %q", got)
	}
}
