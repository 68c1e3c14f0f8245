package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"precis"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// summary is an accepted summary with a mark to look for.
func summary(mark string) vendorserver.Answer {
	return vendorserver.Answer{Text: "<summary>" + mark +
		": the parts were read, and the last question is open.</summary>"}
}

// always answers every request with a summary.
func always(mark string) vendorserver.Script {
	a := summary(mark)
	return vendorserver.Script{Default: &a}
}

// Right after a compaction the old figure is stale, the next small turn starts no other one, and the next
// real figure counts. One of a request that began before does not.
func TestStaleUsageStartsNoSecondCompaction(t *testing.T) {
	t.Parallel()
	sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{summary("SUM1")}})
	ref := create(t, s, window(10000), "")
	appendTo(t, s, ref, user("first"))
	got := answered(t, s, ref, abc(8000), 9000, 500)
	if !got.Trigger.Fired || got.Run == nil || got.Run.Trigger.Kind != pipeline.TriggerTokens {
		t.Fatalf("%+v", got)
	}
	if run := idle(t, sys, ref); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, sys.Attempts(*run))
	}
	if st := state(t, s, ref); st.UsedTokens >= 3000 || !st.Estimated {
		t.Errorf("%d tokens after, estimated %t", st.UsedTokens, st.Estimated)
	}

	if got := appendTo(t, s, ref, user("hi")); got.Trigger.Fired || got.UsedTokens >= 3000 {
		t.Errorf("%+v", got.Trigger)
	}
	// The answer to a request that began before the summary was there: no version, and far too large for now.
	if got := answered(t, s, ref, "late", 9400, 100); got.Trigger.Fired || got.UsedTokens >= 3000 || !got.Estimated {
		t.Errorf("a late figure counts: %+v", got.Trigger)
	}
	appendTo(t, s, ref, user("hi again"))
	if got := answered(t, s, ref, "hello", 1200, 5); got.UsedTokens != 1205 || got.Estimated || got.Trigger.Fired {
		t.Errorf("%+v", got)
	}
	if n := len(sys.Vendor.Requests()); n != 1 {
		t.Errorf("%d model calls", n)
	}
}

// A figure whose context version is that of before a compaction is dropped, however small it is.
func TestUsageOfAnEarlierContext(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(16000), "")
	appendTo(t, s, ref, user("u1"), assistant(abc(5000)), user("u2"), assistant("a2"), user("u3"))
	before := contextOf(t, s, ref).Stats.Version
	compact(t, s, ref, service.CompactRequest{})
	got := appendWith(t, s, ref, service.AppendRequest{
		Messages: []json.RawMessage{assistant("x")},
		Usage:    usage(700, 3), ContextVersion: &before,
	})
	if !got.Estimated {
		t.Errorf("%+v", got)
	}
	now := contextOf(t, s, ref).Stats.Version
	if now == before {
		t.Fatal("the version is the same")
	}
	got = appendWith(t, s, ref, service.AppendRequest{
		Messages: []json.RawMessage{user("q"), assistant("y")},
		Usage:    usage(800, 3), ContextVersion: &now,
	})
	if got.Estimated || got.UsedTokens != 803 {
		t.Errorf("%+v", got)
	}
	_ = sys
}

// A history that cannot shrink is not compacted again and again; it is said, and appends go on.
func TestIneffectiveCompactionIsNotRepeated(t *testing.T) {
	t.Parallel()
	sys, s := served(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "SUM"}})
	ref := create(t, s, window(4000), "")
	big := user(strings.Repeat("word ", 3900))
	appendTo(t, s, ref, user("small"), assistant("ok"))
	if got := appendTo(t, s, ref, big); !got.Trigger.Fired {
		t.Fatalf("%+v", got.Trigger)
	}
	idle(t, sys, ref)
	got := answered(t, s, ref, "got it", 3950, 5)
	if got.Trigger.Fired || got.Trigger.Hold == "" {
		t.Errorf("%+v", got.Trigger)
	}
	for range 5 {
		appendTo(t, s, ref, assistant("and more"))
	}
	idle(t, sys, ref)
	if n := len(sys.Vendor.Requests()); n > 2 {
		t.Errorf("%d model calls\n%s", n, steps(t, sys, ref))
	}
	if st := state(t, s, ref); st.Hold == "" || !st.Trigger.OverLimit {
		t.Errorf("%+v", st)
	}
	if !strings.Contains(sent(contextOf(t, s, ref)), string(big)) {
		t.Error("the user's message is not there as it came")
	}
	// By hand it is tried all the same, and a next turn may help.
	if got := appendTo(t, s, ref, user("next")); !got.Trigger.Fired {
		t.Errorf("%+v", got.Trigger)
	}
}

// What we put into a context is no message, and starts nothing.
func TestOneCompactionIsOne(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(20000), "")
	for i := range 12 {
		appendTo(t, s, ref, user(fmt.Sprintf("u%d", i)), assistant(abc(1500)))
	}
	idle(t, sys, ref)
	n := len(runsOf(t, s, ref))
	if n != 1 {
		t.Fatalf("%d runs", n)
	}
	if got := appendTo(t, s, ref, user("go on")); got.Trigger.Fired || got.Trigger.Turns > 12 {
		t.Errorf("%+v", got.Trigger)
	}
	if len(runsOf(t, s, ref)) != 1 {
		t.Error("a second one was started")
	}
}

// What fails is not tried with every append; the breaker opens, is seen, survives a restart, and gives way
// by hand.
func TestFailingCompactionOpensTheBreaker(t *testing.T) {
	t.Parallel()
	unknown := vendorserver.Answer{Error: &vendorserver.Error{Status: 400, Message: "unknown field"}, Forever: true}
	sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{unknown}})
	ref := create(t, s, window(16000), `{"digest":"never"}`)
	appendTo(t, s, ref, user("u0"))
	for i := range 20 {
		answered(t, s, ref, abc(400), 15500, 400)
		appendTo(t, s, ref, user(fmt.Sprintf("next %d", i)))
		idle(t, sys, ref)
		if i == 10 {
			if st := state(t, s, ref); !st.Breaker.Open || st.Hold == "" {
				t.Errorf("%+v", st)
			}
			sys.StopWorker()
			sys.StartWorker()
		}
	}
	if n := len(sys.Vendor.Requests()); n > 9 {
		t.Errorf("%d model calls", n)
	}
	if st := state(t, s, ref); !st.Breaker.Open || !strings.Contains(st.Hold, "breaker") {
		t.Errorf("%+v", st)
	}
	warned := false
	events, err := s.Events(t.Context(), ref, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		warned = warned || e.Kind == timeline.Warning && strings.Contains(string(e.Data), "breaker_open")
	}
	if !warned {
		t.Error("no event tells of the breaker")
	}
	run, done, err := s.Compact(t.Context(), ref, service.CompactRequest{Wait: time.Minute})
	if err != nil || !done || run.Outcome != precis.OutcomeFailed {
		t.Fatalf("%+v, %t, %v", run, done, err)
	}
	if st := state(t, s, ref); st.Breaker.Open || st.Breaker.Failures != 1 {
		t.Errorf("by hand it is closed, and the failure is the first: %+v", st.Breaker)
	}
}

// An overflow that the agent reports starts a compaction at once and teaches the window; the
// transcript stays as it was, and reporting it again and again starts no more than one further attempt.
func TestReportedOverflow(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(200000), "")
	appendTo(t, s, ref, user("u1"), assistant(abc(9000)), user("u2"))
	const body = `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9213 ` +
		`tokens > 8192 maximum"}}`
	got := failedReply(t, s, ref, 400, body)
	if !got.Trigger.Fired || got.Run == nil || got.Run.Trigger.Kind != pipeline.TriggerOverflow {
		t.Fatalf("%+v", got)
	}
	if st := state(t, s, ref); st.LearnedWindow != 8192 || st.Trigger.Window != 8192 {
		t.Errorf("%+v", st)
	}
	if run := idle(t, sys, ref); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, sys.Attempts(*run))
	}
	if st := state(t, s, ref); st.UsedTokens >= 8192 {
		t.Errorf("%d tokens", st.UsedTokens)
	}
	for range 10 {
		failedReply(t, s, ref, 400, body)
		idle(t, sys, ref)
	}
	if n := len(runsOf(t, s, ref)); n > 2 {
		t.Errorf("%d runs\n%s", n, steps(t, sys, ref))
	}
	list, _, err := s.Messages(t.Context(), ref, 0, 0)
	if err != nil || len(list) != 3 {
		t.Errorf("%d messages, %v", len(list), err)
	}
	// Another model: its window is not known any more.
	name := "other"
	c, err := s.PatchConversation(t.Context(), ref, service.ConversationPatch{Model: &service.ModelPatch{Name: &name}})
	if err != nil || c.State.LearnedWindow != 0 || c.Model.ContextWindow != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// After an undo no automatic one starts until the next user message, and undo goes down to the
// full history.
func TestUndo(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(10000), `{"tool_result_keep_turns":0}`)
	appendTo(t, s, ref, user("u1"), assistant(abc(9200)), user("u2"))
	if run := idle(t, sys, ref); run == nil || run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%+v", run)
	}
	undone, err := s.Undo(t.Context(), ref)
	if err != nil || undone.Marker != nil || undone.Undone == nil || undone.Undone.Status != runs.MarkerUndone {
		t.Fatalf("%+v, %v", undone, err)
	}
	_, err = s.Undo(t.Context(), ref)
	code(t, err, service.CodeNothingToUndo)
	got := appendTo(t, s, ref, assistant("a2"))
	if got.Trigger.Fired || !got.Trigger.OverLimit || !strings.Contains(got.Trigger.Hold, "undone") {
		t.Errorf("%+v", got.Trigger)
	}
	if got := failedReply(t, s, ref, 413, "request too large"); got.Trigger.Fired {
		t.Errorf("%+v", got.Trigger)
	}
	if got := appendTo(t, s, ref, user("u3")); !got.Trigger.Fired {
		t.Errorf("%+v", got.Trigger)
	}
}

// By hand is refused while a reply is open, appends go on, and an automatic run is computed and takes effect
// after the reply.
func TestReplyHoldsCompactionBack(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(10000), "")
	appendTo(t, s, ref, user("u1"), assistant(abc(5000)), user("u2"))
	reply, err := s.OpenReply(t.Context(), ref, time.Hour, service.ContextRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.OpenReply(t.Context(), ref, time.Hour, service.ContextRequest{})
	code(t, err, service.CodeReplyOpen)
	_, _, err = s.Compact(t.Context(), ref, service.CompactRequest{})
	code(t, err, service.CodeReplyOpen)

	got := appendTo(t, s, ref, user("MID-FLIGHT "+abc(4500)))
	if !got.Trigger.Fired || got.Run == nil {
		t.Fatalf("%+v", got.Trigger)
	}
	if run := idle(t, sys, ref); run.Outcome != precis.OutcomePrepared {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, sys.Attempts(*run))
	}
	if c := contextOf(t, s, ref); c.Stats.Marker != nil || c.Stats.Prepared == nil {
		t.Errorf("%+v", c.Stats)
	}
	end, err := s.EndReply(t.Context(), ref, reply.ID,
		service.ReplyEnd{Messages: []json.RawMessage{assistant("LATE ANSWER")}, Usage: usage(5100, 20)})
	if err != nil {
		t.Fatal(err)
	}
	if end.Applied == nil || end.Applied.Outcome != precis.OutcomeApplied || !end.Estimated {
		t.Errorf("%+v", end)
	}
	text := sent(contextOf(t, s, ref))
	for _, once := range []string{"MID-FLIGHT", "LATE ANSWER", "SUM: "} {
		if strings.Count(text, once) != 1 {
			t.Errorf("%q occurs %d times in %.500s", once, strings.Count(text, once), text)
		}
	}
	_, err = s.EndReply(t.Context(), ref, reply.ID,
		service.ReplyEnd{Messages: []json.RawMessage{assistant("LATE ANSWER")}})
	code(t, err, service.CodeReplyEnded)
	if _, err := s.EndReply(t.Context(), ref, reply.ID, service.ReplyEnd{}); err != nil {
		t.Errorf("ending it again with nothing: %v", err)
	}
	_, err = s.EndReply(t.Context(), ref, "nope", service.ReplyEnd{})
	code(t, err, service.CodeNotFound)
}

// What somebody else says while a reply is generated is not in the reply's figure.
func TestUsageOfAReplyLeavesOutWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, window(100000), "")
	appendTo(t, s, ref, user("u1"), assistant(abc(3000)), user("u2"))
	reply, err := s.OpenReply(t.Context(), ref, 0, service.ContextRequest{})
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, ref, user(abc(2000)))
	got, err := s.EndReply(t.Context(), ref, reply.ID,
		service.ReplyEnd{Messages: []json.RawMessage{assistant("a2")}, Usage: usage(3100, 5)})
	if err != nil || got.UsedTokens < 4900 || got.UsedTokens > 5800 || got.Estimated {
		t.Errorf("%+v, %v", got, err)
	}
}

// The settings, the model and the run's own request reach the run; it can be cancelled.
func TestCompactByHand(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	slow := summary("SLOW")
	slow.Gate = gate
	sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{slow, summary("NEXT")}})
	ref := create(t, s, window(16000), "")
	appendTo(t, s, ref, user("u1"), assistant(abc(5000)), user("u2"))
	run, done, err := s.Compact(t.Context(), ref, service.CompactRequest{Focus: "the failing test"})
	if err != nil || done || run.Focus != "the failing test" {
		t.Fatalf("%+v, %t, %v", run, done, err)
	}
	again, done, err := s.Compact(t.Context(), ref, service.CompactRequest{})
	if err != nil || done || again.ID != run.ID {
		t.Fatalf("%+v, %t, %v", again, done, err)
	}
	if _, err := sys.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ended, err := s.CancelRun(t.Context(), store.RunRef{Tenant: tenant, ID: run.ID})
	if err != nil || ended.Outcome != precis.OutcomeCancelled {
		t.Fatalf("%+v, %v", ended, err)
	}
	gate.Open()
	if text := sent(contextOf(t, s, ref)); strings.Contains(text, "SLOW") {
		t.Error("the answer of a cancelled run is in the context")
	}
	if got := compact(t, s, ref, service.CompactRequest{}); got.Outcome != precis.OutcomeApplied {
		t.Errorf("%+v", got)
	}
	list, next, err := s.ListCompactions(t.Context(), ref, "", 1)
	if err != nil || len(list) != 1 || next == "" || list[0].Marker == nil || !list[0].Marker.Active {
		t.Errorf("%+v, %q, %v", list, next, err)
	}
	for field, req := range map[string]service.CompactRequest{
		"prompt": {Prompt: "nope"}, "summarizer": {Summarizer: "self,nobody/x"}, "wait_seconds": {Wait: -1},
	} {
		_, _, err := s.Compact(t.Context(), ref, req)
		if e := code(t, err, service.CodeInvalid); e.Field != field {
			t.Errorf("field %q, wanted %q", e.Field, field)
		}
	}
}

func compact(t testing.TB, s *service.Service, ref storeRef, req service.CompactRequest) (run runOuter) {
	t.Helper()
	req.Wait = time.Minute
	run, done, err := s.Compact(t.Context(), ref, req)
	if err != nil || !done {
		t.Fatalf("%+v, done %t, %v", run, done, err)
	}
	return run
}

// A caller that waits and goes away does not take the run with it.
func TestWaitingEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	slow := summary("SUM")
	slow.Gate = gate
	sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{slow}})
	ref := create(t, s, window(16000), "")
	appendTo(t, s, ref, user("u1"), assistant(abc(5000)), user("u2"))
	run, done, err := s.Compact(t.Context(), ref, service.CompactRequest{Wait: 50 * time.Millisecond})
	if err != nil || done {
		t.Fatalf("done %t, %v", done, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, _, err := s.Compact(ctx, ref, service.CompactRequest{Wait: time.Minute}); err == nil {
			t.Error("the wait outlived its caller")
		}
	})
	if _, err := sys.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	wg.Wait()
	gate.Open()
	if got := idle(t, sys, ref); got.Ref.ID != run.ID || got.Outcome != precis.OutcomeApplied {
		t.Errorf("%+v", got)
	}
}
