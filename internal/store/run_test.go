package store_test

import (
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
	"precis/internal/store/modelcalls"
	"precis/internal/store/outbox"
	storeruns "precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

func TestRequestRun(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 2)
	req := storeruns.Request{
		Kind: "tokens", Trigger: json.RawMessage(`{"used":900,"limit":800}`), Focus: "the \x00 plan", Full: true,
		ForceExternal: true, Prompt: "handoff", Summarizer: "anthropic/x",
		Settings: json.RawMessage(`{"digest": "never"}`), Versions: json.RawMessage(`{"code":"1"}`),
	}
	r, attached, err := s.Runs.Request(t.Context(), ref, req)
	if err != nil || attached {
		t.Fatalf("attached %t, %v", attached, err)
	}
	if r.Conversation != "c" || r.WorkflowID != "compaction/default/c" || r.Outcome != "" || r.Kind != "tokens" ||
		r.Focus != req.Focus ||
		!r.Full || !r.ForceExternal || r.Prompt != "handoff" || r.Summarizer != "anthropic/x" ||
		string(r.Settings) != `{"digest": "never"}` ||
		string(r.Trigger) != `{"used": 900, "limit": 800}` || r.RequestedHead != 4 || r.Created.IsZero() ||
		!r.Started.IsZero() {
		t.Errorf("%+v", r)
	}

	again, attached, err := s.Runs.Request(t.Context(), ref, storeruns.Request{Kind: "manual"})
	if err != nil || !attached || again.Ref != r.Ref || again.Kind != "tokens" {
		t.Errorf("attached %t to %+v, %v", attached, again, err)
	}

	started, err := s.Runs.Start(t.Context(), r.Ref, "temporal-1")
	if err != nil || started.TemporalRunID != "temporal-1" || started.Started.IsZero() {
		t.Errorf("%+v, %v", started, err)
	}
	once, err := s.Runs.Start(t.Context(), r.Ref, "temporal-2") // another worker, after a reset
	if err != nil || once.TemporalRunID != "temporal-2" || !once.Started.Equal(started.Started) {
		t.Errorf("%+v, %v", once, err)
	}

	end := storeruns.End{
		Outcome: precis.OutcomeSkipped, Reason: "all_protected",
		Facts: storeruns.Facts{TokensBefore: 900}, Event: &timeline.Event{Kind: timeline.Finished},
	}
	done, err := s.Runs.Finish(t.Context(), r.Ref, end)
	if err != nil || done.Outcome != precis.OutcomeSkipped || done.Reason != "all_protected" ||
		done.Facts.TokensBefore != 900 || done.Finished.IsZero() {
		t.Errorf("%+v, %v", done, err)
	}
	late, err := s.Runs.Finish(t.Context(), r.Ref,
		storeruns.End{Outcome: precis.OutcomeFailed, ErrorKind: pipeline.Internal, Reason: "late"})
	if err != nil || late.Outcome != precis.OutcomeSkipped || late.Reason != "all_protected" {
		t.Errorf("%+v, %v", late, err)
	}
	if left, err := s.Runs.Start(t.Context(), r.Ref, "temporal-3"); err != nil || left.TemporalRunID != "temporal-2" {
		t.Errorf("a finished run was started: %+v, %v", left, err)
	}
	next, attached, err := s.Runs.Request(t.Context(), ref, storeruns.Request{Kind: "turns"})
	if err != nil || attached || next.Ref == r.Ref {
		t.Errorf("attached %t to %s, %v", attached, next.Ref, err)
	}
	events, err := s.Timeline.After(t.Context(), ref, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, fmt.Sprintf("%d %s %t", e.Seq, e.Kind, e.Run == r.Ref.ID))
	}
	if diff := cmp.Diff([]string{"1 trigger true", "2 finished true", "3 trigger false"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestRequestRunRefuses(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	for name, req := range map[string]storeruns.Request{
		"kind":     {Kind: "whim"},
		"trigger":  {Kind: "tokens", Trigger: json.RawMessage(`[1]`)},
		"versions": {Kind: "tokens", Versions: json.RawMessage(`{`)},
	} {
		if _, _, err := s.Runs.Request(t.Context(), ref, req); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	p, err := s.Replies.Open(t.Context(), ref, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Runs.Request(t.Context(), ref, storeruns.Request{Kind: "manual"}); !errors.Is(err,
		store.ErrReplyOpen) {
		t.Errorf("error %v", err)
	}
	bg, _, err := s.Runs.Request(t.Context(), ref, storeruns.Request{Kind: "background", Prepare: true})
	if err != nil || !bg.Prepare {
		t.Errorf("%+v, %v", bg, err)
	}
	if _, err := s.Replies.Close(t.Context(), ref, p.ID); err != nil {
		t.Error(err)
	}
	for _, outcome := range []precis.Outcome{"", precis.OutcomeApplied, precis.OutcomePrepared, "fine"} {
		if _, err := s.Runs.Finish(t.Context(), bg.Ref, storeruns.End{Outcome: outcome}); !errors.Is(err,
			store.ErrInvalid) {
			t.Errorf("outcome %q: error %v", outcome, err)
		}
	}
}

// Concurrent requests create one run with one outbox row, and all get that run.
func TestRequestRunRace(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	db := raw(t, url)
	for round := range 20 {
		ref := newConversation(t, s, fmt.Sprint("c", round))
		ids := make([]string, 8)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				r, _, err := s.Runs.Request(t.Context(), ref, storeruns.Request{Kind: "manual"})
				if err != nil {
					t.Error(err)
				}
				ids[i] = r.Ref.ID
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("runs %q", ids)
			}
		}
		var runs, rows int
		err := db.QueryRow(t.Context(), `SELECT
			(SELECT count(*) FROM runs r JOIN conversations c USING (cid) WHERE c.id = $1),
			(SELECT count(*) FROM outbox WHERE conversation = $1)`, ref.ID).Scan(&runs, &rows)
		if err != nil || runs != 1 || rows != 1 {
			t.Fatalf("%d runs, %d outbox rows, %v", runs, rows, err)
		}
	}
}

func TestReplayRunsBeside(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	first := request(t, s, ref)
	replay, attached, err := s.Runs.Request(t.Context(), ref, storeruns.Request{Kind: "manual", ReplayOf: first.Ref.ID})
	if err != nil || attached || replay.ReplayOf != first.Ref.ID {
		t.Errorf("attached %t, %+v, %v", attached, replay, err)
	}
	if _, _, err := s.Runs.Request(t.Context(), ref,
		storeruns.Request{Kind: "manual", ReplayOf: "nope"}); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestRecordFacts(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	r := request(t, s, ref)
	a, err := s.Artifacts.Put(t.Context(), ref, "context", []byte("[]"))
	if err != nil {
		t.Fatal(err)
	}
	want := storeruns.Facts{
		Summarizer: "anthropic/x", Rung: "slim_harder", PromptName: "claude", PromptVersion: "2",
		Mode: pipeline.ModeExplicit, Digest: true, CoversFrom: 1, CoversTo: 9, CoveredMessages: 9,
		CoveredChain: store.Hash{1}, TokensBefore: 10, TokensAfter: 5, Context: a.SHA256,
		Verification: json.RawMessage(`{"misattributed": 1}`), Numbers: json.RawMessage(`{"a": 1, "b": 2}`),
	}
	if err := s.Runs.RecordFacts(t.Context(), r.Ref, want); err != nil {
		t.Fatal(err)
	}
	// More facts are added; zero facts change nothing.
	if err := s.Runs.RecordFacts(t.Context(), r.Ref,
		storeruns.Facts{TokensAfter: 6, Numbers: json.RawMessage(`{"b":3,"c":"\u0000"}`)}); err != nil {
		t.Fatal(err)
	}
	want.TokensAfter, want.Numbers = 6, json.RawMessage(`{"a": 1, "b": 3, "c": "�"}`)
	got, err := s.Runs.Get(t.Context(), r.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Facts); diff != "" {
		t.Error(diff)
	}
}

func TestListRuns(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	var ids []string
	for i := range 9 {
		ref := newConversation(t, s, fmt.Sprint("c", i))
		r := request(t, s, ref)
		ids = append([]string{r.Ref.ID}, ids...)
		end := storeruns.End{Outcome: precis.OutcomeFailed, ErrorKind: pipeline.Auth}
		if i%3 == 0 {
			end = storeruns.End{
				Outcome: precis.OutcomeSkipped, Reason: "empty",
				Facts: storeruns.Facts{Digest: true},
			}
		}
		if i != 8 {
			if _, err := s.Runs.Finish(t.Context(), r.Ref, end); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func(f storeruns.Filter) (got []string) {
		t.Helper()
		for {
			page, next, err := s.Runs.List(t.Context(), store.DefaultTenant, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				got = append(got, r.Ref.ID)
			}
			if f.Cursor = next; next == "" {
				return got
			}
		}
	}
	yes := true
	third, err := s.Runs.Get(t.Context(), store.RunRef{Tenant: store.DefaultTenant, ID: ids[2]})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter storeruns.Filter
		want   []string
	}{
		"All":        {storeruns.Filter{Limit: 2}, ids},
		"Unfinished": {storeruns.Filter{Unfinished: true}, ids[:1]},
		"Skipped":    {storeruns.Filter{Outcome: precis.OutcomeSkipped, Limit: 1}, []string{ids[2], ids[5], ids[8]}},
		"Digest":     {storeruns.Filter{Digest: &yes}, []string{ids[2], ids[5], ids[8]}},
		"Auth": {
			storeruns.Filter{ErrorKind: pipeline.Auth, Limit: 4},
			[]string{ids[1], ids[3], ids[4], ids[6], ids[7]},
		},
		"Conversation": {storeruns.Filter{Conversation: "c3"}, ids[5:6]},
		"Since":        {storeruns.Filter{Since: third.Created}, ids[:3]},
		"Until":        {storeruns.Filter{Until: third.Created}, ids[3:]},
		"None":         {storeruns.Filter{Conversation: "c3", Unfinished: true}, nil},
	} {
		if diff := cmp.Diff(test.want, list(test.filter)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	r := request(t, s, newConversation(t, s, "c"))
	record := func(step storeruns.Attempt) {
		t.Helper()
		if err := s.Attempts.Record(t.Context(), r.Ref, step); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now().UTC().Truncate(time.Microsecond)
	record(storeruns.Attempt{
		Stage: "trigger", Call: 1, Attempt: 1, Rung: "first", Outcome: contract.AttemptStarted, Started: began,
		Worker: "w1", Numbers: json.RawMessage(`{"a": 1}`),
	})
	record(storeruns.Attempt{
		Stage: "trigger", Call: 1, Attempt: 1, Outcome: contract.AttemptFailed, ErrorKind: pipeline.Timeout,
		Message: "late\x00", Took: 1500 * time.Millisecond, Numbers: json.RawMessage(`{"b":2}`),
		Artifacts: map[contract.ArtifactKind]string{"prompt": "aa"},
	})
	record(storeruns.Attempt{Stage: "trigger", Call: 1, Attempt: 2, Outcome: contract.AttemptStarted})
	record(storeruns.Attempt{
		Stage: "trigger", Call: 2, Attempt: 1, Outcome: contract.AttemptOK,
		Artifacts: map[contract.ArtifactKind]string{"answer": "bb"},
	})
	if err := s.Attempts.NoteNext(t.Context(), r.Ref, "trigger", 1, "next_summarizer", ""); err != nil {
		t.Fatal(err)
	}
	got, err := s.Runs.Get(t.Context(), r.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Attempts) != 3 {
		t.Fatalf("%d steps", len(got.Attempts))
	}
	want := storeruns.Attempt{
		Stage: "trigger", Call: 1, Attempt: 1, Rung: "first", Outcome: contract.AttemptFailed,
		ErrorKind: pipeline.Timeout, Message: "late�", Worker: "w1", Started: began, Took: 1500 * time.Millisecond,
		Numbers: json.RawMessage(`{"a": 1, "b": 2}`), Artifacts: map[contract.ArtifactKind]string{"prompt": "aa"},
	}
	if diff := cmp.Diff(want, got.Attempts[0]); diff != "" {
		t.Error(diff)
	}
	if s := got.Attempts[1]; s.Attempt != 2 || s.Outcome != contract.AttemptStarted || s.Next != "next_summarizer" ||
		s.Started.IsZero() || s.Took != 0 {
		t.Errorf("%+v", s)
	}
	if s := got.Attempts[2]; s.Call != 2 || s.Outcome != contract.AttemptOK ||
		s.Artifacts[contract.ArtifactAnswer] != "bb" {
		t.Errorf("%+v", s)
	}
	for _, step := range []storeruns.Attempt{
		{Stage: "x", Outcome: contract.AttemptOK},
		{Attempt: 1, Outcome: contract.AttemptOK},
		{Stage: "x", Attempt: 1, Numbers: json.RawMessage(`3`)},
	} {
		if err := s.Attempts.Record(t.Context(), r.Ref, step); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: error %v", step, err)
		}
	}
}

// In a race of stage results, every caller gets a row, and it is the first one's. An insert with DO NOTHING would
// return no row.
func TestPutStageResultRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	r := request(t, s, newConversation(t, s, "c"))
	if _, err := s.Attempts.Result(t.Context(), r.Ref, "slim", 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	for call := 1; call <= 100; call++ {
		got := make([]string, 10)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				result, err := s.Attempts.PutResult(t.Context(), r.Ref, "slim", call, fmt.Append(nil, i))
				if err != nil {
					t.Error(err)
				}
				got[i] = string(result)
			})
		}
		wg.Wait()
		kept, err := s.Attempts.Result(t.Context(), r.Ref, "slim", call)
		if err != nil || len(kept) != 1 {
			t.Fatalf("%q, %v", kept, err)
		}
		for i := range got {
			if got[i] != string(kept) {
				t.Fatalf("call %d: got %q, kept %q", call, got, kept)
			}
		}
	}
	if empty, err := s.Attempts.PutResult(t.Context(), r.Ref, "finish", 1, nil); err != nil || empty == nil ||
		len(empty) != 0 {
		t.Errorf("%v, %v", empty, err)
	}
}

func TestModelCalls(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	r := request(t, s, ref)
	call := func(n, attempt int) modelcalls.Call {
		return modelcalls.Call{Call: n, Attempt: attempt, Vendor: "anthropic", Model: "m", Request: []byte("request")}
	}
	begin := func(c modelcalls.Call) []byte {
		t.Helper()
		answer, err := s.ModelCalls.Begin(t.Context(), r.Ref, c)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	finish := func(c modelcalls.Call, res modelcalls.Result) string {
		t.Helper()
		sha, err := s.ModelCalls.Finish(t.Context(), r.Ref, c, res)
		if err != nil {
			t.Fatal(err)
		}
		return sha
	}

	if a := begin(call(5, 1)); a != nil {
		t.Fatalf("answer %q before any", a)
	}
	// The worker died. The next attempt sends the request again and fails, and the one after gets an answer.
	begin(call(5, 2))
	finish(call(5, 2), modelcalls.Result{Input: 100, ErrorKind: pipeline.Overloaded, RequestID: "req_1"})
	begin(call(5, 3))
	if _, err := s.ModelCalls.Answer(t.Context(), r.Ref, 5); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	sha := finish(call(5, 3), modelcalls.Result{
		Input: 100, CachedInput: 50, CacheWrite: 7, Output: 20,
		Answer: []byte("the answer"),
	})
	finish(call(5, 3), modelcalls.Result{Input: 999, Answer: []byte("another")}) // a late double does not count
	// Later attempts get that answer, send nothing and book nothing.
	if a := begin(call(5, 4)); string(a) != "the answer" {
		t.Errorf("answer %q", a)
	}
	if a, err := s.ModelCalls.Answer(t.Context(), r.Ref, 5); err != nil || string(a) != "the answer" {
		t.Errorf("answer %q, %v", a, err)
	}
	if a := begin(call(6, 1)); a != nil {
		t.Errorf("another call has the answer %q", a)
	}
	finish(call(6, 1), modelcalls.Result{Output: 1, Answer: []byte{}})
	if a := begin(call(6, 2)); a == nil || len(a) != 0 {
		t.Errorf("answer %v: an empty one was paid for too", a)
	}

	list, err := s.ModelCalls.List(t.Context(), r.Ref)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, fmt.Sprintf("%d.%d %s %s %d/%d/%d/%d answer=%t request=%t %s", e.Call, e.Attempt, e.State,
			e.ErrorKind, e.Input, e.CachedInput, e.CacheWrite, e.Output, e.Answer != "", e.Request != "", e.RequestID))
	}
	want := []string{
		"5.1 started  0/0/0/0 answer=false request=true ",
		"5.2 failed overloaded 100/0/0/0 answer=false request=true req_1",
		"5.3 complete  100/50/7/20 answer=true request=true ",
		"6.1 complete  0/0/0/1 answer=true request=true ",
	}
	if diff := cmp.Diff(want, got); diff != "" || list[2].Answer != sha {
		t.Error(diff)
	}
	sum, err := s.Runs.Get(t.Context(), r.Ref)
	if diff := cmp.Diff(storeruns.Usage{Input: 200, CachedInput: 50, CacheWrite: 7, Output: 21, Calls: 4, Lost: 1},
		sum.Usage); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	wantUsageBy(t, s)
}

// wantUsageBy checks the usage that TestModelCalls books, by everything that it can be grouped by.
func wantUsageBy(t *testing.T, s *store.Store) {
	t.Helper()
	models := []storeruns.ModelUsage{{
		Vendor: "anthropic", Model: "m", Input: 200, CachedInput: 50, CacheWrite: 7,
		Output: 21, Calls: 4,
	}}
	for group, key := range map[string]string{
		"tenant": "default", "conversation": "c", "model": "anthropic/m",
		"day": time.Now().UTC().Format("2006-01-02"),
	} {
		groups, err := s.ModelCalls.UsageBy(t.Context(), store.DefaultTenant, group, time.Time{})
		if diff := cmp.Diff([]modelcalls.UsageGroup{{
			Key: key, Input: 200, CachedInput: 50, CacheWrite: 7, Output: 21,
			Calls: 4, Failed: 1, Lost: 1, Models: models,
		}}, groups); err != nil || diff != "" {
			t.Errorf("%s: %v %s", group, err, diff)
		}
	}
	if _, err := s.ModelCalls.UsageBy(t.Context(), store.DefaultTenant, "colour", time.Time{}); !errors.Is(err,
		store.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	runs := map[string]bool{}
	for i := range 30 {
		runs[request(t, s, newConversation(t, s, fmt.Sprint("c", i))).Ref.ID] = true
	}
	// Of several dispatchers, one gets each run.
	var mu sync.Mutex
	var wg sync.WaitGroup
	claimed := map[string]outbox.Dispatch{}
	for range 4 {
		wg.Go(func() {
			for {
				list, err := s.Outbox.Claim(t.Context(), 4, time.Hour)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, d := range list {
					if _, twice := claimed[d.Run]; twice || !runs[d.Run] {
						t.Errorf("run %s claimed twice, or not ours", d.Run)
					}
					claimed[d.Run] = d
				}
				mu.Unlock()
				if len(list) == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(claimed) != len(runs) {
		t.Errorf("%d of %d claimed", len(claimed), len(runs))
	}

	// A run that is postponed by no time can be claimed again, with a higher attempt; dispatched runs cannot.
	var one outbox.Dispatch
	for _, d := range claimed {
		one = d
		break
	}
	if one.Tenant != "default" || one.Kind != "manual" || one.Attempts != 1 ||
		!strings.HasPrefix(one.Conversation, "c") {
		t.Errorf("%+v", one)
	}
	if err := s.Outbox.Postpone(t.Context(), one.ID, 0); err != nil {
		t.Fatal(err)
	}
	list, err := s.Outbox.Claim(t.Context(), 10, 0) // a lease that is over at once: as after the dispatcher's death
	if err != nil || len(list) != 1 || list[0].Run != one.Run || list[0].Attempts != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if list, err = s.Outbox.Claim(t.Context(), 10, 0); err != nil || len(list) != 1 || list[0].Attempts != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := s.Outbox.MarkDispatched(t.Context(), one.ID); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Outbox.Claim(t.Context(), 10, 0); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}

	// A run whose caller starts the workflow itself, and a run that ends before it is claimed, are not dispatched.
	a, b := request(t, s, newConversation(t, s, "a")), request(t, s, newConversation(t, s, "b"))
	if err := s.Outbox.MarkRunDispatched(t.Context(), a.Ref); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runs.Finish(t.Context(), b.Ref, storeruns.End{Outcome: precis.OutcomeCancelled}); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Outbox.Claim(t.Context(), 10, time.Hour); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestReviveDispatches(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	stalled, working, ended := request(t, s, newConversation(t, s, "stalled")),
		request(t, s, newConversation(t, s, "working")), request(t, s, newConversation(t, s, "ended"))
	list, err := s.Outbox.Claim(t.Context(), 10, time.Hour)
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, d := range list {
		if err := s.Outbox.MarkDispatched(t.Context(), d.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Runs.Finish(t.Context(), ended.Ref, storeruns.End{Outcome: precis.OutcomeSkipped}); err != nil {
		t.Fatal(err)
	}
	step := storeruns.Attempt{
		Stage: "summarise", Call: 1, Attempt: 1, Outcome: contract.AttemptOK,
		Started: time.Now().Add(-3 * time.Hour), Took: 2*time.Hour + 30*time.Minute,
	}
	if err := s.Attempts.Record(t.Context(), working.Ref, step); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, url).Exec(t.Context(),
		`UPDATE outbox SET dispatched_at = dispatched_at - interval '3 hours'`); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Outbox.Revive(t.Context(), 4*time.Hour); err != nil || n != 0 {
		t.Errorf("%d too early, %v", n, err)
	}
	if n, err := s.Outbox.Revive(t.Context(), time.Hour); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	list, err = s.Outbox.Claim(t.Context(), 10, time.Hour)
	if err != nil || len(list) != 1 || list[0].Run != stalled.Ref.ID {
		t.Errorf("%+v, %v", list, err)
	}
}
