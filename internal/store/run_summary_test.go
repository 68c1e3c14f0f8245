package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"precis"
	"precis/internal/store"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// endedRuns makes runs with different ends: a failed run that called two models, one whose answer was lost, an applied
// one that was undone, and an unfinished one.
func endedRuns(t *testing.T, s *store.Store) (ref store.ConversationRef, failed, undone runs.Run) {
	t.Helper()
	ref = newConversation(t, s, "a")
	appendTurns(t, s, ref, 2)

	failed = request(t, s, ref)
	if _, err := s.Runs.Start(t.Context(), failed.Ref, "t"); err != nil {
		t.Fatal(err)
	}
	call := func(r runs.Run, n, attempt int, model string, res *modelcalls.Result) {
		c := modelcalls.Call{Call: n, Attempt: attempt, Vendor: "openai", Model: model}
		if _, err := s.ModelCalls.Begin(t.Context(), r.Ref, c); err != nil {
			t.Fatal(err)
		}
		if res == nil {
			return
		}
		if _, err := s.ModelCalls.Finish(t.Context(), r.Ref, c, *res); err != nil {
			t.Fatal(err)
		}
	}
	call(failed, 5, 1, "small", &modelcalls.Result{
		Input: 100, CachedInput: 20, Output: 3,
		ErrorKind: pipeline.EmptyOutput,
	})
	call(failed, 7, 1, "small", nil) // the worker died
	call(failed, 7, 2, "large", &modelcalls.Result{Input: 10, CacheWrite: 5, Output: 1, ErrorKind: pipeline.Refused})
	if _, err := s.Runs.Finish(t.Context(), failed.Ref,
		runs.End{Outcome: precis.OutcomeFailed, ErrorKind: pipeline.Refused}); err != nil {
		t.Fatal(err)
	}

	m := compact(t, s, ref, 2, "sum")
	if _, err := s.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	request(t, s, ref)
	got, err := s.Runs.Get(t.Context(), store.RunRef{Tenant: ref.Tenant, ID: m.Run})
	if err != nil {
		t.Fatal(err)
	}
	return ref, failed, got
}

func TestSummarizeRuns(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	_, failed, undone := endedRuns(t, s)

	got, err := s.Runs.Summarize(t.Context(), store.DefaultTenant, runs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if g := &got[i]; g.Outcome == precis.OutcomeFailed {
			if g.Median <= 0 || g.P95 < g.Median || g.P95 > time.Hour {
				t.Errorf("median %s, 95th percentile %s", g.Median, g.P95)
			}
			g.Median, g.P95 = 0, 0
		}
	}
	want := []runs.Group{
		{Runs: 1, Models: []runs.ModelUsage{}},
		{Outcome: precis.OutcomeApplied, Runs: 1, Undone: 1, Models: []runs.ModelUsage{}},
		{
			Outcome: precis.OutcomeFailed, ErrorKind: pipeline.Refused, Runs: 1,
			Usage: runs.Usage{Input: 110, CachedInput: 20, CacheWrite: 5, Output: 4, Calls: 3, Lost: 1},
			Models: []runs.ModelUsage{
				{Vendor: "openai", Model: "large", Input: 10, CacheWrite: 5, Output: 1, Calls: 1},
				{Vendor: "openai", Model: "small", Input: 100, CachedInput: 20, Output: 3, Calls: 2},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	one, err := s.Runs.Get(t.Context(), failed.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[2].Models, one.Models); diff != "" {
		t.Errorf("the run's models (-want +got):\n%s", diff)
	}
	if undone.MarkerStatus != runs.MarkerUndone || undone.MarkerEnded.IsZero() {
		t.Errorf("a marker that was taken back is %q, ended %s", undone.MarkerStatus, undone.MarkerEnded)
	}

	// Summing and listing agree for every filter.
	for name, f := range map[string]runs.Filter{
		"trigger":    {Trigger: pipeline.TriggerManual},
		"no trigger": {Trigger: pipeline.TriggerTurns},
		"summarizer": {Summarizer: "self"},
		"replays":    {ReplayOf: failed.Ref.ID},
		"error kind": {ErrorKind: pipeline.Refused},
	} {
		sums, err := s.Runs.Summarize(t.Context(), store.DefaultTenant, f)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, g := range sums {
			n += g.Runs
		}
		list, _, err := s.Runs.List(t.Context(), store.DefaultTenant, f)
		if err != nil || len(list) != n {
			t.Errorf("%s: %d listed, %d summed, %v", name, len(list), n, err)
		}
		if want := map[string]int{"trigger": 3, "summarizer": 1, "error kind": 1}[name]; n != want {
			t.Errorf("%s: %d runs, want %d", name, n, want)
		}
	}
}
