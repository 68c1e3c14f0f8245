package api

import (
	"bytes"
	"strings"

	"precis/internal/audit"
	"precis/internal/service"
	"precis/internal/testkit/scenario"
)

func (l *life) readRun(b *bench) {
	run := b.send("GET", "/v1/runs/"+l.run+"?include=prompts,answers,summary,context", "").is(200).
		holds("read one by one", "summary")
	for _, path := range [][]any{
		{"answers", 0, "text"}, {"prompts", 0, "body"}, {"context"}, {"covers", "sha256"},
	} {
		if run.get(path...) == "" {
			b.t.Errorf("%v is empty: %s", path, run.body)
		}
	}
}

func (l *life) listRuns(b *bench) {
	const filter = "conversation=agent-1&outcome=applied&digest=false" +
		"&since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z"
	runs := b.send("GET", "/v1/runs?"+filter, "").is(200)
	if len(runs.get("runs")) < 10 || strings.Contains(string(runs.body), `"steps"`) {
		b.t.Errorf("the list is %s, want runs without steps", runs.body)
	}
	for _, none := range []string{
		"trigger=manual&summarizer=nobody/knows&replay_of=none", "outcome=unfinished&error_kind=auth",
	} {
		b.send("GET", "/v1/runs?"+none, "").is(200).has(fields{"runs": "[]"})
	}
	sums := b.send("GET", "/v1/runs/summary?conversation=agent-1&outcome=applied&trigger=manual", "").is(200).
		has(fields{"groups.0.outcome": "applied"})
	if sums.get("groups", 0, "runs") == "0" || sums.get("groups", 0, "usage", "calls") == "0" {
		b.t.Errorf("the sums are %s, want runs and calls", sums.body)
	}
	b.send("POST", "/v1/runs/"+l.run+"/cancel", "").is(200).has(fields{"outcome": "applied"})
}

func (l *life) verify(b *bench) {
	b.send("GET", "/v1/runs/"+l.run+"/verify", "").is(200).has(fields{
		"ok": "true", "pruned": "false", "checks.6.name": "context", "checks.6.state": "ok",
	})
	b.send("GET", "/v1/runs/nobody/verify", "").fails(404, service.CodeNotFound)
}

func (l *life) export(b *bench) {
	file := b.send("GET", agentPath+"/export", "").is(200)
	header, err := audit.CheckExport(bytes.NewReader(file.body))
	if err != nil || header.Conversation != "agent-1" || file.header.Get("Content-Type") != "application/jsonl" {
		b.t.Errorf("the export is %+v, %v with headers %v", header, err, file.header)
	}
	b.send("GET", "/v1/conversations/nobody/export", "").fails(404, service.CodeNotFound)
}

func (l *life) replay(b *bench) {
	b.send("POST", "/v1/runs/"+l.run+"/replay", `{"wait_seconds":30}`).is(200).has(fields{
		"outcome": "replayed", "comparison.identical": "true",
	})
}

func (l *life) usage(b *bench) {
	usage := b.send("GET", "/v1/usage?group_by=conversation", "").is(200).has(fields{
		"usage.0.key": "agent-1", "group_by": "conversation",
	})
	if usage.get("usage", 0, "calls") == "0" {
		b.t.Errorf("no calls in %s", usage.body)
	}
}

func (l *life) compactOnce(b *bench) {
	b.send("POST", "/v1/compact", `{"format":"anthropic","system":"s","tools":[],`+
		`"model":{"vendor":"anthropic","name":"test-agent","context_window":20000},`+
		`"messages":`+list(scenario.Turns(3, 800)...)+`,"settings":{"digest":"never"},`+
		`"state":{"todo":{"text":"go on"}},"focus":"part 2"}`).is(200).has(fields{"run.outcome": "applied"}).
		holds("read one by one", "messages").holds("go on", "messages")
}

func (l *life) tenantSettings(b *bench) {
	b.send("PUT", "/v1/settings", `{"settings":{"trigger":{"fraction":2}}}`).fails(422, service.CodeInvalid).
		names(b.t, "body.settings.trigger.fraction")
	b.send("PUT", "/v1/settings", `{"settings":{"trigger":{"fraction":0.5}}}`).is(200)
	b.send("PATCH", "/v1/settings", `{"settings":{"digest":"never"}}`).is(200)
	b.send("GET", "/v1/settings", "").is(200).has(fields{
		"settings.digest": "never", "effective.trigger.fraction": "0.5", "tenant": "default",
	})
	b.create("agent-2", "") // takes half of its window, as the tenant says
	b.send("GET", "/v1/conversations/agent-2", "").is(200).has(fields{"state.trigger.limit": "10000"})
}
