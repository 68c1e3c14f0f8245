package workflows_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// agentQueue is that of the agent's own worker, which knows nothing of compactions.
const agentQueue = "agent"

// callerWorkflow is an agent's workflow that does nothing but compact.
func callerWorkflow(ctx workflow.Context, c precis.Request) (precis.Result, error) {
	return precis.Compact(ctx, c)
}

// occupantWorkflow holds a workflow id until it receives a signal.
func occupantWorkflow(ctx workflow.Context) error {
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return nil
}

// caller starts the agent's worker and its workflow.
func caller(t *testing.T, s *scenario.System, ref store.ConversationRef) client.WorkflowRun {
	t.Helper()
	w := worker.New(s.Client, agentQueue, worker.Options{WorkerStopTimeout: time.Second})
	w.RegisterWorkflow(callerWorkflow)
	w.RegisterWorkflow(occupantWorkflow)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	run, err := s.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: agentQueue},
		callerWorkflow, precis.Request{
			Tenant: ref.Tenant, Conversation: ref.ID,
		})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func result(t *testing.T, run client.WorkflowRun) (precis.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var result precis.Result
	err := run.Get(ctx, &result)
	return result, err
}

// runsOf lists a conversation's runs.
func runsOf(t *testing.T, s *scenario.System, ref store.ConversationRef) []runs.Run {
	t.Helper()
	list, _, err := s.Store.Runs.List(t.Context(), ref.Tenant, runs.Filter{Conversation: ref.ID})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// saw waits until the caller's history has an event of the type.
func saw(t *testing.T, s *scenario.System, run client.WorkflowRun, want enumspb.EventType) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	it := s.Client.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), true,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			t.Fatalf("waiting for %s: %v", want, err)
		}
		if e.EventType == want {
			return
		}
	}
	t.Fatalf("the caller ended without %s", want)
}

func TestChild(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{text(good)}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	run := caller(t, s, ref)
	got, err := result(t, run)
	if err != nil || got.Outcome != precis.OutcomeApplied || got.Marker == "" ||
		got.TokensAfter >= got.TokensBefore {
		t.Fatalf("%+v, %v", got, err)
	}
	list := runsOf(t, s, ref)
	if len(list) != 1 || list[0].Ref.ID != got.Run || list[0].Kind != pipeline.TriggerManual ||
		list[0].Settings == nil {
		t.Fatalf("%+v", list)
	}
	var found bool
	it := s.Client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		if a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes(); a != nil {
			found = true
			if a.WorkflowId != "compaction/"+ref.Tenant+"/"+ref.ID ||
				a.ParentClosePolicy != enumspb.PARENT_CLOSE_POLICY_ABANDON || a.TaskQueue.Name != precis.TaskQueue {
				t.Errorf("the child is started as %+v", a)
			}
		}
	}
	if !found {
		t.Error("no child was started")
	}
}

// While the conversation is being compacted, whoever asked for it, the caller gets the end of that run.
func TestChildAttaches(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good, Gate: gate}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	first := s.Request(ref, runs.Request{})
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	run := caller(t, s, ref)
	saw(t, s, run, enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED)
	gate.Open()
	got, err := result(t, run)
	if err != nil || got.Run != first.Ref.ID || got.Outcome != precis.OutcomeApplied || got.Marker == "" {
		t.Errorf("%+v, %v; the active run is %s", got, err, first.Ref.ID)
	}
	if n := len(s.Vendor.Requests()); n != 1 {
		t.Errorf("%d model calls", n)
	}
}

// The conversation's workflow id is held by an earlier run that has ended and whose workflow has not closed yet.
func TestChildWaitsForTheWorkflowID(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{text(good)}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	id := precis.Input{Tenant: ref.Tenant, Conversation: ref.ID}.WorkflowID()
	if _, err := s.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: agentQueue},
		occupantWorkflow); err != nil {
		t.Fatal(err)
	}
	run := caller(t, s, ref)
	saw(t, s, run, enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED)
	if err := s.Client.SignalWorkflow(t.Context(), id, "", "end", nil); err != nil {
		t.Fatal(err)
	}
	if got, err := result(t, run); err != nil || got.Outcome != precis.OutcomeApplied {
		t.Errorf("%+v, %v", got, err)
	}
}

// A run that fails or is cancelled is a result, and no failure of the caller's.
func TestChildThatEndsBadly(t *testing.T) {
	t.Parallel()
	t.Run("Failed", func(t *testing.T) {
		t.Parallel()
		s := scenario.New(
			t, vendorserver.Script{Default: &vendorserver.Answer{Error: &vendorserver.Error{Status: 401}}})
		s.StartWorker()
		ref := s.Create(scenario.Conversation{
			Window: 16000, Messages: scenario.Turns(6, 2000),
			Settings: map[string]any{"digest": "never"},
		})
		got, err := result(t, caller(t, s, ref))
		list := runsOf(t, s, ref)
		if err != nil || got.Outcome != precis.OutcomeFailed || got.Kind != pipeline.Auth || got.Reason == "" ||
			len(list) != 1 || got.Run != list[0].Ref.ID {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("CancelledByHand", func(t *testing.T) {
		t.Parallel()
		s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Hang: true}})
		s.StartWorker()
		ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
		run := caller(t, s, ref)
		if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		l := launch.Launcher{Store: s.Store, Client: s.Client, Config: s.Config}
		if _, err := l.Cancel(t.Context(), runsOf(t, s, ref)[0]); err != nil {
			t.Fatal(err)
		}
		if got, err := result(t, run); err != nil || got.Outcome != precis.OutcomeCancelled ||
			got.Kind != pipeline.Cancelled {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("CallerCancelled", func(t *testing.T) {
		t.Parallel()
		s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Hang: true}})
		s.StartWorker()
		ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
		run := caller(t, s, ref)
		if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.CancelWorkflow(t.Context(), run.GetID(), ""); err != nil {
			t.Fatal(err)
		}
		if _, err := result(t, run); !temporal.IsCanceledError(err) {
			t.Errorf("error %v", err)
		}
		if r := runsOf(t, s, ref)[0]; r.Outcome != precis.OutcomeCancelled {
			t.Errorf("the run is %s", r.Outcome)
		}
	})
}

// A caller that has ended leaves its run running.
func TestChildOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good, Gate: gate}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	run := caller(t, s, ref)
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.TerminateWorkflow(t.Context(), run.GetID(), "", "a test"); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	if got := s.Wait(runsOf(t, s, ref)[0]); got.Outcome != precis.OutcomeApplied {
		t.Errorf("the run is %s %s", got.Outcome, got.Reason)
	}
}

func TestChildThatCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(2, 200)})
	if _, err := s.Store.Replies.Open(t.Context(), ref, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ref  store.ConversationRef
		kind pipeline.ErrorKind
	}{
		{store.ConversationRef{Tenant: ref.Tenant, ID: "nosuch"}, pipeline.BadRequest},
		{store.ConversationRef{Tenant: "nobody", ID: ref.ID}, pipeline.BadRequest},
		{ref, pipeline.Conflict},
	} {
		_, err := result(t, caller(t, s, tt.ref))
		var app *temporal.ApplicationError
		if !errors.As(err, &app) {
			t.Errorf("%s: error %v", tt.ref, err)
			continue
		}
		for errors.Unwrap(app) != nil && errors.As(errors.Unwrap(app), &app) {
		}
		if app.Type() != string(tt.kind) {
			t.Errorf("%s: kind %q (%v), want %s", tt.ref, app.Type(), err, tt.kind)
		}
	}
	if list := runsOf(t, s, ref); slices.ContainsFunc(list, func(r runs.Run) bool { return r.Outcome == "" }) {
		t.Errorf("a run is left: %+v", list)
	}
}
