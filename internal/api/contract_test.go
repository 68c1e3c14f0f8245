package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"precis/internal/audit"
	"precis/internal/service"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// An agent's life from the first message to the audit, by every operation that the document has. That each answer is as
// the document says is checked with every request of every test; here is what it means.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{
		worker: true,
		script: vendorserver.Script{Default: &vendorserver.Answer{Text: summaryText}},
	})
	b.key = b.newKey("default", true)
	within(t, 20*time.Second, "ready", func() bool { return b.send("GET", "/readyz", "").status == http.StatusOK })

	// A conversation.
	body := `{"id":"agent-1","format":"anthropic","model":{"vendor":"anthropic","name":"test-agent","context_window":20000,"max_output":1000},
		"system":"You are careful.","tools":[],"settings":{"trigger":{"fraction":0.8}},"metadata":{"team":"x"}}`
	made := b.send("POST", "/v1/conversations", body).is(201)
	const c = "/v1/conversations/agent-1"
	if made.get("id") != "agent-1" || made.get("model", "context_window") != "20000" ||
		made.get("settings", "trigger", "fraction") != "0.8" || made.header.Get("Location") != c {
		t.Errorf("%v %s", made.header, made.body)
	}
	b.send("POST", "/v1/conversations", body).is(200)
	b.send("POST", "/v1/conversations", strings.Replace(body, "careful", "careless", 1)).fails(409,
		service.CodeConflict)
	b.send("POST", "/v1/conversations",
		strings.Replace(body, `"agent-1","format":"anthropic"`, `"x","format":"morse"`, 1)).fails(422,
		service.CodeInvalid)
	p := b.send("POST", "/v1/conversations",
		strings.Replace(strings.Replace(body, "agent-1", "x", 1), "0.8", "1.8", 1)).fails(422, service.CodeInvalid)
	p.names(t, "body.settings.trigger.fraction")
	if got := b.send("GET", "/v1/conversations", "").is(200); got.get("conversations", 0, "id") != "agent-1" ||
		got.get("next") != "null" {
		t.Errorf("%s", got.body)
	}
	if got := b.send("GET", c, "").is(200); got.get("state", "reply_open") != "false" || got.get("head_seq") != "0" {
		t.Errorf("%s", got.body)
	}
	patched := b.send(
		"PATCH", c, `{"model":{"context_window":16000},"tools":null,"settings":{"digest":"never"},"metadata":{`+
			`"team":null,"n":1}}`).is(200)
	if patched.get("model", "context_window") != "16000" || patched.get("settings", "digest") != "never" ||
		patched.get("settings", "trigger", "fraction") != "0.8" || patched.get("metadata") != `{"n":1}` ||
		strings.Contains(string(patched.body), `"tools"`) {
		t.Errorf("%s", patched.body)
	}
	b.send("PATCH", c, `{"tools":[]}`).is(200)

	// The loop of an agent.
	first := b.send("POST", c+"/messages", `{"messages":[`+scenario.User("<env>linux</env>")+`,`+scenario.User("Look at part 0.")+`],
		"meta":[{"id":"env","kind":"user_info"},{"id":"m1"}],"if_seq":0}`).is(200)
	if first.get("first_seq") != "1" || first.get("last_seq") != "2" || first.get("estimated") != "true" ||
		first.get("trigger", "fired") != "false" || first.get("trigger", "limit") != "12800" ||
		first.get("trigger", "reason") == "" {
		t.Errorf("%s", first.body)
	}
	again := b.send("POST", c+"/messages",
		`{"messages":[`+scenario.User("Look at part 0.")+`],"meta":[{"id":"m1"}]}`).is(200)
	if again.get("first_seq") != "0" || again.get("duplicates") != "1" || again.get("seqs") != "[2]" {
		t.Errorf("%s", again.body)
	}
	b.send("POST", c+"/messages", `{"messages":[`+scenario.User("late")+`],"if_seq":0}`).fails(409, service.CodeStale)
	p = b.send("POST", c+"/messages",
		`{"messages":[{"role":"user","content":"ok"},{"role":"nobody","content":"x"}]}`).fails(422, service.CodeInvalid)
	p.names(t, "body.messages[1]")
	b.send("PUT", c+"/state/todo", `{"items":["read part 1",{"text":"answer","status":"open"}]}`).is(200)
	b.send("PUT", c+"/state/x-mine", `{"text":"my own"}`).is(200)
	b.send("PUT", c+"/state/unheard", `{"text":"x"}`).fails(422, service.CodeInvalid)
	b.send("PUT", c+"/state/todo", `{}`).fails(422, service.CodeInvalid)
	if got := b.send("GET", c+"/state/todo", "").is(200); got.get("version") != "1" ||
		got.get("items", 1, "status") != "open" {
		t.Errorf("%s", got.body)
	}
	if got := b.send("GET", c+"/state", "").is(200); got.get("state", 1, "key") != "x-mine" {
		t.Errorf("%s", got.body)
	}
	b.send("DELETE", c+"/state/x-mine", "").is(204)
	b.send("GET", c+"/state/x-mine", "").fails(404, service.CodeNotFound)

	open := b.send("POST", c+"/replies?max_input_tokens=15000", `{"ttl_seconds":60}`).is(201)
	if open.get("context", "messages", 1) != `{"content":"Look at part 0.","role":"user"}` ||
		open.get("context", "stats", "window") != "16000" || open.get("context", "stats", "marker") != "null" {
		t.Errorf("%s", open.body)
	}
	reply := open.get("reply")
	b.send("POST", c+"/replies", `{}`).fails(409, service.CodeReplyOpen)
	b.send("POST", c+"/compactions", `{}`).fails(409, service.CodeReplyOpen)
	end := b.send("POST", c+"/replies/"+reply+"/end",
		`{"messages":[`+scenario.Assistant("Part 0 is short.")+`],"usage":{"input_tokens":100,`+
			`"cache_read_input_tokens":20,"cache_creation_input_tokens":3,"output_tokens":7}}`).is(200)
	if end.get("used_tokens") != "130" || end.get("estimated") != "false" {
		t.Errorf("%s", end.body)
	}
	b.send("POST", c+"/replies/"+reply+"/end", `{"messages":[`+scenario.Assistant("Part 0 is short.")+`]}`).fails(409,
		service.CodeReplyEnded)
	all := list(scenario.User("<env>linux</env>"), scenario.User("Look at part 0."),
		scenario.Assistant("Part 0 is short."), scenario.User("And part 1?"))
	synced := b.send("POST", c+"/sync", `{"messages":`+all+`}`).is(200)
	if synced.get("matched") != "3" || synced.get("last_seq") != "4" {
		t.Errorf("%s", synced.body)
	}
	b.send("POST", c+"/sync", `{"messages":[`+scenario.User("another past")+`]}`).fails(409, service.CodeStale)

	// Compactions: by hand, undone, by the agent's own runtime, by itself.
	b.add(c, scenario.Talk(2, 800)...)
	run := b.send("POST", c+"/compactions", `{"focus":"part 1","wait_seconds":60}`).is(200)
	if run.get("outcome") != "applied" || run.get("summarizer") != "self" || run.get("focus") != "part 1" ||
		run.get("trigger", "kind") != "manual" || run.get("steps", 0, "stage") != "trigger" ||
		run.header.Get("Location") != "/v1/runs/"+run.get("id") {
		t.Errorf("%s", run.body)
	}
	b.send("POST", c+"/compactions", `{"prompt":"no-such-prompt"}`).fails(422, service.CodeInvalid)
	context := b.send("GET", c+"/context", "").is(200)
	if context.get("stats", "marker", "run") != run.get("id") ||
		!strings.Contains(context.get("messages"), "read one by one") ||
		!strings.Contains(context.get("messages"), "read part 1") {
		t.Errorf("%s", context.body)
	}
	if got := b.send("GET", c+"/context?format=openai", "").is(200).get("format"); got != "openai" {
		t.Errorf("format %s", got)
	}
	b.send("GET", c+"/context?format=morse", "").fails(422, service.CodeInvalid)
	if got := b.send("GET", c+"/messages?after=1&limit=2", "").is(200); got.get("messages", 0, "seq") != "2" ||
		got.get("messages", 0, "id") != "m1" || got.get("messages", 0, "covered") != "true" ||
		got.get("more") != "true" {
		t.Errorf("%s", got.body)
	}
	if got := b.send("GET", c+"/segments", "").is(200); got.get("segments", 1, "name") != "segment_0001.md" ||
		got.get("segments", 1, "covers_from") != "1" {
		t.Errorf("%s", got.body)
	}
	if got := b.send("GET", c+"/segments/segment_0001.md", "").is(200); !strings.Contains(got.get("text"),
		"Look at part 0.") {
		t.Errorf("%s", got.body)
	}
	b.send("POST", c+"/segments", `{"name":"n.md","text":"a note"}`).is(201)
	if got := b.send("GET", c+"/search?q=part+OR+note", "").is(200); len(got.get("hits")) < 50 {
		t.Errorf("%s", got.body)
	}
	undone := b.send("DELETE", c+"/marker", "").is(200)
	if undone.get("marker") != "null" || undone.get("undone", "run") != run.get("id") {
		t.Errorf("%s", undone.body)
	}
	b.send("DELETE", c+"/marker", "").fails(409, service.CodeNothingToUndo)
	reported := b.send("POST", c+"/markers",
		`{"summary":`+scenario.User("The agent's own summary.")+
			`,"covers_to":3,"tokens_before":900,"tokens_after":90}`).is(201)
	if reported.get("origin") != "agent" || reported.get("active") != "true" {
		t.Errorf("%s", reported.body)
	}
	timeline := b.send("GET", c+"/compactions", "").is(200)
	if timeline.get("compactions", 0, "marker", "origin") != "agent" ||
		timeline.get("compactions", 0, "run") != "null" ||
		timeline.get("compactions", 1, "run", "id") != run.get("id") ||
		timeline.get("compactions", 1, "marker", "status") != "undone" {
		t.Errorf("%s", timeline.body)
	}
	b.add(c, scenario.User("A new turn, so that it may start by itself."))
	overflow := b.send("POST", c+"/replies", "").is(201).get("reply")
	fired := b.send("POST", c+"/replies/"+overflow+"/end", `{"error":{"status":400,"body":{"type":"error",`+
		`"error":{"type":"invalid_request_error","message":"prompt is too long: 16100 tokens > 16000 maximum"}}}}`).is(
		200)
	if fired.get("trigger", "fired") != "true" || fired.get("run", "trigger", "kind") != "overflow" {
		t.Errorf("%s", fired.body)
	}
	automatic := fired.get("run", "id")
	within(t, 60*time.Second, "the automatic run ends",
		func() bool { return b.send("GET", "/v1/runs/"+automatic, "").is(200).get("outcome") != "" })

	// Audit.
	if got := b.send("GET", "/v1/runs/"+run.get("id")+"?include=prompts,answers,summary,context",
		"").is(200); !strings.Contains(got.get("summary"), "read one by one") || got.get("answers", 0, "text") == "" ||
		got.get("prompts", 0, "body") == "" || got.get("context") == "" || got.get("covers", "sha256") == "" {
		t.Errorf("%s", got.body)
	}
	if got := b.send(
		"GET", "/v1/runs?conversation=agent-1&outcome=applied&digest=false&since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z", "").is(200); len(got.get("runs")) < 10 || strings.Contains(string(got.body), `"steps"`) {
		t.Errorf("%s", got.body)
	}
	if got := b.send("GET", "/v1/runs?trigger=manual&summarizer=nobody/knows&replay_of=none",
		"").is(200).get("runs"); got != "[]" {
		t.Errorf("runs of a summarizer that is none: %s", got)
	}
	if got := b.send("GET", "/v1/runs/summary?conversation=agent-1&outcome=applied&trigger=manual",
		"").is(200); got.get("groups", 0, "outcome") != "applied" || got.get("groups", 0, "runs") == "0" ||
		got.get("groups", 0, "usage", "calls") == "0" {
		t.Errorf("sums: %s", got.body)
	}
	if got := b.send("GET", "/v1/runs?outcome=unfinished&error_kind=auth", "").is(200).get("runs"); got != "[]" {
		t.Errorf("%s", got)
	}
	if got := b.send("GET", "/v1/runs/"+run.get("id")+"/verify", "").is(200); got.get("ok") != "true" ||
		got.get("pruned") != "false" || got.get("checks", 6, "name") != "context" ||
		got.get("checks", 6, "state") != "ok" {
		t.Errorf("%s", got.body)
	}
	b.send("GET", "/v1/runs/nobody/verify", "").is(404)
	file := b.send("GET", "/v1/conversations/agent-1/export", "").is(200)
	if header, err := audit.CheckExport(bytes.NewReader(file.body)); err != nil || header.Conversation != "agent-1" ||
		file.header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("%+v %v %v", header, err, file.header)
	}
	b.send("GET", "/v1/conversations/nobody/export", "").is(404)
	if got := b.send("POST", "/v1/runs/"+run.get("id")+"/replay",
		`{"wait_seconds":30}`).is(200); got.get("outcome") != "replayed" ||
		got.get("comparison", "identical") != "true" {
		t.Errorf("%s", got.body)
	}
	if got := b.send("POST", "/v1/runs/"+run.get("id")+"/cancel", "").is(200).get("outcome"); got != "applied" {
		t.Errorf("a run that has ended is %s", got)
	}
	if got := b.send("GET", "/v1/usage?group_by=conversation", "").is(200); got.get("usage", 0, "key") != "agent-1" ||
		got.get("usage", 0, "calls") == "0" || got.get("group_by") != "conversation" {
		t.Errorf("%s", got.body)
	}
	once := b.send("POST", "/v1/compact", `{"format":"anthropic","model":{"vendor":"anthropic","name":"test-agent","context_window":20000},"system":"s","tools":[],
		"messages":`+list(scenario.Talk(3, 800)...)+`,"settings":{"digest":"never"},"state":{"todo":{"text":"go on"}},"focus":"part 2"}`).is(200)
	if once.get("run", "outcome") != "applied" || !strings.Contains(once.get("messages"), "read one by one") ||
		!strings.Contains(once.get("messages"), "go on") {
		t.Errorf("%s", once.body)
	}
	b.follow(c + "/events?after=1").next()
	b.send("GET", "/healthz", "").is(200)

	// Settings of the tenant.
	b.send("PUT", "/v1/settings", `{"settings":{"trigger":{"fraction":2}}}`).fails(422, service.CodeInvalid).names(t,
		"body.settings.trigger.fraction")
	b.send("PUT", "/v1/settings", `{"settings":{"trigger":{"fraction":0.5}}}`).is(200)
	b.send("PATCH", "/v1/settings", `{"settings":{"digest":"never"}}`).is(200)
	if got := b.send("GET", "/v1/settings", "").is(200); got.get("settings", "digest") != "never" ||
		got.get("effective", "trigger", "fraction") != "0.5" || got.get("tenant") != "default" {
		t.Errorf("%s", got.body)
	}
	b.create("agent-2", "")
	if got := b.send("GET", "/v1/conversations/agent-2", "").is(200).get("state", "trigger", "limit"); got != "10000" {
		t.Errorf("limit %s with half of the window as the tenant's", got)
	}

	// Nothing of the document was left out.
	walked := map[string]bool{"GET /metrics": true, "GET /v1/conversations/{id}/events": true}
	for text := range strings.SplitSeq(b.log.String(), "\n") {
		var line struct {
			Method, Route string
			Status        int
		}
		if json.Unmarshal([]byte(text), &line) == nil && line.Status > 0 && line.Status < 300 {
			walked[line.Method+" "+line.Route] = true
		}
	}
	for path, item := range b.server.api.OpenAPI().Paths {
		for method, op := range map[string]any{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch,
			"DELETE": item.Delete,
		} {
			if name := method + " " + path; fmt.Sprint(op) != "<nil>" && !walked[name] {
				t.Errorf("%s was not tried", name)
			}
		}
	}
}

// Lists go on where the page before ended.
func TestCursors(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	want := map[string]bool{}
	for i := range 7 {
		want[fmt.Sprint("c", i)] = true
		b.create(fmt.Sprint("c", i), "")
	}
	cursor, pages := "", 0
	for {
		r := b.send("GET", "/v1/conversations?limit=3&cursor="+cursor, "").is(200)
		var page struct {
			Conversations []struct{ ID string }
			Next          string
		}
		r.into(&page)
		for _, c := range page.Conversations {
			if !want[c.ID] {
				t.Errorf("%s came twice", c.ID)
			}
			delete(want, c.ID)
		}
		pages++
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(want) > 0 || pages != 3 {
		t.Errorf("%d pages, left out: %v", pages, want)
	}
	for _, path := range []string{"/v1/conversations", "/v1/runs", "/v1/conversations/c1/compactions"} {
		b.send("GET", path+"?cursor=nonsense", "").fails(422, service.CodeInvalid)
	}
}

// A run is cancelled while its model is asked.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{worker: true, script: vendorserver.Script{Default: &vendorserver.Answer{Hang: true}}})
	c := b.create("c", `"system":"s","tools":[]`)
	b.add(c, scenario.Talk(3, 400)...)
	run := b.send("POST", c+"/compactions", `{}`).is(202)
	if run.get("outcome") != "" || run.get("finished") != "null" {
		t.Errorf("%s", run.body)
	}
	// While it is under way it is the one that everybody gets.
	if again := b.send("POST", c+"/compactions", `{"focus":"other"}`).is(202).get("id"); again != run.get("id") {
		t.Errorf("run %s beside %s", again, run.get("id"))
	}
	within(t, 20*time.Second, "the model is asked", func() bool { return len(b.Vendor.Requests()) > 0 })
	if got := b.send("POST", "/v1/runs/"+run.get("id")+"/cancel", "").is(200).get("outcome"); got != "cancelled" {
		t.Errorf("outcome %s", got)
	}
	b.send("POST", "/v1/runs/unknown/cancel", "").fails(404, service.CodeNotFound)
}
