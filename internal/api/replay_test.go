package api

import (
	"strings"
	"testing"
	"time"

	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// A run is repeated over HTTP as on the command line: from its record and live, waited for or not, cancelled, refused,
// and by its own tenant alone.
func TestReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{worker: true, script: vendorserver.Script{Models: map[string][]vendorserver.Answer{
		"test-agent": {{Text: "<summary>The parts were read one by one.</summary>", Forever: true}},
		"beta":       {{Text: "<summary>## Goal\nRead the parts.</summary>"}, {Hang: true}},
	}}})
	b.send("POST", "/v1/conversations", `{"id":"c","format":"anthropic","model":{"vendor":"anthropic",`+
		`"name":"test-agent","context_window":16000},"system":"s","tools":[]}`).is(201)
	c := "/v1/conversations/c"
	b.add(c, scenario.Turns(6, 1700)...)
	run := b.send("POST", c+"/compactions", `{"wait_seconds":60}`).is(200).get("id")
	before := b.send("GET", c+"/context", "").is(200).get("messages")

	same := b.send("POST", "/v1/runs/"+run+"/replay", `{"wait_seconds":60}`).is(200)
	if same.get("outcome") != "replayed" || same.get("replay_of") != run || same.get("replay") != "recorded" ||
		same.get("comparison", "identical") != "true" || same.get("comparison", "context", "identical") != "true" {
		t.Errorf("%s", same.body)
	}
	asked := b.send("POST", "/v1/runs/"+run+"/replay",
		`{"live":true,"summarizer":"openai/beta","max_chars":9000}`).is(202)
	if asked.header.Get("Location") != "/v1/runs/"+asked.get("id") || asked.get("workflow_id") != "replay/default/"+
		asked.get("id") {
		t.Errorf("%s", asked.body)
	}
	var live reply
	within(t, 60*time.Second, "the live replay ends", func() bool {
		live = b.send("GET", "/v1/runs/"+asked.get("id"), "").is(200)
		return live.get("outcome") != ""
	})
	if live.get("outcome") != "replayed" || live.get("comparison", "replay", "summarizer") != "openai/beta" ||
		live.get("comparison", "changes", "max_chars") != "9000" ||
		live.get("comparison", "replay", "sections", 0, "title") != "Goal" || live.get("usage", "calls") != "1" {
		t.Errorf("%s", live.body)
	}
	hangs := b.send("POST", "/v1/runs/"+run+"/replay",
		`{"live":true,"apply":true,"summarizer":"openai/beta"}`).is(202).get("id")
	if _, err := b.Vendor.WaitForRequest(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if got := b.send("POST", "/v1/runs/"+hangs+"/cancel", "").is(200); got.get("outcome") != "cancelled" {
		t.Errorf("%s", got.body)
	}
	if after := b.send("GET", c+"/context", "").is(200).get("messages"); after != before {
		t.Error("replays that were not applied changed the context")
	}
	if list := b.send("GET", c+"/compactions", "").is(200); list.get("compactions", 0, "run", "id") != run ||
		strings.Count(string(list.body), `"workflow_id"`) != 1 {
		t.Errorf("the timeline has replays that took no effect: %s", list.body)
	}
	if list := b.send("GET", "/v1/runs?outcome=replayed&replay_of="+run, "").is(200); strings.Count(string(list.body),
		`"workflow_id"`) != 2 {
		t.Errorf("%s", list.body)
	}

	b.send("POST", "/v1/runs/"+run+"/replay", `{"apply":true}`).fails(422, service.CodeInvalid)
	b.send("POST", "/v1/runs/"+run+"/replay", `{"focus":"x"}`).fails(422, service.CodeInvalid)
	b.send("POST", "/v1/runs/"+run+"/replay", `{"live":true,"summarizer":"nobody/x"}`).fails(422, service.CodeInvalid)
	b.send("POST", "/v1/runs/"+run+"/replay", `{"live":true,"max_chars":-1}`).fails(422, service.CodeInvalid)
	b.send("POST", "/v1/runs/"+hangs+"/replay", `{}`).fails(422, service.CodeInvalid)
	b.send("POST", "/v1/runs/none/replay", `{}`).fails(404, service.CodeNotFound)
	if err := b.Store.Retention.DeleteContent(t.Context(),
		store.ConversationRef{Tenant: store.DefaultTenant, ID: "c"}); err != nil {
		t.Fatal(err)
	}
	b.send("POST", "/v1/runs/"+run+"/replay", `{}`).fails(404, service.CodeNotFound)
}
