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

// until waits until something holds, and says what did not.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// failures makes conversations whose only run failed, since no model answered and the digest is switched off.
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

// Last night's failures are run again: all of them, once each, with a bound on how many at once, and neither a pause
// nor a worker that goes away in the middle repeats or loses one.
func TestBatchOfFailedRuns(t *testing.T) {
	t.Parallel()
	const n = 45 // more than one execution of the workflow takes
	s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{
		"beta": {{Text: "<summary>The parts were read.</summary>", Forever: true}},
	}})
	s.StartWorker()
	began := time.Now()
	failed := failures(t, s, n)
	t.Logf("%d runs failed within %s", n, time.Since(began))
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
	began = time.Now()
	b, err := l.StartBatch(t.Context(), scenario.Tenant, request)
	if err != nil {
		t.Fatal(err)
	}
	if b.Total != n {
		t.Errorf("%d runs match, want %d", b.Total, n)
	}
	look := func() launch.Batch {
		t.Helper()
		now, err := l.Batch(t.Context(), b.Ref)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	until(t, "ten of them have ended", func() bool { _, done := look().Totals.Runs(); return done >= 10 })

	// Paused, nothing begins; those under way end.
	if p, err := l.PauseBatch(t.Context(), b, true); err != nil || !p.Paused {
		t.Fatalf("%+v, %v", p, err)
	}
	until(t, "none is under way", func() bool { p := look().Progress; return p != nil && p.Running == 0 })
	paused := look()
	_, done := paused.Totals.Runs()
	if done >= n || !paused.Progress.Paused || paused.Progress.Done != done {
		t.Errorf("%d have ended, the workflow says %+v", done, paused.Progress)
	}

	// The worker goes away, another one comes, and the pause still holds.
	s.StopWorker()
	s.StartWorker()
	if p, err := l.PauseBatch(t.Context(), b, false); err != nil || p.Paused || p.Done != done {
		t.Fatalf("%+v, %v", p, err)
	}
	until(t, "half of them have ended", func() bool { _, done := look().Totals.Runs(); return done >= n/2 })
	s.StopWorker()
	s.StartWorker()
	// Begun again meanwhile: it is the same batch.
	if err := l.ContinueBatch(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	until(t, "the batch has ended", func() bool {
		now := look()
		return !now.Finished.IsZero()
	})
	t.Logf("%d replays within %s, with a pause and two workers that went away", n, time.Since(began))

	end := look()
	if len(end.Totals.Counts) != 1 || end.Totals.Counts[0].Outcome != precis.OutcomeApplied ||
		end.Totals.Counts[0].Runs != n || end.Cancelled {
		t.Errorf("%+v", end.Totals.Counts)
	}
	if len(end.Totals.Models) != 1 || end.Totals.Models[0].Calls < n || end.Totals.Models[0].Model != "beta" {
		t.Errorf("%+v", end.Totals.Models)
	}
	for _, run := range failed {
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
	history := s.HistoryOf(b.WorkflowID)
	if events := len(history.Events); events > 800 {
		t.Errorf("the last execution has %d events", events)
	}
	// Nothing is left: a second batch finds none, and the first one begun again does nothing.
	asked := askedFor(s, "beta")
	again, err := l.StartBatch(t.Context(), scenario.Tenant, request)
	if err != nil || again.Total != 0 {
		t.Errorf("%d are left, %v", again.Total, err)
	}
	if err := l.ContinueBatch(t.Context(), end.Batch); err != nil {
		t.Error(err)
	}
	until(t, "the empty batch has ended", func() bool {
		now, err := l.Batch(t.Context(), again.Ref)
		return err == nil && !now.Finished.IsZero()
	})
	if n := askedFor(s, "beta"); n != asked {
		t.Errorf("%d calls for nothing", n-asked)
	}
}

// From the record it calls nobody, tells which came out otherwise, and takes every outcome; cancelled, it ends with
// what is under way.
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
	var end launch.Batch
	until(t, "the batch has ended",
		func() bool { end, err = l.Batch(t.Context(), b.Ref); return err == nil && !end.Finished.IsZero() })
	if c := end.Totals.Counts; len(c) != 1 || c[0].Outcome != precis.OutcomeReplayed || c[0].Identical == nil ||
		!*c[0].Identical || c[0].Runs != len(runs) || len(end.Totals.Different) != 0 {
		t.Errorf("%+v, different %v", c, end.Totals.Different)
	}
	if n := len(s.Vendor.Requests()); n != asked {
		t.Errorf("%d calls", n-asked)
	}

	// Without a worker nothing ends; cancelled, the batch does once there is one.
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
		t.Error("any concurrency is taken")
	}
}
