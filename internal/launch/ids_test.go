package launch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"precis"
	"precis/internal/launch"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// A conversation is compacted whatever its id and its tenant's are: by the worker's dispatcher, and by a caller who
// waits.
func TestIDsBeyondASCII(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: summary}})
	s.StartWorker()
	raw := client.StartWorkflowOptions{ID: "compaction/default/é", TaskQueue: "any"}
	if _, err := s.Client.ExecuteWorkflow(t.Context(), raw, "Any"); err == nil {
		t.Error("Temporal takes any id now: workflow ids need no encoding")
	} else {
		t.Log("without encoding:", err)
	}
	for _, c := range []struct{ tenant, id string }{
		{"default", "é"},
		{"default", "🙂"},
		{"default", "会話/1"},
		{"default", "%C3%A9"},
		{"default", "a b"},
		{"té", "plain"},
		{"default", strings.Repeat("é", 80)},
		{"default", strings.Repeat("<", 160)},
		{strings.Repeat("ü", 32), strings.Repeat("🙂", 40)},
	} {
		t.Run(fmt.Sprintf("%.20s of %.20s", c.id, c.tenant), func(t *testing.T) {
			if _, err := s.Store.Tenants.Ensure(t.Context(), c.tenant, ""); err != nil {
				t.Fatal(err)
			}
			ref := s.Create(scenario.Conversation{
				Tenant: c.tenant, ID: c.id, Window: 8000, Messages: scenario.Turns(6, 1000),
			})
			for range 2 {
				run, err := launcher(s).Wait(t.Context(), s.Request(ref, runs.Request{}))
				if err != nil {
					t.Fatal(err)
				}
				if run.Outcome != precis.OutcomeApplied && run.Outcome != precis.OutcomeSkipped {
					t.Errorf("outcome %s, %s", run.Outcome, run.Reason)
				}
			}
		})
	}
}

func TestStartRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err           error
		first, lastly bool
	}{
		{nil, false, false},
		{serviceerror.NewInvalidArgument("WorkflowId length exceeds limit."), true, true},
		{serviceerror.NewInvalidArgument("Namespace x has no mapping defined for search attribute X"), false, false},
		{serviceerror.NewUnavailable("connection refused"), false, false},
		{serviceerror.NewDeadlineExceeded("context deadline exceeded"), false, false},
		{serviceerror.NewNamespaceNotFound("default"), false, false},
		{serviceerror.NewPermissionDenied("no", "no"), false, false},
		{serviceerror.NewInternal("header value contains invalid characters"), false, true},
		{errors.New("anything else"), false, true},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("start workflow x: %w", err)
		}
		if got := launch.StartRefused(err, 1); got != c.first {
			t.Errorf("%v: refused at the first attempt %v", err, got)
		}
		if got := launch.StartRefused(err, 20); got != c.lastly {
			t.Errorf("%v: refused at the last attempt %v", err, got)
		}
	}
}

// A run whose workflow Temporal refuses to start ends as failed, at once.
func TestEndUnstarted(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: summary}})
	l, ref := launcher(s), talk(s)
	// Temporal allows names of 1000 bytes.
	l.Config.Worker.TaskQueue = strings.Repeat("q", 2000)
	run := ask(t, l, ref, runs.Request{})
	ended, err := l.Wait(t.Context(), run)
	if err != nil || ended.Outcome != precis.OutcomeFailed || !strings.Contains(ended.Reason, "refuses to start") ||
		!strings.Contains(ended.Reason, "taskQueue") {
		t.Errorf("outcome %q: %s, %v", ended.Outcome, ended.Reason, err)
	}
	if again := ask(t, l, ref, runs.Request{}); again.Ref == run.Ref {
		t.Error("the run that ended is still active")
	}
}
