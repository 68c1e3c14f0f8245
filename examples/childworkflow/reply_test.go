package main

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"go.temporal.io/sdk/testsuite"
)

// An earlier attempt at a reply has finished it, and its worker died before Temporal knew: the next attempt appends
// nothing.
func TestReplyIsAppendedOnce(t *testing.T) {
	if os.Getenv("PRECIS_URL") == "" {
		t.Skip("needs precis and a model: go test -run TestChildWorkflowModule in the folder above serves both")
	}
	o := optionsFromEnvironment()
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
	for attempt := range 2 {
		// Both environments have the same ids of workflow and activity.
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		env.RegisterActivity(a)
		value, err := env.ExecuteActivity(a.Reply, conversation.ID)
		if err != nil {
			t.Fatal(err)
		}
		var reply Reply
		if err := value.Get(&reply); err != nil || !reply.Answered {
			t.Errorf("attempt %d: %+v, %v", attempt+1, reply, err)
		}
	}
	var transcript struct{ Messages []json.RawMessage }
	if err := o.api.send(t.Context(), http.MethodGet, path+"/messages", "", nil, &transcript); err != nil {
		t.Fatal(err)
	}
	if n := len(transcript.Messages); n != 2 {
		t.Errorf("the conversation has %d messages, want 2", n)
	}
}
