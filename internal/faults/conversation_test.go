package faults

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"precis/internal/api/wire"
	"precis/pipeline/transcript"
)

// conversation is one conversation of a play, with what its client knows.
type conversation struct {
	*play
	caller
	id string
	// system is the system prompt outside of the messages, nil for none.
	system json.RawMessage
	sent   []sent
	// requested is the run that was requested without waiting for it, reply the open lease.
	requested, reply string
	log              []done
}

// sent is a message that the client sent.
type sent struct {
	native  json.RawMessage
	id      string
	genuine bool
}

// done is an operation that was carried out.
type done struct {
	op  string
	res response
	// run is the run that the operation waited for, nil for none.
	run *wire.Run
	// sent is the number of messages of the conversation at that time.
	sent int
	// before and after are the contexts before and after it, nil if it cannot change them.
	before, after *wire.Context
	// requests is the number of requests to the vendor since the play began.
	requests int
	state    *wire.Conversation
}

func (t *conversation) path(rest string) string {
	return "/v1/conversations/" + url.PathEscape(t.id) + rest
}

// noSystem is the system prompt where a case has none. Without one, precis cannot ask the agent's own model.
const noSystem = "You are a careful agent."

func (t *conversation) create() {
	t.t.Helper()
	messages := allMessages(t.fault.Messages)
	if len(t.fault.MessageVariants) > 0 {
		messages = append(messages, allMessages(t.fault.MessageVariants[t.variant])...)
	}
	text := noSystem
	for _, m := range messages {
		if m.Role == "system" {
			text = m.text()
		}
	}
	if text == noSystem || t.format == transcript.Anthropic {
		t.system = json.RawMessage(quote(text))
	}
	model := map[string]any{"vendor": t.vendor.name, "name": agentModel, "context_window": t.fault.Settings.Window}
	if n := t.fault.Settings.MaxOutput; n > 0 {
		model["max_output"] = n
	}
	body := map[string]any{"id": t.id, "format": t.format, "model": model, "settings": t.settings(), "tools": []any{}}
	if t.system != nil {
		body["system"] = t.system
	}
	t.want(t.call("POST", "/v1/conversations", body), 201)
}

// call sends a request and returns the response, whatever its status.
func (t *conversation) call(method, path string, body any) response {
	t.t.Helper()
	res, err := t.try(t.t.Context(), method, path, body, "")
	if err != nil {
		t.t.Fatalf("%s %s: %v", method, path, err)
	}
	if res.status >= 500 {
		t.t.Errorf("%s %s: status %d: %.300s", method, path, res.status, res.body)
	}
	return res
}

// want fails the play unless the status is one of the given ones.
func (t *conversation) want(res response, right ...int) response {
	t.t.Helper()
	if !slices.Contains(right, res.status) {
		t.t.Fatalf("status %d, want %v: %.500s", res.status, right, res.body)
	}
	return res
}

func (t *conversation) get(path string, into any) {
	t.t.Helper()
	if err := json.Unmarshal(t.want(t.call("GET", path, nil), 200).body, into); err != nil {
		t.t.Fatalf("%s: %v", path, err)
	}
}

// context is what the model is sent next.
func (t *conversation) context() *wire.Context {
	t.t.Helper()
	var c wire.Context
	t.get(t.path("/context"), &c)
	return &c
}

// read returns the conversation with its state.
func (t *conversation) read() *wire.Conversation {
	t.t.Helper()
	var c wire.Conversation
	t.get(t.path(""), &c)
	return &c
}

// transcript returns all stored messages.
func (t *conversation) transcript() []wire.Message {
	t.t.Helper()
	var all []wire.Message
	for {
		var page struct {
			Messages []wire.Message
			More     bool
		}
		after := int64(0)
		if len(all) > 0 {
			after = all[len(all)-1].Seq
		}
		t.get(t.path(fmt.Sprintf("/messages?after=%d&limit=1000", after)), &page)
		all = append(all, page.Messages...)
		if !page.More {
			return all
		}
	}
}

// getRun reads a run.
func (t *conversation) getRun(id string) wire.Run {
	t.t.Helper()
	var r wire.Run
	t.get("/v1/runs/"+id, &r)
	return r
}

// allRuns returns the runs of the conversation with their attempts, oldest first.
func (t *conversation) allRuns() []wire.Run {
	t.t.Helper()
	var page struct{ Runs []wire.Run }
	t.get("/v1/runs?limit=1000&conversation="+url.QueryEscape(t.id), &page)
	slices.Reverse(page.Runs)
	for i := range page.Runs {
		page.Runs[i] = t.getRun(page.Runs[i].ID)
	}
	return page.Runs
}

// markers returns all markers of the conversation, newest first.
func (t *conversation) markers() []wire.Marker {
	t.t.Helper()
	var page struct{ Compactions []wire.Compaction }
	t.get(t.path("/compactions?limit=1000"), &page)
	var out []wire.Marker
	for _, c := range page.Compactions {
		if c.Marker != nil {
			out = append(out, *c.Marker)
		}
	}
	return out
}

// until waits for a condition.
func (t *conversation) until(what string, holds func() bool) {
	t.t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	late := time.After(playTimeout)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.t.Fatalf("waited %s in vain until %s", playTimeout, what)
		case <-t.t.Context().Done():
			t.t.Fatal(t.t.Context().Err())
		}
	}
}

// record stores the result of an operation, and checks the invariants.
func (t *conversation) record(d done) {
	t.t.Helper()
	d.after = t.context()
	d.requests, d.sent = len(t.requests()), len(t.sent)
	t.log = append(t.log, d)
	t.invariants(d)
}

// finish waits until no run is active and checks the invariants and the usage ledger.
func (t *conversation) finish() {
	t.t.Helper()
	t.until("no run is active at the end", func() bool { return t.read().State.Run == "" })
	t.record(done{op: "end"})
	t.accounts()
}

// ops returns the operations of the given kinds, in order.
func (t *conversation) ops(kinds ...string) []done {
	var out []done
	for _, d := range t.log {
		if slices.Contains(kinds, d.op) {
			out = append(out, d)
		}
	}
	return out
}
