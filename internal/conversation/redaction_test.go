package conversation

import (
	"context"
	"errors"
	"strings"
	"testing"

	"precis/pipeline"
)

func redacting() View {
	var v View
	v.Settings.Redact = true
	return v
}

// Whatever a request is made of, nothing secret in it leaves, and what is not secret stays byte for byte.
func TestRequestsAreRedactedWhole(t *testing.T) {
	t.Parallel()
	source := []pipeline.Message{{
		Role: pipeline.RoleTool, Parts: []pipeline.Part{{Kind: pipeline.PartText, Text: "token: zk81hq92ldm47"}},
	}}
	r, err := redacting().Redaction(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"system":"PGPASSWORD=hunter2","messages":[{"role":"user","content":"focus on zk81hq92ldm47"}],` +
		`"tools":[{"name":"f","description":"key AKIAQRSTUVWXYZABCDEF"}],"max_tokens":10}`
	want := `{"system":"PGPASSWORD=[redacted]","messages":[{"role":"user","content":"focus on [redacted]"}],` +
		`"tools":[{"name":"f","description":"key [redacted]"}],"max_tokens":10}`
	if got, err := r.Request([]byte(body)); err != nil || string(got) != want {
		t.Errorf("got %s (%v)\nwant %s", got, err, want)
	}
	plain := ` {"a": [1, "é<&>"],  "b":null}`
	if got, err := r.Request([]byte(plain)); err != nil || string(got) != plain {
		t.Errorf("a request without secrets became %s (%v)", got, err)
	}
}

func TestRedactionIsOffAndOld(t *testing.T) {
	t.Parallel()
	const text = "PGPASSWORD=hunter2 and password=hunter2"
	off, err := View{}.Redaction(t.Context(), nil)
	if err != nil || off.Text(text) != text || off.Func() != nil || off.Err() != nil {
		t.Errorf("without the setting: %v", err)
	}
	v := redacting()
	v.OldRules = true
	old, err := v.Redaction(t.Context(), nil)
	if err != nil || old.Text(text) != pipeline.Redact(text) {
		t.Errorf("old rules: %q (%v)", old.Text(text), err)
	}
	if got, err := old.Request([]byte(`{"a":"password=hunter2"}`)); err != nil || !strings.Contains(string(got), "hunter2") {
		t.Errorf("old rules changed a request: %s (%v)", got, err)
	}
}

func TestRedactionStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := redacting().Redaction(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := r.Text("x"); got != "" || !errors.Is(r.Err(), context.Canceled) {
		t.Errorf("got %q and %v", got, r.Err())
	}
}
