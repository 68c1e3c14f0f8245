package launch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/contract"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/replays"
	storeruns "precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// until waits until a condition holds. what describes it for a failed test.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout, waiting until %s", what)
		}
	}
}

// failures creates n conversations and returns their failed runs: no model answers, and the digest is disabled.
func failures(t *testing.T, s *scenario.System, n int) []storeruns.Run {
	t.Helper()
	var list []storeruns.Run
	talk := scenario.Turns(3, 60)
	for range n {
		ref := s.Create(scenario.Conversation{
			Window: 3000, Messages: talk,
			Settings: map[string]any{"digest": "never", "summarizers": []any{"nobody/gone"}},
		})
		list = append(list, s.Request(ref, storeruns.Request{}))
	}
	for i, run := range list {
		if list[i] = s.Wait(run); list[i].Outcome != precis.OutcomeFailed {
			t.Fatalf("%s %s\n%s", list[i].Outcome, list[i].Reason, s.Attempts(run))
		}
	}
	return list
}

func askedFor(s *scenario.System, model string) int {
	n := 0
	for _, r := range s.Vendor.Requests() {
		if r.Model == model {
			n++
		}
	}
	return n
}

// follow reads a batch until it has ended.
func follow(t *testing.T, l launch.Launcher, ref store.BatchRef) launch.Batch {
	t.Helper()
	var end launch.Batch
	until(t, "the batch has ended", func() bool {
		var err error
		end, err = l.Batch(t.Context(), ref)
		return err == nil && !end.Finished.IsZero()
	})
	return end
}

// A batch replays all failed runs, each of them once, with a bound on how many run at the same time. A pause and
// restarts of the worker neither repeat nor lose a replay.
func TestBatchOfFailedRuns(t *testing.T) {
	t.Parallel()
	const n = 45 // more than one execution of the workflow takes
	s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{
		"beta": {{Text: "<summary>The parts were read.</summary>", Forever: true}},
	}})
	s.StartWorker()
	failed := failures(t, s, n)
	other := s.Compact(s.Create(scenario.Conversation{Window: 100_000, Messages: scenario.Turns(1, 10)}),
		storeruns.Request{Kind: "tokens"})
	if other.Outcome != precis.OutcomeSkipped {
		t.Fatal(other.Outcome)
	}
	l := launch.Launcher{Store: s.Store, Client: s.Client, Config: s.Config}
	request := launch.BatchRequest{
		Filter: replays.Filter{
			Failed: true, ErrorKind: "model_not_found", Since: failed[0].Created,
			Effective: true,
		},
		Replay:      launch.ReplayRequest{Live: true, Apply: true, Summarizer: "openai/beta"},
		Concurrency: 4,
	}
	b, err := l.StartBatch(t.Context(), scenario.Tenant, request)
	if err != nil {
		t.Fatal(err)
	}
	if b.Total != n {
		t.Errorf("%d runs match, want %d", b.Total, n)
	}
	pauseAndRestart(t, s, l, b)
	end := follow(t, l, b.Ref)

	if len(end.Totals.Counts) != 1 || end.Totals.Counts[0].Outcome != precis.OutcomeApplied ||
		end.Totals.Counts[0].Runs != n || end.Cancelled {
		t.Errorf("%+v", end.Totals.Counts)
	}
	if len(end.Totals.Models) != 1 || end.Totals.Models[0].Calls < n || end.Totals.Models[0].Model != "beta" {
		t.Errorf("%+v", end.Totals.Models)
	}
	for _, run := range failed {
		wantReplayedOnce(t, s, run)
	}
	history := s.HistoryOf(b.WorkflowID)
	if events := len(history.Events); events > 800 {
		t.Errorf("the last execution has %d events", events)
	}
	// A second batch finds no runs, and continuing the first one does nothing.
	asked := askedFor(s, "beta")
	second, err := l.StartBatch(t.Context(), scenario.Tenant, request)
	if err != nil || second.Total != 0 {
		t.Errorf("%d runs match, %v", second.Total, err)
	}
	if err := l.ContinueBatch(t.Context(), end.Batch); err != nil {
		t.Error(err)
	}
	follow(t, l, second.Ref)
	if n := askedFor(s, "beta"); n != asked {
		t.Errorf("%d model calls of the second batch", n-asked)
	}
}

// pauseAndRestart pauses a running batch, restarts the worker, resumes the batch, and restarts the worker again.
func pauseAndRestart(t *testing.T, s *scenario.System, l launch.Launcher, b replays.Batch) {
	t.Helper()
	read := func() launch.Batch {
		t.Helper()
		now, err := l.Batch(t.Context(), b.Ref)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	until(t, "ten replays have ended", func() bool { _, done := read().Totals.Runs(); return done >= 10 })

	// While the batch is paused, running replays finish and no new ones start.
	if p, err := l.PauseBatch(t.Context(), b, true); err != nil || !p.Paused {
		t.Fatalf("%+v, %v", p, err)
	}
	until(t, "no replay is running", func() bool { p := read().Progress; return p != nil && p.Running == 0 })
	paused := read()
	_, done := paused.Totals.Runs()
	if done >= b.Total || !paused.Progress.Paused || paused.Progress.Done != done {
		t.Errorf("%d replays have ended, the workflow's progress is %+v", done, paused.Progress)
	}

	// The pause outlives the worker.
	s.StopWorker()
	s.StartWorker()
	if p, err := l.PauseBatch(t.Context(), b, false); err != nil || p.Paused || p.Done != done {
		t.Fatalf("%+v, %v", p, err)
	}
	until(t, "half of the replays have ended",
		func() bool { _, done := read().Totals.Runs(); return done >= b.Total/2 })
	s.StopWorker()
	s.StartWorker()
	// Continuing a running batch attaches to it.
	if err := l.ContinueBatch(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// wantReplayedOnce checks that a failed run has one replay, with one model call, whose summary was applied.
func wantReplayedOnce(t *testing.T, s *scenario.System, run storeruns.Run) {
	t.Helper()
	ref := store.ConversationRef{Tenant: scenario.Tenant, ID: run.Conversation}
	list, _, err := s.Store.Runs.List(t.Context(), scenario.Tenant, storeruns.Filter{Conversation: ref.ID})
	if err != nil || len(list) != 2 || list[0].ReplayOf != run.Ref.ID ||
		list[0].Usage.Calls-list[0].Usage.Lost != 1 {
		t.Fatalf("%d runs of one conversation, %v: %+v", len(list), err, list[0].Usage)
	}
	if !strings.Contains(s.Context(ref)[0], "The parts were read") {
		t.Errorf("conversation %s has no summary", ref.ID)
	}
}

// A batch of replays from the record calls no model, counts the replays that differ, and accepts every outcome. A
// cancelled batch ends when its running replays have ended.
func TestBatchFromTheRecord(t *testing.T) {
	t.Parallel()
	s := scenario.New(
		t, vendorserver.Script{Default: &vendorserver.Answer{Text: "<summary>The parts were read.</summary>"}})
	s.StartWorker()
	var runs []storeruns.Run
	for i := range 8 {
		ref := s.Create(scenario.Conversation{Window: 3000, Messages: scenario.Turns(3, 60)})
		runs = append(runs, s.Compact(ref, storeruns.Request{Focus: fmt.Sprint("part ", i)}))
	}
	asked := len(s.Vendor.Requests())
	l := launch.Launcher{Store: s.Store, Client: s.Client, Config: s.Config}
	b, err := l.StartBatch(t.Context(), scenario.Tenant, launch.BatchRequest{Concurrency: 3})
	if err != nil || b.Total != len(runs) {
		t.Fatalf("%d, %v", b.Total, err)
	}
	end := follow(t, l, b.Ref)
	if c := end.Totals.Counts; len(c) != 1 || c[0].Outcome != precis.OutcomeReplayed || c[0].Identical == nil ||
		!*c[0].Identical || c[0].Runs != len(runs) || len(end.Totals.Different) != 0 {
		t.Errorf("%+v, different %v", c, end.Totals.Different)
	}
	if n := len(s.Vendor.Requests()); n != asked {
		t.Errorf("%d calls", n-asked)
	}

	// A batch that is cancelled without a worker ends once there is one.
	s.StopWorker()
	b, err = l.StartBatch(t.Context(), scenario.Tenant, launch.BatchRequest{Concurrency: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.CancelBatch(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.StartWorker()
	until(t, "the cancelled batch has ended",
		func() bool { end, err = l.Batch(t.Context(), b.Ref); return err == nil && end.Cancelled })
	if _, err := l.StartBatch(t.Context(), scenario.Tenant,
		launch.BatchRequest{Concurrency: contract.MaxBatchConcurrency + 1}); err == nil {
		t.Error("a concurrency above the maximum is accepted")
	}
}
