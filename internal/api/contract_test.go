package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"precis/internal/service"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// TestEveryOperation is an agent's life from the first message to the audit, by every operation of the document. Every
// test checks that answers are as the document says; this one checks what they mean. Each step needs those before it.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{
		worker: true,
		script: vendorserver.Script{Default: &vendorserver.Answer{Text: summaryText}},
	})
	b.key = b.newKey("default", true)
	within(t, 20*time.Second, "ready", func() bool { return b.send("GET", "/readyz", "").status == http.StatusOK })
	l := &life{}
	for _, step := range []struct {
		name string
		do   func(*bench)
	}{
		{"CreateConversation", l.createConversation},
		{"PatchConversation", l.patchConversation},
		{"Append", l.append},
		{"State", l.state},
		{"Reply", l.reply},
		{"Sync", l.sync},
		{"Compact", l.compact},
		{"Context", l.context},
		{"Memory", l.memory},
		{"Undo", l.undo},
		{"ReportMarker", l.reportMarker},
		{"Overflow", l.overflow},
		{"ReadRun", l.readRun},
		{"ListRuns", l.listRuns},
		{"Verify", l.verify},
		{"Export", l.export},
		{"Replay", l.replay},
		{"Usage", l.usage},
		{"CompactOnce", l.compactOnce},
		{"TenantSettings", l.tenantSettings},
		{"Watch", func(b *bench) {
			b.follow(agentPath + "/events?after=1").next()
			b.send("GET", "/healthz", "").is(200)
		}},
		{"NothingIsLeftOut", nothingIsLeftOut},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(b.on(t)) }) {
			return
		}
	}
}

// nothingIsLeftOut checks that every operation of the document has been answered with success.
func nothingIsLeftOut(b *bench) {
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
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
		} {
			if name := method + " " + path; fmt.Sprint(op) != "<nil>" && !walked[name] {
				b.t.Errorf("%s was not tried", name)
			}
		}
	}
}

// TestCursors reads lists page by page.
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

// TestCancel cancels a run during its model call.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{worker: true, script: vendorserver.Script{Default: &vendorserver.Answer{Hang: true}}})
	c := b.create("c", `"system":"s","tools":[]`)
	b.add(c, scenario.Turns(3, 400)...)
	run := b.send("POST", c+"/compactions", `{}`).is(202)
	if run.get("outcome") != "" || run.get("finished") != "null" {
		t.Errorf("%s", run.body)
	}
	// A second request during the run returns the same run.
	if again := b.send("POST", c+"/compactions", `{"focus":"other"}`).is(202).get("id"); again != run.get("id") {
		t.Errorf("run %s beside %s", again, run.get("id"))
	}
	within(t, 20*time.Second, "the model is asked", func() bool { return len(b.Vendor.Requests()) > 0 })
	if got := b.send("POST", "/v1/runs/"+run.get("id")+"/cancel", "").is(200).get("outcome"); got != "cancelled" {
		t.Errorf("outcome %s", got)
	}
	b.send("POST", "/v1/runs/unknown/cancel", "").fails(404, service.CodeNotFound)
}
