package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"precis"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/telemetry"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// ahead are settings under which a summary is computed from half of the window on and takes effect at 90 % of it.
const ahead = `{"trigger":{"start":{"unused_percent":0.5},"apply":{"unused_percent":0.1},"fraction":1}}`

// prepared returns a conversation with a window of 10,000 tokens and a prepared summary.
func prepared(t testing.TB, sys *scenario.System, settings string) storeRef {
	t.Helper()
	s := sys.Service()
	ref := create(t, s, window(10000), settings)
	appendTo(t, s, ref, user("u1: see /srv/app/config-7731.yaml"))
	got := answered(t, s, ref, "BEGIN "+abc(5500), 5600, 10)
	if !got.Trigger.Fired || !got.Trigger.Prepare || got.Run == nil ||
		got.Run.Trigger.Kind != pipeline.TriggerBackground {
		t.Fatalf("%+v", got.Trigger)
	}
	if run := idle(t, sys, ref); run.Outcome != precis.OutcomePrepared {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, sys.Attempts(*run))
	}
	return ref
}

// A prepared summary is not affected by appends. It takes effect between two replies once the second threshold is
// crossed, and the messages appended in the meantime are in the tail.
func TestPreparedSummaryTakesEffectAtTheSecondThreshold(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("BG"))
	ref := prepared(t, sys, ahead)
	for i := range 3 {
		got := appendTo(t, s, ref, user(fmt.Sprintf("u%d", i+2)), assistant("a"))
		if got.Applied != nil || got.Run != nil || got.Trigger.Fired {
			t.Fatalf("%+v", got)
		}
	}
	if c := contextOf(t, s, ref); c.Stats.Prepared == nil || c.Stats.Marker != nil {
		t.Errorf("%+v", c.Stats)
	}
	got := appendTo(t, s, ref, user("LAST "+abc(3500)))
	if got.Applied == nil || got.Applied.Outcome != precis.OutcomeApplied || !got.Trigger.ApplyPrepared ||
		got.UsedTokens > 5000 {
		t.Fatalf("%+v\n%+v", got, got.Trigger)
	}
	text := sent(contextOf(t, s, ref))
	for _, once := range []string{"BG: ", "u2", "u3", "u4", "LAST "} {
		if strings.Count(text, once) != 1 {
			t.Errorf("%q occurs %d times", once, strings.Count(text, once))
		}
	}
	if strings.Contains(text, "BEGIN ") {
		t.Error("covered messages are in the context")
	}
	if n := len(sys.Vendor.Requests()); n != 1 {
		t.Errorf("%d model calls", n)
	}
}

// The metrics count a prepared summary twice, as prepared and as applied. The time in between is not part of the run's
// duration.
func TestPreparedSummaryIsCountedWhenItTakesEffect(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Stop(context.Background()) })
	sys := scenario.New(t, always("BG"))
	sys.Observe(tel)
	sys.StartWorker()
	ref := prepared(t, sys, ahead)
	s := sys.Service()
	if got := appendTo(t, s, ref, user("LAST "+abc(3500))); got.Applied == nil {
		t.Fatalf("%+v", got.Trigger)
	}
	appendTo(t, s, ref, assistant("done"))
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	metrics := w.Body.String()
	for _, outcome := range []string{"prepared", "applied"} {
		for _, line := range []string{
			`precis_compaction_status_total{error_kind="",outcome="` + outcome +
				`",stage="reassemble",summarizer="openai/test-agent",trigger="background"} 1`,
			`precis_compaction_tokens_after_count{outcome="` + outcome + `",summarizer="openai/test-agent"} 1`,
		} {
			if !strings.Contains(metrics, line) {
				t.Errorf("the metrics have no line %s", line)
			}
		}
	}
	if !strings.Contains(metrics, `precis_compaction_run_seconds_count{outcome="prepared",trigger="background"} 1`) ||
		strings.Contains(metrics, `precis_compaction_run_seconds_count{outcome="applied"`) {
		t.Error("the run's duration is not only that of preparing the summary")
	}
}

// A file that the agent uses after the cut, but that only covered messages name, is added to the summary when it takes
// effect.
func TestPreparedSummaryIncludesWhatTheTailNeeds(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("BG"))
	ref := prepared(t, sys, ahead)
	appendTo(t, s, ref, user("u2"), json.RawMessage(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1",`+
		`"type":"function","function":{"name":"read","arguments":"{\"path\":\"/srv/app/config-7731.yaml\"}"}}]}`),
		toolResult("c1", "port: 80"))
	got := appendTo(t, s, ref, user("u3 "+abc(3500)))
	if got.Applied == nil {
		t.Fatalf("%+v", got.Trigger)
	}
	c := contextOf(t, s, ref)
	first := string(c.Messages[0])
	if !strings.Contains(first, "BG: ") || !strings.Contains(first, "/srv/app/config-7731.yaml") {
		t.Errorf("the summary is %s", first)
	}
	run, err := s.GetRun(t.Context(), store.RunRef{Tenant: tenant, ID: got.Applied.ID}, []string{"summary"})
	if err != nil || !strings.Contains(run.Summary, "config-7731") {
		t.Errorf("%v, %v", run.RunTexts, err)
	}
}

// The summary is rendered when it takes effect: it asks the agent to continue only if the agent is working then.
func TestPreparedSummaryIsRenderedWhenItTakesEffect(t *testing.T) {
	t.Parallel()
	const resume = "Go on from where the work stopped"
	sys, s := served(t, always("BG"))
	ref := create(t, s, window(10000), ahead)
	appendTo(t, s, ref, user("u1"), assistant(abc(4500)))
	if got := appendTo(t, s, ref, user("u2 "+abc(600))); !got.Trigger.Prepare {
		t.Fatalf("%+v", got.Trigger)
	}
	idle(t, sys, ref) // prepared before u2 is answered
	got := appendTo(t, s, ref, assistant("done "+abc(4200)))
	if got.Applied == nil {
		t.Fatalf("%+v", got.Trigger)
	}
	if first := string(contextOf(t, s, ref).Messages[0]); strings.Contains(first, resume) {
		t.Errorf("the agent is not working, and the summary is %s", first)
	}
}

// wantDiscarded checks that the prepared summary, that of the oldest run, was discarded for a reason.
func wantDiscarded(t *testing.T, s *service.Service, ref storeRef) {
	t.Helper()
	list := runsOf(t, s, ref)
	oldest := list[len(list)-1]
	if oldest.Outcome != precis.OutcomeSuperseded || oldest.Reason == "" {
		t.Errorf("the run that prepared the summary has outcome %s, reason %q", oldest.Outcome, oldest.Reason)
	}
	if c := contextOf(t, s, ref); c.Stats.Prepared != nil {
		t.Error("the context still has a prepared summary")
	}
}

// A prepared summary is discarded when a newer compaction, an undo or a cancellation replaces it.
func TestPreparedSummaryIsDiscarded(t *testing.T) {
	t.Parallel()
	t.Run("compaction by hand", func(t *testing.T) {
		t.Parallel()
		sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{summary("BG"), summary("MAN")}})
		ref := prepared(t, sys, ahead)
		appendTo(t, s, ref, user("u2"))
		if run := compact(t, s, ref, service.CompactRequest{}); run.Outcome != precis.OutcomeApplied {
			t.Fatalf("%+v", run)
		}
		wantDiscarded(t, s, ref)
		answered(t, s, ref, "x", 2000, 5)
		idle(t, sys, ref)
		text := sent(contextOf(t, s, ref))
		if strings.Contains(text, "BG: ") || strings.Count(text, "MAN: ") != 1 || len(runsOf(t, s, ref)) != 2 {
			t.Errorf("%.300s", text)
		}
	})
	t.Run("undo", func(t *testing.T) {
		t.Parallel()
		sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{summary("ONE"), summary("BG")}})
		ref := create(t, s, window(10000), ahead)
		appendTo(t, s, ref, user("u1"), assistant(abc(2000)), user("u2"))
		compact(t, s, ref, service.CompactRequest{})
		if got := appendTo(t, s, ref, assistant("BEGIN "+abc(5500)), user("u3")); !got.Trigger.Prepare {
			t.Fatalf("%+v", got.Trigger)
		}
		idle(t, sys, ref)
		if _, err := s.Undo(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		list := runsOf(t, s, ref)
		if list[0].Outcome != precis.OutcomeSuperseded || !strings.Contains(list[0].Reason, "undo") {
			t.Errorf("%s %q", list[0].Outcome, list[0].Reason)
		}
	})
	t.Run("usage that falls does not discard it", func(t *testing.T) {
		t.Parallel()
		sys, s := served(t, always("BG"))
		ref := prepared(t, sys, ahead)
		appendTo(t, s, ref, user("u2"))
		if got := answered(t, s, ref, "x", 3000, 5); got.Applied != nil || got.Trigger.ApplyPrepared {
			t.Errorf("%+v", got.Trigger)
		}
		if c := contextOf(t, s, ref); c.Stats.Prepared == nil {
			t.Error("the prepared summary was discarded")
		}
	})
	t.Run("cancellation of its run", func(t *testing.T) {
		t.Parallel()
		sys, s := served(t, always("BG"))
		ref := prepared(t, sys, ahead)
		run, err := s.CancelRun(t.Context(), store.RunRef{Tenant: tenant, ID: runsOf(t, s, ref)[0].Ref.ID})
		if err != nil || run.Outcome != precis.OutcomeSuperseded {
			t.Errorf("%+v, %v", run, err)
		}
		wantDiscarded(t, s, ref)
	})
	t.Run("compaction by the agent", func(t *testing.T) {
		t.Parallel()
		sys, s := served(t, always("BG"))
		ref := prepared(t, sys, ahead)
		m := service.ReportedMarker{Summary: user("own summary"), CoversTo: 2}
		_, err := s.ReportMarker(t.Context(), ref, m, false)
		code(t, err, service.CodeForbidden)
		got, err := s.ReportMarker(t.Context(), ref, m, true)
		if err != nil || got.Origin != markers.OriginAgent || !got.Active {
			t.Fatalf("%+v, %v", got, err)
		}
		wantDiscarded(t, s, ref)
		list, _, err := s.ListCompactions(t.Context(), ref, "", 10)
		if err != nil || len(list) != 2 || list[0].Run != nil || list[0].Marker.Origin != markers.OriginAgent ||
			list[1].Run == nil {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// If the threshold is crossed while a reply is open, the end of the reply applies the summary. If the reply's lease
// expires instead, the next reply does.
func TestPreparedSummaryWaitsForTheReply(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("BG"))
	ref := prepared(t, sys, ahead)
	appendTo(t, s, ref, user("u2"))
	reply, err := s.OpenReply(t.Context(), ref, time.Hour, service.ContextRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := appendTo(t, s, ref, user("u3 "+abc(3500))); got.Applied != nil || got.Trigger.ApplyPrepared {
		t.Fatalf("%+v", got.Trigger)
	}
	end, err := s.EndReply(t.Context(), ref, reply.ID, service.ReplyEnd{Messages: []json.RawMessage{assistant("a2")}})
	if err != nil || end.Applied == nil {
		t.Fatalf("%+v, %v", end, err)
	}

	ref = prepared(t, sys, ahead)
	appendTo(t, s, ref, user("u2"))
	if _, err := s.OpenReply(t.Context(), ref, time.Millisecond, service.ContextRequest{}); err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, ref, user("u3 "+abc(3500))) // may or may not come before the lease has expired
	next, err := s.OpenReply(t.Context(), ref, time.Hour, service.ContextRequest{})
	for ; err != nil; next, err = s.OpenReply(t.Context(), ref, time.Hour, service.ContextRequest{}) {
		code(t, err, service.CodeReplyOpen)
	}
	if next.Context.Stats.Marker == nil || strings.Contains(sent(next.Context), "BEGIN ") {
		t.Errorf("the next reply reads %+v", next.Context.Stats)
	}
}

// If the limit is reached while the summary is being written, the summary takes effect when it is ready.
func TestBackgroundRunIsPromoted(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(t *testing.T, s *service.Service, ref storeRef){
		"by the second threshold": func(t *testing.T, s *service.Service, ref storeRef) {
			if got := appendTo(t, s, ref, user("u2 "+abc(4000))); got.Run == nil {
				t.Errorf("%+v", got)
			}
		},
		"by hand": func(t *testing.T, s *service.Service, ref storeRef) {
			if _, _, err := s.Compact(t.Context(), ref, service.CompactRequest{}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := vendorserver.NewGate()
			slow := summary("BG")
			slow.Gate = gate
			sys, s := served(t, vendorserver.Script{Answers: []vendorserver.Answer{slow}})
			ref := create(t, s, window(10000), ahead)
			appendTo(t, s, ref, user("u1"))
			answered(t, s, ref, "BEGIN "+abc(5500), 5600, 10)
			if _, err := sys.Vendor.WaitForRequest(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			ask(t, s, ref)
			gate.Open()
			run := idle(t, sys, ref)
			if run.Outcome != precis.OutcomeApplied || len(runsOf(t, s, ref)) != 1 {
				t.Errorf("%s %s, %d runs\n%s", run.Outcome, run.Reason, len(runsOf(t, s, ref)), sys.Attempts(*run))
			}
		})
	}
}

// A prepared summary is a row in the database, so that it survives a restart of everything.
func TestPreparedSummarySurvivesRestart(t *testing.T) {
	t.Parallel()
	sys, _ := served(t, always("BG"))
	ref := prepared(t, sys, ahead)
	sys.StopWorker()
	other, err := store.Open(t.Context(), sys.Config.DatabaseURL, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s := sys.Service()
	s.Store, s.Temporal = other, nil // neither the old process nor Temporal is available
	if got := appendTo(t, s, ref, user("u2 "+abc(3500))); got.Applied == nil {
		t.Errorf("%+v", got.Trigger)
	}
}

// Prepared summaries cost nothing while they wait: none has an open workflow or an entry in the outbox.
func TestParkedSummariesCostNothing(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("BG"))
	refs := []storeRef{prepared(t, sys, ahead), prepared(t, sys, ahead)}
	noOpenWorkflows(t, sys)

	// The others are only the rows that a run would leave.
	sys.StopWorker()
	const parked = 2000
	for i := range parked {
		c, _, err := s.Store.Conversations.Create(t.Context(), tenant,
			conversations.NewConversation{
				ID: fmt.Sprintf("parked-%d", i), Format: "openai", Vendor: "openai",
				Model: "test-agent", Window: 10000, Settings: json.RawMessage(ahead),
			})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), c.Ref,
			service.AppendRequest{Messages: []json.RawMessage{user("u1"), assistant("a1")}}); err != nil {
			t.Fatal(err)
		}
		park(t, s, c.Ref)
	}
	due, err := s.Store.Outbox.Claim(t.Context(), 1000, time.Minute)
	if err != nil || len(due) != 0 {
		t.Errorf("%d runs are to be started, %v", len(due), err)
	}
	if n, err := s.Store.Outbox.Revive(t.Context(), 0); err != nil || n != 0 {
		t.Errorf("%d runs are revived, %v", n, err)
	}
	noOpenWorkflows(t, sys)
	for _, ref := range refs {
		if got := appendTo(t, s, ref, user("u2 "+abc(3500))); got.Applied == nil {
			t.Errorf("%+v", got.Trigger)
		}
	}
}

// noOpenWorkflows waits until no workflow is open. A run's row is closed just before its workflow, and Temporal's
// visibility follows later.
func noOpenWorkflows(t *testing.T, sys *scenario.System) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		open, err := sys.Client.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: sys.Config.Temporal.Namespace, Query: "ExecutionStatus = 'Running'",
		})
		if err == nil && open.Count == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d workflows are open, %v", open.GetCount(), err)
		}
	}
}

// park stores a prepared marker as a run does.
func park(t testing.TB, s *service.Service, ref storeRef) {
	t.Helper()
	run, _, err := s.Store.Runs.Request(t.Context(), ref,
		runs.Request{Kind: pipeline.TriggerBackground, Prepare: true})
	if err != nil {
		t.Fatal(err)
	}
	live, err := s.Store.Contexts.Read(t.Context(), ref, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Store.Artifacts.Put(t.Context(), ref, "summary", []byte("BG"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Store.Markers.Prepare(t.Context(), run.Ref, markers.NewMarker{
		CoversFrom: 1, CoversTo: 1, CoveredMessages: 1, CoveredChain: live.Tail[0].Chain, Summary: a.SHA256,
		SummaryTokens: 1,
	}, runs.Facts{})
	if err != nil {
		t.Fatal(err)
	}
}
