package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"precis/internal/store/runs"
	"precis/internal/testkit/apitest"
	"precis/internal/testkit/exampletest"
	"precis/internal/testkit/scenario"
)

// start brings everything up and gives the example's options.
func start(t *testing.T, window int) (*scenario.System, options) {
	t.Helper()
	sys := scenario.New(t, exampletest.Script(window))
	sys.StartWorker()
	return sys, options{
		api: api{url: apitest.Serve(t, sys)}, tenant: scenario.Tenant,
		vendor: sys.Vendor.URL, vendorKey: "test-key", model: "test-agent", window: 6000,
		temporal: client.Options{
			HostPort: sys.Config.Temporal.Address, Namespace: sys.Config.Temporal.Namespace,
			Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		},
	}
}

// talk has the user say lines and gives what was printed.
func talk(t *testing.T, o options, lines ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, o, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// With the context over the limit the agent compacts it before its next answer, as a child of its own workflow.
func TestAgentCompactsAsItsChild(t *testing.T) {
	t.Parallel()
	sys, o := start(t, 0)
	long := strings.Repeat("and so on ", 900) // about 2700 tokens
	out := talk(t, o, "First question "+long, "Second question "+long, "Third question")
	want := regexp.MustCompile(`^Answer to First question\.\nAnswer to Second question\.\n\[compacted: applied, ` +
		`\d+ tokens before, \d+ after\]\nAnswer to Third question\.\n$`)
	if !want.MatchString(out) {
		t.Errorf("printed\n%s", out)
	}
	requests := sys.Vendor.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(last.Text, "each was answered") ||
		strings.Contains(last.Text, "First question and so on and so on") {
		t.Errorf("the third answer was asked for with %.500s", last.Text)
	}
	runs, _, err := sys.Store.Runs.List(t.Context(), scenario.Tenant, runs.Filter{})
	if err != nil || len(runs) != 1 || runs[0].Outcome != "applied" || runs[0].Facts.Digest {
		t.Fatalf("%+v, %v", runs, err)
	}
	child, err := sys.Client.DescribeWorkflow(t.Context(), runs[0].WorkflowID, runs[0].TemporalRunID)
	if err != nil {
		t.Fatal(err)
	}
	if parent := child.RawResponse.GetWorkflowExecutionInfo().GetParentExecution(); parent.GetWorkflowId() != "agent-"+
		runs[0].Conversation {
		t.Errorf("the compaction's parent is %v", parent)
	}
}

// The model refuses a context that precis took for small enough: the agent reports it, compacts and asks again.
func TestAgentCompactsAfterAnOverflow(t *testing.T) {
	t.Parallel()
	sys, o := start(t, 3000)
	o.window = 100_000
	long := strings.Repeat("and so on ", 600)
	out := talk(t, o, "First question "+long, "Second question "+long)
	if !strings.Contains(out, "Answer to Second question.\n[compacted: applied, ") {
		t.Errorf("printed\n%s", out)
	}
	runs, _, err := sys.Store.Runs.List(t.Context(), scenario.Tenant, runs.Filter{})
	if err != nil || len(runs) != 1 || runs[0].Outcome != "applied" {
		t.Fatalf("%+v, %v", runs, err)
	}
}

// An attempt at a reply that an earlier one has finished, and died before it could say so.
func TestReplyIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	sys, o := start(t, 0)
	var conversation struct{ ID string }
	if err := o.api.post(t.Context(), "/v1/conversations", "", map[string]any{
		"format": "anthropic", "model": map[string]any{"vendor": "anthropic", "name": o.model}, "tools": []any{},
		"system": "s",
	}, &conversation); err != nil {
		t.Fatal(err)
	}
	path := "/v1/conversations/" + conversation.ID
	if err := o.api.post(t.Context(), path+"/messages", "",
		map[string]any{"messages": []any{map[string]any{"role": "user", "content": "A question"}}},
		&struct{}{}); err != nil {
		t.Fatal(err)
	}
	a := &Activities{api: o.api, Model: o.ask}
	for range 2 {
		// each has the same ids of workflow and activity
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		env.RegisterActivity(a)
		value, err := env.ExecuteActivity(a.Reply, conversation.ID)
		if err != nil {
			t.Fatal(err)
		}
		var reply Reply
		if err := value.Get(&reply); err != nil || !reply.Answered {
			t.Errorf("%+v, %v", reply, err)
		}
	}
	var transcript struct{ Messages []json.RawMessage }
	if err := o.api.send(t.Context(), http.MethodGet, path+"/messages", "", nil, &transcript); err != nil ||
		len(transcript.Messages) != 2 {
		t.Errorf("%d messages, %v", len(transcript.Messages), err)
	}
	if n := len(sys.Vendor.Requests()); n != 2 {
		t.Errorf("%d model calls", n)
	}
}
