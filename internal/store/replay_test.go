package store_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"precis"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/replays"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// failedRun makes a conversation with a run that failed.
func failedRun(t *testing.T, s *store.Store, id string, kind pipeline.ErrorKind) runs.Run {
	t.Helper()
	ref := newConversation(t, s, id)
	appendTurns(t, s, ref, 5)
	r, err := s.Runs.Finish(t.Context(), request(t, s, ref).Ref,
		runs.End{Outcome: precis.OutcomeFailed, ErrorKind: kind})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// digestRun makes a conversation with a run that applied a digest.
func digestRun(t *testing.T, s *store.Store, id string) runs.Run {
	t.Helper()
	ref := newConversation(t, s, id)
	appendTurns(t, s, ref, 5)
	r := request(t, s, ref)
	n := plan(t, s, ref, 4, "digest")
	n.Digest = true
	if _, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// replayableIDs lists the runs that a filter selects, in pages of two.
func replayableIDs(t *testing.T, s *store.Store, name string, filter replays.Filter) []string {
	t.Helper()
	var got []string
	for cursor := ""; ; {
		list, next, err := s.Replays.List(t.Context(), store.DefaultTenant, filter, cursor, 2)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range list {
			got = append(got, r.Run.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	return got
}

func TestReplayables(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	auth, quota, overtaken := failedRun(t, s, "auth", pipeline.Auth), failedRun(t, s, "quota", pipeline.Quota),
		failedRun(t, s, "overtaken", pipeline.Auth)
	compact(t, s, store.ConversationRef{Tenant: store.DefaultTenant, ID: "overtaken"}, 4, "later")
	d, undone := digestRun(t, s, "digest"), digestRun(t, s, "undone")
	if err := s.Attempts.Record(t.Context(), d.Ref,
		runs.Attempt{
			Stage: "summarise", Call: 5, Attempt: 1, Outcome: contract.AttemptFailed,
			ErrorKind: pipeline.Auth,
		}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Markers.Undo(t.Context(), store.ConversationRef{Tenant: store.DefaultTenant, ID: "undone"},
		""); err != nil {
		t.Fatal(err)
	}
	cancelled, err := s.Runs.Finish(t.Context(), request(t, s, newConversation(t, s, "cancelled")).Ref,
		runs.End{Outcome: precis.OutcomeCancelled})
	if err != nil {
		t.Fatal(err)
	}
	replay, _, err := s.Runs.Request(t.Context(), store.ConversationRef{Tenant: store.DefaultTenant, ID: "auth"},
		runs.Request{Kind: "manual", ReplayOf: auth.Ref.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runs.Finish(t.Context(), replay.Ref,
		runs.End{Outcome: precis.OutcomeFailed, ErrorKind: pipeline.Auth}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		filter replays.Filter
		want   []runs.Run
	}{
		{"failed", replays.Filter{Failed: true}, []runs.Run{auth, quota, overtaken}},
		{"digests", replays.Filter{Digest: true}, []runs.Run{d, undone}},
		{
			"both, of one kind",
			replays.Filter{Failed: true, Digest: true, ErrorKind: pipeline.Auth},
			[]runs.Run{auth, overtaken, d},
		},
		{
			"those that can take effect",
			replays.Filter{Failed: true, Digest: true, Effective: true},
			[]runs.Run{auth, quota, d},
		},
		{"of one conversation", replays.Filter{Failed: true, Conversation: "quota"}, []runs.Run{quota}},
		{"since", replays.Filter{Digest: true, Since: undone.Created}, []runs.Run{undone}},
		{"until", replays.Filter{Failed: true, Until: quota.Created}, []runs.Run{auth}},
		{"later", replays.Filter{Failed: true, Since: time.Now().Add(time.Hour)}, nil},
	} {
		got := replayableIDs(t, s, tt.name, tt.filter)
		var want []string
		for _, r := range tt.want {
			want = append(want, r.Ref.ID)
		}
		if n, err := s.Replays.Count(t.Context(), store.DefaultTenant, tt.filter); err != nil || n != len(want) ||
			!slices.Equal(got, want) {
			t.Errorf("%s: %d of them, %v: %v, want %v", tt.name, n, err, got, want)
		}
	}
	if all, _, err := s.Replays.List(t.Context(), store.DefaultTenant, replays.Filter{}, "", 0); err != nil ||
		slices.ContainsFunc(all, func(r replays.Replayable) bool {
			return r.Run == cancelled.Ref || r.Run == replay.Ref
		}) {
		t.Errorf("cancelled runs and replays are among %v, %v", all, err)
	}
}

// A batch has one replay of a run, however often it requests one. Without a batch, each request is a new replay.
func TestBatchRepeatsARunOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	first, err := s.Runs.Finish(t.Context(), request(t, s, ref).Ref, runs.End{Outcome: precis.OutcomeFailed})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Batches.Create(t.Context(), store.DefaultTenant, json.RawMessage(`{"concurrency":2}`), 1)
	if err != nil || b.WorkflowID != "replays/default/"+b.Ref.ID || b.Total != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	again := runs.Request{
		Kind: "manual", ReplayOf: first.Ref.ID,
		Replay: runs.ReplayOptions{Live: true, Batch: b.Ref.ID},
	}
	one, attached, err := s.Runs.Request(t.Context(), ref, again)
	if err != nil || attached || one.WorkflowID != "replay/default/"+one.Ref.ID || !one.Replay.Live ||
		one.ReplayMode() != "live" {
		t.Fatalf("attached %t, %+v, %v", attached, one, err)
	}
	if same, attached, err := s.Runs.Request(t.Context(), ref, again); err != nil || !attached || same.Ref != one.Ref {
		t.Errorf("attached %t to %s, %v", attached, same.Ref, err)
	}
	again.Replay.Batch = ""
	if other, attached, err := s.Runs.Request(t.Context(), ref, again); err != nil || attached || other.Ref == one.Ref {
		t.Errorf("attached %t to %s, %v", attached, other.Ref, err)
	}
	if due, err := s.Outbox.Claim(t.Context(), 10, time.Minute); err != nil || len(due) != 1 ||
		due[0].Replay != "live" {
		t.Errorf("a batch starts its own: %+v, %v", due, err)
	}
	identical := false
	if err := s.Replays.KeepComparison(t.Context(), one.Ref, []byte(`{}`), &identical); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runs.Finish(t.Context(), one.Ref, runs.End{Outcome: precis.OutcomeReplayed}); err != nil {
		t.Fatal(err)
	}
	totals, err := s.Batches.Totals(t.Context(), b.Ref)
	if all, done := totals.Runs(); err != nil || all != 1 || done != 1 || len(totals.Different) != 1 ||
		totals.Different[0] != one.Ref.ID {
		t.Errorf("%+v, %v", totals, err)
	}
	for range 2 { // the first end counts
		if b, err = s.Batches.Finish(t.Context(), b.Ref, b.Cancelled); err != nil || b.Finished.IsZero() ||
			b.Cancelled {
			t.Errorf("%+v, %v", b, err)
		}
	}
	for _, bad := range []runs.Request{
		{Kind: "manual", Replay: runs.ReplayOptions{Live: true}},
		{Kind: "manual", ReplayOf: first.Ref.ID, Replay: runs.ReplayOptions{Apply: true}},
	} {
		if _, _, err := s.Runs.Request(t.Context(), ref, bad); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %v", bad.Replay, err)
		}
	}
}

// A source can be read again from its snapshot, whatever has happened to the conversation since.
func TestSourceAt(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	system := json.RawMessage(`"one"`)
	if _, err := s.Changes.Update(t.Context(), ref, conversations.Patch{System: &system}); err != nil {
		t.Fatal(err)
	}
	empty, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	appendTurns(t, s, ref, 5)
	if _, err := s.LiveState.Set(t.Context(), ref, "plan", []byte("first")); err != nil {
		t.Fatal(err)
	}
	compact(t, s, ref, 4, "SUM")
	appendTurns(t, s, ref, 1)
	before := contextOf(t, s, ref)
	then, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := request(t, s, ref)
	keep := func(v contexts.Source) contexts.Snapshot {
		refs, err := s.Contexts.KeepSnapshot(t.Context(), run.Ref, v, json.RawMessage(`{"digest":"never"}`))
		if err != nil || refs[contract.ArtifactSnapshot] == "" || refs["system"] == "" {
			t.Fatalf("%v, %v", refs, err)
		}
		if again, err := s.Contexts.KeepSnapshot(t.Context(), run.Ref, v,
			json.RawMessage(`{"digest":"never"}`)); err != nil ||
			again[contract.ArtifactSnapshot] != refs[contract.ArtifactSnapshot] {
			t.Fatalf("%v, %v", again, err)
		}
		state, err := s.Contexts.Snapshot(t.Context(), ref.Tenant, refs[contract.ArtifactSnapshot])
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	state, nothing := keep(then), keep(empty)

	other, model := json.RawMessage(`"two"`), "another"
	if _, err := s.Changes.Update(t.Context(), ref,
		conversations.Patch{System: &other, Model: &model}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LiveState.Set(t.Context(), ref, "plan", []byte("second")); err != nil {
		t.Fatal(err)
	}
	appendTurns(t, s, ref, 2)
	if _, err := s.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	if contextOf(t, s, ref) == before {
		t.Fatal("nothing has changed")
	}
	v, err := s.Contexts.At(t.Context(), ref, state, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if string(v.Summary) != "SUM" || v.Head() != then.Head() || len(v.Tail) != len(then.Tail) ||
		string(v.Conversation.System) != `"one"` || v.Conversation.Model != "m" ||
		string(v.Enrichments[0].Value) != "first" || v.Conversation.ActiveMarker != then.Conversation.ActiveMarker ||
		v.TurnStart != then.TurnStart {
		t.Errorf("%+v\nwas %+v", v, then)
	}
	if v, err := s.Contexts.At(t.Context(), ref, nothing, contexts.Options{}); err != nil || len(v.Tail) != 0 ||
		v.Marker != nil {
		t.Errorf("an empty conversation has %d messages, %v", len(v.Tail), err)
	}
}
