package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"precis"
	"precis/internal/launch"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline/transcript"
)

// midCall are conversations whose runs call a model, one for each protocol and kind of summarizer.
var midCall = map[string]struct {
	conversation scenario.Conversation
	request      runs.Request
}{
	"anthropic, the agent's own model": {conversation: scenario.Conversation{}},
	"anthropic, another model":         {request: runs.Request{Summarizer: "anthropic/other"}},
	"openai, the agent's own model": {conversation: scenario.Conversation{
		Format: transcript.OpenAI, Vendor: "openai", Model: "gpt-test",
	}},
	"openai, another model": {
		conversation: scenario.Conversation{Format: transcript.OpenAI, Vendor: "openai", Model: "gpt-test"},
		request:      runs.Request{Summarizer: "openai/other"},
	},
}

// waitUntil calls the condition until it holds, or until the test has no more time.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: it did not happen", what)
		case <-tick.C:
		}
	}
}

// A run that is cancelled in mid-call ends at once, and its model answers later. The answer is paid for: it is booked
// and sealed, the rest of it is dropped, and the run verifies.
func TestCancelledInMidCallVerifies(t *testing.T) {
	t.Parallel()
	for name, c := range midCall {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := vendorserver.NewGate()
			t.Cleanup(gate.Open)
			s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good, Gate: gate}})
			s.StartWorker()
			conversation := c.conversation
			conversation.Window, conversation.Messages = 11000, scenario.TurnsIn(transcript.Anthropic, 6, 1500)
			if conversation.Format != "" {
				conversation.Messages = scenario.TurnsIn(conversation.Format, 6, 1500)
			}
			run := s.Request(s.Create(conversation), c.request)
			if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			l := launch.Launcher{Store: s.Store, Client: s.Client, Config: s.Config}
			ended, err := l.Cancel(t.Context(), s.Run(run))
			if err != nil || ended.Outcome != precis.OutcomeCancelled {
				t.Fatalf("%s, %v", ended.Outcome, err)
			}
			gate.Open()
			closed(t, s, run)
			r := verified(t, s, run)
			if !r.OK {
				t.Errorf("%s\n%s", report(r), s.Attempts(run))
			}
			now := s.Run(run)
			if now.Facts.Summarizer != "" || now.Outcome != precis.OutcomeCancelled {
				t.Errorf("%s, summary by %q", now.Outcome, now.Facts.Summarizer)
			}
		})
	}
}

// closed waits until every attempt and every model call of a run has ended.
func closed(t *testing.T, s *scenario.System, run runs.Run) {
	t.Helper()
	waitUntil(t, "the late answer", func() bool {
		calls, err := s.Store.ModelCalls.List(t.Context(), run.Ref)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if c.State == modelcalls.Started {
				return false
			}
		}
		for _, a := range s.Run(run).Attempts {
			if a.Outcome == "started" {
				return false
			}
		}
		return len(calls) > 0
	})
}

// A second workflow for a run that has ended, as after a loss of Temporal's data, changes nothing in its record.
func TestSecondWorkflowOfAnEndedRun(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref := s.Create(scenario.Conversation{Window: 11000, Messages: scenario.Turns(6, 1500)})
	run := s.Compact(ref, runs.Request{})
	before := s.Attempts(run)
	waitUntil(t, "the end of the first workflow", func() bool {
		_, err := precis.Start(t.Context(), s.Client, s.Launch(run))
		return err == nil
	})
	var result precis.Result
	err := s.Client.GetWorkflow(t.Context(), run.WorkflowID, "").Get(t.Context(), &result)
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		t.Fatal(err)
	}
	if result.Outcome != precis.OutcomeApplied {
		t.Errorf("the second workflow ended %+v", result)
	}
	if after := s.Attempts(run); after != before {
		t.Errorf("the record was changed:\n%s\nit was\n%s", after, before)
	}
	if requests := len(s.Vendor.Requests()); requests != 1 {
		t.Errorf("%d requests to the model", requests)
	}
	if r := verified(t, s, run); !r.OK {
		t.Error(report(r))
	}
	// A caller who waits for a run that has ended gets it, and starts nothing.
	l := launch.Launcher{Store: s.Store, Client: s.Client, Config: s.Config}
	if again, err := l.Wait(t.Context(), run); err != nil || again.Outcome != precis.OutcomeApplied {
		t.Errorf("%s, %v", again.Outcome, err)
	}
}
