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

	"precis"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/livestate"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "c")
	talk(t, s, ref, 1)
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
	talk(t, s, ref, 1) // appends are never blocked
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

	// The agent died in the next one. Its lease runs out, and the conversation is free.
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
	talk(t, s, ref, 1)
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
	talk(t, s, ref, 1)
	check("in the next turn", map[string]string{"plan": "plan 2\x00", "todo": "todo 1"})
	set("todo", "")
	set("pins", "pin")
	check("removed within the turn", map[string]string{"plan": "plan 2\x00", "todo": "todo 1"})
	compact(t, s, ref, 2, "SUM")
	check("at a marker", map[string]string{"plan": "plan 2\x00", "pins": "pin"})
	set("plan", "plan 3")
	check("after the marker, in the same turn", map[string]string{"plan": "plan 2\x00", "pins": "pin"})
	talk(t, s, ref, 1)
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

// Events of racing writers have no gap that fills later: who resumes after a number has seen all before it.
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

func TestBreaker(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	key := breakers.OfConversation(store.ConversationRef{Tenant: "default", ID: "c"})
	get := func(key breakers.Key) breakers.Breaker {
		t.Helper()
		b, err := s.Breakers.Get(t.Context(), key, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pass := func(key breakers.Key) bool {
		t.Helper()
		ok, err := s.Breakers.Pass(t.Context(), key, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if b := get(key); b != (breakers.Breaker{}) || !pass(key) {
		t.Errorf("%+v before any failure", b)
	}
	for i := 1; i <= 3; i++ {
		b, err := s.Breakers.Trip(t.Context(), key, pipeline.ServerError, "500\x00", 3)
		if err != nil || b.Failures != i || b.Open() != (i == 3) {
			t.Errorf("failure %d: %+v, %v", i, b, err)
		}
	}
	if b := get(key); !b.Blocking || b.ErrorKind != pipeline.ServerError || b.Reason != "500�" || pass(key) {
		t.Errorf("%+v after three", b)
	}
	if other := breakers.OfConversation(store.ConversationRef{Tenant: "other", ID: "c"}); get(other).Open() ||
		!pass(other) {
		t.Error("another tenant's conversation of the same id is blocked too")
	}

	// The cooldown passes: one of many is let through.
	if _, err := raw(t, url).Exec(t.Context(),
		`UPDATE breakers SET opened_at = opened_at - interval '2 hours'`); err != nil {
		t.Fatal(err)
	}
	if b := get(key); b.Blocking || !b.Open() {
		t.Errorf("%+v after the cooldown", b)
	}
	var mu sync.Mutex
	var passed int
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ok, err := s.Breakers.Pass(t.Context(), key, time.Hour)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				passed++
			}
		})
	}
	wg.Wait()
	if passed != 1 || !get(key).Blocking {
		t.Errorf("%d passed", passed)
	}
	// It failed: the cooldown begins anew. It succeeds: all is forgotten.
	if b, err := s.Breakers.Trip(t.Context(), key, pipeline.ServerError, "", 3); err != nil || !b.Open() || pass(key) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := s.Breakers.Reset(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if b := get(key); b != (breakers.Breaker{}) || !pass(key) {
		t.Errorf("%+v after a success", b)
	}

	vendor := breakers.OfVendor("anthropic")
	if b, err := s.Breakers.Trip(t.Context(), vendor, pipeline.Auth, "bad key", 3); err != nil || !b.Open() ||
		pass(vendor) {
		t.Errorf("%+v, %v: a bad key is no matter of three tries", b, err)
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
	// Content that is not what its name says is never handed out.
	if _, err := db.Exec(t.Context(),
		`UPDATE artifacts SET data = (SELECT data FROM artifacts WHERE size = 0) WHERE size > 0`); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, a.SHA256); err == nil {
		t.Errorf("damaged content was given: %q", got)
	}
}

func TestDeleteConversationContent(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref, other := newConversation(t, s, "c"), newConversation(t, s, "d")
	system := json.RawMessage(`"secret system"`)
	if _, err := s.Changes.Update(t.Context(), ref, conversations.Patch{System: &system}); err != nil {
		t.Fatal(err)
	}
	talk(t, s, ref, 3)
	talk(t, s, other, 3)
	r, _, err := s.Runs.Request(t.Context(), ref, runs.Request{Kind: "manual", Focus: "secret focus"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Attempts.Record(t.Context(), r.Ref,
		runs.Attempt{Stage: "trigger", Call: 1, Attempt: 1, Outcome: contract.AttemptOK}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attempts.PutResult(t.Context(), r.Ref, "trigger", 1, []byte("secret result")); err != nil {
		t.Fatal(err)
	}
	call := modelcalls.Call{Call: 2, Attempt: 1, Vendor: "anthropic", Model: "m", Request: []byte("secret request")}
	if _, err := s.ModelCalls.Begin(t.Context(), r.Ref, call); err != nil {
		t.Fatal(err)
	}
	answer, err := s.ModelCalls.Finish(t.Context(), r.Ref, call,
		modelcalls.Result{Input: 5, Answer: []byte("secret answer")})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := s.Artifacts.Put(t.Context(), ref, "prompt", []byte("shared"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Artifacts.Put(t.Context(), other, "prompt", []byte("shared")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LiveState.Set(t.Context(), ref, "plan", []byte("secret plan")); err != nil {
		t.Fatal(err)
	}
	if err := s.Retention.DeleteContent(t.Context(), ref); !errors.Is(err, store.ErrRunActive) ||
		!errors.Is(err, store.ErrConflict) {
		t.Errorf("with a run going: error %v", err)
	}
	m, err := s.Markers.Apply(t.Context(), r.Ref, plan(t, s, ref, 4, "secret summary"), runs.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Retention.DeleteContent(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}

	for what, try := range map[string]func() error{
		"append": func() error {
			_, err := s.Changes.Append(t.Context(), ref, []conversations.NewMessage{message(pipeline.RoleUser, "x")},
				changes.AppendOptions{})
			return err
		},
		"live":     func() error { _, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); return err },
		"messages": func() error { _, err := s.Messages.At(t.Context(), ref, []int64{1}); return err },
		"undo":     func() error { _, err := s.Markers.Undo(t.Context(), ref, ""); return err },
		"run": func() error {
			_, _, err := s.Runs.Request(t.Context(), ref, runs.Request{Kind: "manual"})
			return err
		},
		"state": func() error { _, err := s.LiveState.Get(t.Context(), ref, "plan"); return err },
	} {
		if err := try(); !errors.Is(err, store.ErrContentDeleted) || !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	for _, sha := range []string{m.Summary, answer} {
		if _, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, sha); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("artifact %s: error %v", sha, err)
		}
	}
	if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, shared.SHA256); err != nil ||
		string(got) != "shared" {
		t.Errorf("what another conversation shares: %q, %v", got, err)
	}
	got, err := s.Runs.Get(t.Context(), r.Ref)
	if err != nil || got.Outcome != precis.OutcomeApplied || len(got.Attempts) != 1 || got.Usage.Input != 5 ||
		got.Facts.CoveredChain != m.CoveredChain || got.Focus != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Evidence.CheckChain(t.Context(), other, 6); err != nil {
		t.Errorf("the other conversation: %v", err)
	}
	c, err := s.Conversations.Get(t.Context(), ref)
	if err != nil || c.ContentDeleted.IsZero() || c.System != nil || c.HeadSeq != 6 {
		t.Errorf("%+v, %v", c, err)
	}

	// Nothing that was said is left in any column of any table.
	db := raw(t, url)
	rows, err := db.Query(t.Context(),
		`SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var tables []string
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if len(tables) < 15 {
		t.Errorf("tables %q", tables)
	}
	for _, table := range tables {
		var found int
		err := db.QueryRow(t.Context(),
			`SELECT count(*) FROM `+table+
				` t WHERE t::text LIKE '%secret%' OR t::text LIKE '%736563726574%'`).Scan(&found)
		if err != nil || found != 0 {
			t.Errorf("%d rows of %s still hold what was said, %v", found, table, err)
		}
	}
}

// One conversation lets go of an artifact while another one takes it up: it is there for the other.
func TestDeleteArtifactRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for round := range 30 {
		data := fmt.Appendf(nil, "content %d", round)
		gone, stays := newConversation(t, s, fmt.Sprint("gone", round)),
			newConversation(t, s, fmt.Sprint("stays", round))
		a, err := s.Artifacts.Put(t.Context(), gone, "prompt", data)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Retention.DeleteContent(t.Context(), gone); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Artifacts.Put(t.Context(), stays, "prompt", data); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, a.SHA256); err != nil ||
			!bytes.Equal(got, data) {
			t.Fatalf("round %d: %q, %v", round, got, err)
		}
	}
}
