package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"precis/internal/api/wire"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// steps sends messages and carries out operations, in order.
func (t *conversation) steps(list []json.RawMessage) {
	t.t.Helper()
	steps, err := stepsOf(list)
	if err != nil {
		t.t.Fatal(err)
	}
	for _, s := range steps {
		t.step(s)
	}
}

// step sends one message or carries out one operation.
func (t *conversation) step(s step) {
	t.t.Helper()
	switch s.Op {
	case "":
		t.append(s)
	case "repeat":
		for i := range s.Times {
			t.steps(indexed(s.Messages, "{i}", i))
			if i+1 == s.RestartWorkerAfter {
				t.restartWorker()
			}
		}
	case "use_variant":
		t.steps(t.fault.MessageVariants[t.variant])
	case "compact", "compact_full":
		t.compact(s)
	case "request_compaction":
		t.requestCompaction()
	case "parallel":
		t.parallel(s.Ops)
	case "parallel_conversations":
		t.parallelConversations(s)
	case "wait_idle", "wait_compaction":
		t.waitIdle(s.Op)
	case "cancel":
		t.cancel()
	case "undo":
		t.undo(s)
	case "read_state":
		t.log = append(t.log, done{op: s.Op, state: t.read(), requests: len(t.requests())})
	case "set_state":
		t.setState(s)
	case "change_model":
		t.changeModel(s)
	case "report_error":
		t.reportError(*s.Error)
	case "open_reply":
		t.beginReply()
	case "end_reply":
		t.endReply(s.Message)
	case "append_again":
		t.appendAgain(s.IDs)
	case "append":
		t.appendAt(s)
	case "stop_worker":
		t.sys.StopWorker()
	case "start_worker":
		t.sys.StartWorker()
	default:
		t.t.Fatalf("operation %q is not implemented", s.Op)
	}
}

// append sends one message with its metadata and usage.
func (t *conversation) append(s step) {
	t.t.Helper()
	if s.Conversation != "" && s.Conversation != t.id {
		other := t.play.conversation(s.Conversation, "")
		other.append(s)
		return
	}
	m := messageOf(s.native)
	if m.Role == "system" && t.format == transcript.Anthropic {
		return // that format has the system prompt outside of the messages
	}
	native := inForm(s.native, t.format)
	meta := map[string]any{}
	if s.ID != "" {
		meta["id"] = s.ID
	}
	if s.Metadata.Synthetic {
		meta["kind"] = pipeline.KindSynthetic
	}
	body := map[string]any{"messages": []json.RawMessage{native}, "meta": []any{meta}}
	if s.Usage != nil {
		body["usage"] = s.Usage
	}
	res := t.want(t.call("POST", t.path("/messages"), body), 200)
	t.sent = append(t.sent, sent{native: native, id: s.ID, genuine: m.genuine() && !s.Metadata.Synthetic})
	t.log = append(t.log, done{op: "append", res: res, requests: len(t.requests())})
}

// appendAgain sends messages with the given ids a second time.
func (t *conversation) appendAgain(ids []string) {
	t.t.Helper()
	var natives []json.RawMessage
	var meta []any
	for _, m := range t.sent {
		if slices.Contains(ids, m.id) {
			natives, meta = append(natives, m.native), append(meta, map[string]any{"id": m.id})
		}
	}
	if len(natives) != len(ids) {
		t.t.Fatalf("%d messages have the ids %v", len(natives), ids)
	}
	before := t.context()
	res := t.want(t.call("POST", t.path("/messages"), map[string]any{"messages": natives, "meta": meta}), 200)
	t.record(done{op: "append_again", res: res, before: before})
}

// appendAt sends a message together with the version that the client expects.
func (t *conversation) appendAt(s step) {
	t.t.Helper()
	before := t.context()
	native := inForm(s.Message, t.format)
	res := t.call("POST", t.path("/messages"),
		map[string]any{"messages": []json.RawMessage{native}, "if_seq": s.ExpectedVersion})
	t.want(res, s.ExpectStatus...)
	t.record(done{op: "append", res: res, before: before})
}

// compact requests a compaction and waits for its end.
func (t *conversation) compact(s step) {
	t.t.Helper()
	t.record(t.compactOnce(s))
}

func (t *conversation) compactOnce(s step) done {
	t.t.Helper()
	d := done{op: s.Op, before: t.context()}
	body := map[string]any{"wait_seconds": int(playTimeout / time.Second)}
	if s.Op == "compact_full" {
		body["full"] = true
	}
	ctx := t.t.Context()
	if s.ClientTimeoutMS > 0 {
		var stop context.CancelFunc
		ctx, stop = t.untilTimeout(time.Duration(s.ClientTimeoutMS) * time.Millisecond)
		defer stop()
	}
	var err error
	d.res, err = t.try(ctx, "POST", t.path("/compactions"), body, s.IdempotencyKey)
	switch {
	case err != nil && s.ClientTimeoutMS == 0:
		t.t.Fatal(err)
	case err != nil:
		return d // the client timed out
	case len(s.ExpectStatus) > 0:
		t.want(d.res, s.ExpectStatus...)
		return d
	case s.ClientTimeoutMS > 0:
		return d
	}
	t.want(d.res, 200)
	d.run = new(wire.Run)
	if err := json.Unmarshal(d.res.body, d.run); err != nil {
		t.t.Fatal(err)
	}
	return d
}

// untilTimeout returns a context that ends the given time after the model was asked, so that the client does not time
// out before the run has started.
func (t *conversation) untilTimeout(timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.t.Context())
	go func() {
		if _, err := t.vendor.WaitForRequest(ctx, 1); err == nil {
			defer time.AfterFunc(timeout, cancel).Stop()
			<-ctx.Done()
		}
	}()
	return ctx, cancel
}

// requestCompaction requests a compaction and returns as soon as its model call has arrived.
func (t *conversation) requestCompaction() {
	t.t.Helper()
	before, asked := t.context(), len(t.requests())
	res := t.want(t.call("POST", t.path("/compactions"), map[string]any{}), 202)
	var run wire.Run
	if err := json.Unmarshal(res.body, &run); err != nil {
		t.t.Fatal(err)
	}
	t.requested = run.ID
	if _, err := t.vendor.WaitForRequest(t.t.Context(), asked+1); err != nil {
		t.t.Fatal(err)
	}
	t.record(done{op: "request_compaction", res: res, before: before})
}

// parallel carries out several operations at the same time.
func (t *conversation) parallel(list []json.RawMessage) {
	t.t.Helper()
	steps, err := stepsOf(list)
	if err != nil {
		t.t.Fatal(err)
	}
	results := make([]done, len(steps))
	var all sync.WaitGroup
	for i, s := range steps {
		if s.Op != "compact" {
			t.t.Fatalf("operation %q cannot be part of parallel", s.Op)
		}
		all.Go(func() {
			body := map[string]any{"wait_seconds": int(playTimeout / time.Second)}
			res, err := t.try(t.t.Context(), "POST", t.path("/compactions"), body, "")
			if err != nil {
				t.t.Error(err)
			}
			results[i] = done{op: s.Op, res: res}
		})
	}
	all.Wait()
	for i := range results {
		if results[i].res.status == 200 {
			results[i].run = new(wire.Run)
			if err := json.Unmarshal(results[i].res.body, results[i].run); err != nil {
				t.t.Fatal(err)
			}
		}
	}
	t.log = append(t.log, results...)
}

// parallelConversations plays the messages in several conversations at the same time. The tenants take turns.
func (t *conversation) parallelConversations(s step) {
	t.t.Helper()
	keys := []string{t.key}
	for n := 1; n < s.Tenants; n++ {
		keys = append(keys, newCaller(t.t, t.sys, t.tenant(n)).key)
	}
	var all sync.WaitGroup
	for c := range s.Count {
		other := t.play.conversation(fmt.Sprint("c", c), keys[c%len(keys)])
		all.Go(func() { other.steps(indexed(s.Messages, "{c}", c)) })
	}
	all.Wait()
}

// waitIdle waits until no run is active. With wait_compaction it also waits until one has ended.
func (t *conversation) waitIdle(op string) {
	t.t.Helper()
	p := t.play
	if p.vendor.gate != nil {
		p.vendor.gate.Open()
	}
	for _, each := range p.conversations {
		each.until("no run is active", func() bool {
			c := each.read()
			return c.State.Run == "" && (op != "wait_compaction" || len(each.allRuns()) > 0)
		})
	}
	t.record(done{op: op, state: t.read()})
}

func (t *conversation) cancel() {
	t.t.Helper()
	before := t.context()
	res := t.want(t.call("POST", "/v1/runs/"+t.requested+"/cancel", nil), 200)
	run := new(wire.Run)
	if err := json.Unmarshal(res.body, run); err != nil {
		t.t.Fatal(err)
	}
	t.record(done{op: "cancel", res: res, run: run, before: before})
}

func (t *conversation) undo(s step) {
	t.t.Helper()
	before := t.context()
	right := []int(s.ExpectStatus)
	if right == nil {
		right = []int{200}
	}
	t.record(done{op: "undo", res: t.want(t.call("DELETE", t.path("/marker"), nil), right...), before: before})
}

// setState sets live state. An empty text is sent as such.
func (t *conversation) setState(s step) {
	t.t.Helper()
	put := func(key string, value any) {
		t.want(t.call("PUT", t.path("/state/"+key), value), 200)
	}
	for key, text := range map[string]*string{"mode": s.ModePrompt, "todo": s.Todo, "plan": s.Plan} {
		if text != nil {
			put(key, map[string]any{"text": *text})
		}
	}
	for key, items := range map[string][]string{"skills": s.Skills, "pins": s.Constraints} {
		if items != nil {
			put(key, map[string]any{"items": items})
		}
	}
	t.log = append(t.log, done{op: "set_state", requests: len(t.requests())})
}

func (t *conversation) changeModel(s step) {
	t.t.Helper()
	patch := map[string]any{}
	if s.Window > 0 {
		patch["model"] = map[string]any{"context_window": s.Window}
	}
	set := map[string]any{}
	if s.SummarizerWindow > 0 {
		set["summarizers"] = t.summarizers(s.SummarizerWindow, firstModel)
	}
	if s.Summarizer != "" {
		set["summarizers"] = []any{t.vendor.name + "/" + s.Summarizer}
	}
	if s.Limit > 0 {
		set["trigger"] = map[string]any{"token_limit": s.Limit}
	}
	if len(set) > 0 {
		patch["settings"] = set
	}
	t.log = append(t.log, done{
		op: "change_model", res: t.want(t.call("PATCH", t.path(""), patch), 200),
		requests: len(t.requests()),
	})
}

// reportError opens a reply and reports that the agent's model failed.
func (t *conversation) reportError(e reported) {
	t.t.Helper()
	t.beginReply()
	failure := map[string]any{"status": e.Status}
	if body := e.errorBody(); body != nil {
		failure["body"] = body
	}
	t.finishReply(map[string]any{"error": failure})
}

func (t *conversation) beginReply() {
	t.t.Helper()
	var opened wire.Reply
	res := t.want(t.call("POST", t.path("/replies"), map[string]any{}), 201)
	if err := json.Unmarshal(res.body, &opened); err != nil {
		t.t.Fatal(err)
	}
	t.reply = opened.ID
	t.log = append(t.log, done{op: "open_reply", res: res, requests: len(t.requests())})
}

func (t *conversation) endReply(message json.RawMessage) {
	t.t.Helper()
	native := inForm(message, t.format)
	t.finishReply(map[string]any{"messages": []json.RawMessage{native}})
	t.sent = append(t.sent, sent{native: native, genuine: messageOf(native).genuine()})
}

func (t *conversation) finishReply(body map[string]any) {
	t.t.Helper()
	res := t.want(t.call("POST", t.path("/replies/"+t.reply+"/end"), body), 200)
	t.reply = ""
	t.log = append(t.log, done{op: "end_reply", res: res, requests: len(t.requests())})
}

func (t *conversation) restartWorker() {
	t.t.Helper()
	t.log = append(t.log, done{op: "before_restart", state: t.read(), requests: len(t.requests())})
	t.sys.StopWorker()
	t.sys.StartWorker()
	t.log = append(t.log, done{op: "restart_worker", state: t.read(), requests: len(t.requests())})
}
