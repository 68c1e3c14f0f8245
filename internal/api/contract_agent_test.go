package api

import (
	"strings"
	"time"

	"precis/internal/service"
	"precis/internal/testkit/scenario"
)

const agentPath = "/v1/conversations/agent-1"

// life is an agent's life, with the run that later steps refer to.
type life struct{ run string }

const newAgent = `{"id":"agent-1","format":"anthropic",` +
	`"model":{"vendor":"anthropic","name":"test-agent","context_window":20000,"max_output":1000},` +
	`"system":"You are careful.","tools":[],"settings":{"trigger":{"fraction":0.8}},"metadata":{"team":"x"}}`

func (l *life) createConversation(b *bench) {
	made := b.send("POST", "/v1/conversations", newAgent).is(201).has(fields{
		"id": "agent-1", "model.context_window": "20000", "settings.trigger.fraction": "0.8",
	})
	if got := made.header.Get("Location"); got != agentPath {
		b.t.Errorf("Location is %s, want %s", got, agentPath)
	}
	b.send("POST", "/v1/conversations", newAgent).is(200)
	changed := func(old, now string) string { return strings.Replace(newAgent, old, now, 1) }
	b.send("POST", "/v1/conversations", changed("careful", "careless")).fails(409, service.CodeConflict)
	b.send("POST", "/v1/conversations", changed(`"agent-1","format":"anthropic"`, `"x","format":"morse"`)).
		fails(422, service.CodeInvalid)
	b.send("POST", "/v1/conversations", strings.Replace(changed("agent-1", "x"), "0.8", "1.8", 1)).
		fails(422, service.CodeInvalid).names(b.t, "body.settings.trigger.fraction")
	b.send("GET", "/v1/conversations", "").is(200).has(fields{"conversations.0.id": "agent-1", "next": "null"})
	b.send("GET", agentPath, "").is(200).has(fields{"state.reply_open": "false", "head_seq": "0"})
}

func (l *life) patchConversation(b *bench) {
	patched := b.send("PATCH", agentPath, `{"model":{"context_window":16000},"tools":null,`+
		`"settings":{"digest":"never"},"metadata":{"team":null,"n":1}}`).is(200).has(fields{
		"model.context_window": "16000", "settings.digest": "never", "settings.trigger.fraction": "0.8",
		"metadata": `{"n":1}`,
	})
	if strings.Contains(string(patched.body), `"tools"`) {
		b.t.Errorf("the tools are not removed: %s", patched.body)
	}
	b.send("PATCH", agentPath, `{"tools":[]}`).is(200)
}

func (l *life) append(b *bench) {
	messages := agentPath + "/messages"
	env, question := scenario.User("<env>linux</env>"), scenario.User("Look at part 0.")
	first := b.send("POST", messages, `{"messages":`+list(env, question)+`,`+
		`"meta":[{"id":"env","kind":"user_info"},{"id":"m1"}],"if_seq":0}`).is(200).has(fields{
		"first_seq": "1", "last_seq": "2", "estimated": "true", "trigger.fired": "false", "trigger.limit": "12800",
	})
	if first.get("trigger", "reason") == "" {
		b.t.Errorf("the trigger has no reason: %s", first.body)
	}
	b.send("POST", messages, `{"messages":`+list(question)+`,"meta":[{"id":"m1"}]}`).is(200).has(fields{
		"first_seq": "0", "duplicates": "1", "seqs": "[2]",
	})
	b.send("POST", messages, `{"messages":`+list(scenario.User("late"))+`,"if_seq":0}`).fails(409, service.CodeStale)
	b.send("POST", messages, `{"messages":[{"role":"user","content":"ok"},{"role":"nobody","content":"x"}]}`).
		fails(422, service.CodeInvalid).names(b.t, "body.messages[1]")
}

func (l *life) state(b *bench) {
	state := agentPath + "/state"
	b.send("PUT", state+"/todo", `{"items":["read part 1",{"text":"answer","status":"open"}]}`).is(200)
	b.send("PUT", state+"/x-mine", `{"text":"my own"}`).is(200)
	b.send("PUT", state+"/unheard", `{"text":"x"}`).fails(422, service.CodeInvalid)
	b.send("PUT", state+"/todo", `{}`).fails(422, service.CodeInvalid)
	b.send("GET", state+"/todo", "").is(200).has(fields{"version": "1", "items.1.status": "open"})
	b.send("GET", state, "").is(200).has(fields{"state.1.key": "x-mine"})
	b.send("DELETE", state+"/x-mine", "").is(204)
	b.send("GET", state+"/x-mine", "").fails(404, service.CodeNotFound)
}

func (l *life) reply(b *bench) {
	replies := agentPath + "/replies"
	open := b.send("POST", replies+"?max_input_tokens=15000", `{"ttl_seconds":60}`).is(201).has(fields{
		"context.messages.1":   `{"content":"Look at part 0.","role":"user"}`,
		"context.stats.window": "16000", "context.stats.marker": "null",
	})
	end := replies + "/" + open.get("reply") + "/end"
	b.send("POST", replies, `{}`).fails(409, service.CodeReplyOpen)
	b.send("POST", agentPath+"/compactions", `{}`).fails(409, service.CodeReplyOpen)
	answer := list(scenario.Assistant("Part 0 is short."))
	b.send("POST", end, `{"messages":`+answer+`,"usage":{"input_tokens":100,"cache_read_input_tokens":20,`+
		`"cache_creation_input_tokens":3,"output_tokens":7}}`).is(200).has(fields{
		"used_tokens": "130", "estimated": "false",
	})
	b.send("POST", end, `{"messages":`+answer+`}`).fails(409, service.CodeReplyEnded)
}

func (l *life) sync(b *bench) {
	all := list(scenario.User("<env>linux</env>"), scenario.User("Look at part 0."),
		scenario.Assistant("Part 0 is short."), scenario.User("And part 1?"))
	b.send("POST", agentPath+"/sync", `{"messages":`+all+`}`).is(200).has(fields{"matched": "3", "last_seq": "4"})
	b.send("POST", agentPath+"/sync", `{"messages":`+list(scenario.User("another past"))+`}`).
		fails(409, service.CodeStale)
}

func (l *life) compact(b *bench) {
	b.add(agentPath, scenario.Turns(2, 800)...)
	run := b.send("POST", agentPath+"/compactions", `{"focus":"part 1","wait_seconds":60}`).is(200).has(fields{
		"outcome": "applied", "summarizer": "self", "focus": "part 1", "trigger.kind": "manual",
		"steps.0.stage": "trigger",
	})
	l.run = run.get("id")
	if got := run.header.Get("Location"); got != "/v1/runs/"+l.run {
		b.t.Errorf("Location is %s, want the run %s", got, l.run)
	}
	b.send("POST", agentPath+"/compactions", `{"prompt":"no-such-prompt"}`).fails(422, service.CodeInvalid)
}

func (l *life) context(b *bench) {
	b.send("GET", agentPath+"/context", "").is(200).has(fields{"stats.marker.run": l.run}).
		holds("read one by one", "messages").holds("read part 1", "messages")
	b.send("GET", agentPath+"/context?format=openai", "").is(200).has(fields{"format": "openai"})
	b.send("GET", agentPath+"/context?format=morse", "").fails(422, service.CodeInvalid)
	b.send("GET", agentPath+"/messages?after=1&limit=2", "").is(200).has(fields{
		"messages.0.seq": "2", "messages.0.id": "m1", "messages.0.covered": "true", "more": "true",
	})
}

func (l *life) memory(b *bench) {
	b.send("GET", agentPath+"/segments", "").is(200).has(fields{
		"segments.1.name": "segment_0001.md", "segments.1.covers_from": "1",
	})
	b.send("GET", agentPath+"/segments/segment_0001.md", "").is(200).holds("Look at part 0.", "text")
	b.send("POST", agentPath+"/segments", `{"name":"n.md","text":"a note"}`).is(201)
	if got := b.send("GET", agentPath+"/search?q=part+OR+note", "").is(200); len(got.get("hits")) < 50 {
		b.t.Errorf("the search found %s", got.body)
	}
}

func (l *life) undo(b *bench) {
	b.send("DELETE", agentPath+"/marker", "").is(200).has(fields{"marker": "null", "undone.run": l.run})
	b.send("DELETE", agentPath+"/marker", "").fails(409, service.CodeNothingToUndo)
}

func (l *life) reportMarker(b *bench) {
	b.send("POST", agentPath+"/markers", `{"summary":`+scenario.User("The agent's own summary.")+
		`,"covers_to":3,"tokens_before":900,"tokens_after":90}`).is(201).has(fields{
		"origin": "agent", "active": "true",
	})
	b.send("GET", agentPath+"/compactions", "").is(200).has(fields{
		"compactions.0.marker.origin": "agent", "compactions.0.run": "null",
		"compactions.1.run.id": l.run, "compactions.1.marker.status": "undone",
	})
}

func (l *life) overflow(b *bench) {
	b.add(agentPath, scenario.User("A new turn, so that a run may start automatically."))
	reply := b.send("POST", agentPath+"/replies", "").is(201).get("reply")
	fired := b.send("POST", agentPath+"/replies/"+reply+"/end", `{"error":{"status":400,"body":{"type":"error",`+
		`"error":{"type":"invalid_request_error","message":"prompt is too long: 16100 tokens > 16000 maximum"}}}}`).
		is(200).has(fields{"trigger.fired": "true", "run.trigger.kind": "overflow"})
	automatic := "/v1/runs/" + fired.get("run", "id")
	within(b.t, 60*time.Second, "the automatic run ends",
		func() bool { return b.send("GET", automatic, "").is(200).get("outcome") != "" })
}
