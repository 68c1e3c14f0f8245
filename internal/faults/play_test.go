package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"precis/internal/api/wire"
	"precis/internal/llm"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// patience is how long a play waits for what has to happen.
const patience = 90 * time.Second

// lookEvery is how often it looks whether it has.
const lookEvery = 100 * time.Millisecond

// play is one case on its way: in one format, with one of its variants and one policy of the digest.
type play struct {
	t       *testing.T
	sys     *system
	vendor  *vendor
	fault   fault
	how     how
	variant int
	format  transcript.Format
	// policy is the digest's, "" for the default.
	policy pipeline.DigestPolicy

	mu    sync.Mutex
	talks map[string]*talk
}

// name tells the plays of a case apart.
func (p *play) name() string {
	name := string(p.format)
	if p.fault.variants() > 1 {
		name += fmt.Sprintf("/variant%d", p.variant)
	}
	if p.policy != "" {
		name += "/digest_" + string(p.policy)
	}
	return name
}

// talk is one conversation of a play, with what the client knows of it.
type talk struct {
	*play
	caller
	id string
	// system is what was given beside the messages, nil: nothing was.
	system json.RawMessage
	sent   []sent
	// asked is the run that was asked for and not waited for, reply the lease that is open.
	asked, reply string
	log          []done
}

// sent is a message that the client sent.
type sent struct {
	native  json.RawMessage
	id      string
	genuine bool
}

// done is an operation that has been carried out.
type done struct {
	op  string
	res response
	// run is the one that the operation waited for, nil: none.
	run *wire.Run
	// sent counts the messages of the conversation then.
	sent int
	// before and after are the contexts around it, nil where it does not touch that.
	before, after *wire.Context
	// requests counts what the vendor has been asked since the play began.
	requests int
	state    *wire.Conversation
}

// newVendor makes the scripted vendor of the play.
func (p *play) newVendor(t *testing.T, number int) *vendor {
	t.Helper()
	script, err := scriptOf(p.fault, p.variant)
	if err != nil {
		t.Fatalf("%s: %v", p.fault.Name, err)
	}
	v := &vendor{name: fmt.Sprintf("v%d", number), typ: llm.TypeOpenAI, native: p.fault.Settings.Mode == "beta"}
	if p.format == transcript.Anthropic {
		v.typ = llm.TypeAnthropic
	}
	script.Lenient = true // a case may hold what no vendor takes: requestsAreValid looks at each request
	if p.goesOn() {
		v.gate = vendorserver.NewGate()
		for i := range script.Answers {
			if a := &script.Answers[i]; a.DelayMS > 0 {
				a.DelayMS, a.Gate = 0, v.gate
			}
		}
	}
	v.Server = vendorserver.New(t, script)
	return v
}

// goesOn says that the case does something while a summary is written. What it delays is then held until the case
// waits, however fast or slow the machine is.
func (p *play) goesOn() bool {
	steps, err := stepsOf(p.fault.Messages)
	if err != nil {
		panic(err) // the collection is read before it is played
	}
	return slices.ContainsFunc(steps, func(s step) bool { return s.Op == "request_compaction" })
}

// settings are the case's, in the words of the API.
func (p *play) settings() map[string]any {
	c := p.fault.Settings
	set := map[string]any{"summarizers": p.summarizers(c.SummarizerWindow, firstModel)}
	trigger := map[string]any{}
	if c.Auto != nil {
		trigger["auto"] = *c.Auto
	}
	if c.BackgroundStart > 0 {
		trigger["start"] = map[string]any{"unused_percent": 1 - c.BackgroundStart}
	}
	if len(trigger) > 0 {
		set["trigger"] = trigger
	}
	if c.SummaryMaxTokens > 0 {
		set["summary_max_tokens"] = c.SummaryMaxTokens
	}
	if c.BreakerFailures > 0 {
		set["breaker"] = map[string]any{"failures": c.BreakerFailures, "cooldown_seconds": 300}
	}
	if c.Redact {
		set["redact"] = true
	}
	if c.ToolDropThreshold != nil {
		set["tool_drop_threshold"] = *c.ToolDropThreshold
	}
	if c.Mode != "" {
		set["mode"] = c.Mode
	}
	if c.ForceExternal {
		set["force_external"] = true
	}
	if p.policy != "" {
		set["digest"] = p.policy
	}
	return set
}

// summarizers is the list that a case asks for: the agent's own model and then one that only summarizes, both answered
// by the case's one script; the latter alone where the case gives it a window of its own, or is about what only goes to
// such a one.
func (p *play) summarizers(window int, model string) []any {
	c := p.fault.Settings
	spec := map[string]any{"model": p.vendor.name + "/" + model, "context_window": window}
	if window == 0 {
		spec["context_window"] = c.Window
	}
	if c.SummarizerMaxOutput > 0 {
		spec["max_output"] = c.SummarizerMaxOutput
	}
	var list []any
	switch {
	case p.how.list == "self":
		return append(list, "self")
	case p.how.list == "external":
		return append(list, spec)
	case c.ForceExternal && len(p.fault.Answers) == 0:
	case window > 0 || c.Redact || c.ForceExternal:
		list = append(list, spec)
	case len(p.fault.SecondAnswers) > 0:
		list = append(list, "self")
	default:
		list = append(list, "self", spec)
	}
	if len(p.fault.SecondAnswers) > 0 {
		list = append(list, p.vendor.name+"/"+secondModel)
	}
	return list
}

// run plays the case.
func (p *play) run() {
	p.talks = map[string]*talk{}
	main := p.talk("", "")
	main.steps(p.fault.Messages)
	for _, t := range p.talks {
		t.settled()
	}
	p.requestsAreValid()
}

// tenant of a play; a case of several tenants numbers them.
func (p *play) tenant(number int) string { return fmt.Sprintf("%s-%d", p.vendor.name, number) }

// talk gives a conversation of the play by its name in the case, and makes it when it is new.
func (p *play) talk(name, key string) *talk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.talks[name]; t != nil {
		return t
	}
	for _, t := range p.talks { // all conversations of a play belong to one tenant, unless it says otherwise
		if key == "" {
			key = t.key
		}
	}
	c := caller{url: p.sys.url, key: key}
	if key == "" {
		c = newCaller(p.t, p.sys, p.tenant(0))
	}
	t := &talk{play: p, caller: c, id: orText(name, "main")}
	p.talks[name] = t
	t.create()
	return t
}

func (t *talk) path(rest string) string { return "/v1/conversations/" + url.PathEscape(t.id) + rest }

// noSystem is the system prompt of an agent whose case has none: the agent's own model can only be asked when it is
// known.
const noSystem = "You are a careful agent."

func (t *talk) create() {
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

// call sends a request and gives whatever is answered.
func (t *talk) call(method, path string, body any) response {
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

// want fails the play unless the status is one of those.
func (t *talk) want(res response, right ...int) response {
	t.t.Helper()
	if !slices.Contains(right, res.status) {
		t.t.Fatalf("status %d, want %v: %.500s", res.status, right, res.body)
	}
	return res
}

func (t *talk) read(path string, into any) {
	t.t.Helper()
	if err := json.Unmarshal(t.want(t.call("GET", path, nil), 200).body, into); err != nil {
		t.t.Fatalf("%s: %v", path, err)
	}
}

// context is what the model sees.
func (t *talk) context() *wire.Context {
	t.t.Helper()
	var c wire.Context
	t.read(t.path("/context"), &c)
	return &c
}

// conversation is where it stands.
func (t *talk) conversation() *wire.Conversation {
	t.t.Helper()
	var c wire.Conversation
	t.read(t.path(""), &c)
	return &c
}

// transcript is everything as stored.
func (t *talk) transcript() []wire.Message {
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
		t.read(t.path(fmt.Sprintf("/messages?after=%d&limit=1000", after)), &page)
		all = append(all, page.Messages...)
		if !page.More {
			return all
		}
	}
}

// getRun reads a run.
func (t *talk) getRun(id string) wire.Run {
	t.t.Helper()
	var r wire.Run
	t.read("/v1/runs/"+id, &r)
	return r
}

// allRuns are those of the conversation, oldest first, with their steps.
func (t *talk) allRuns() []wire.Run {
	t.t.Helper()
	var page struct{ Runs []wire.Run }
	t.read("/v1/runs?limit=1000&conversation="+url.QueryEscape(t.id), &page)
	slices.Reverse(page.Runs)
	for i := range page.Runs {
		page.Runs[i] = t.getRun(page.Runs[i].ID)
	}
	return page.Runs
}

// markers are all that were ever written, newest first.
func (t *talk) markers() []wire.Marker {
	t.t.Helper()
	var page struct{ Compactions []wire.Compaction }
	t.read(t.path("/compactions?limit=1000"), &page)
	var out []wire.Marker
	for _, c := range page.Compactions {
		if c.Marker != nil {
			out = append(out, *c.Marker)
		}
	}
	return out
}

// requests are those that the vendor got.
func (p *play) requests() []vendorserver.Request { return p.vendor.Requests() }

// steps does what the messages of a case say, in order.
func (t *talk) steps(list []json.RawMessage) {
	t.t.Helper()
	steps, err := stepsOf(list)
	if err != nil {
		t.t.Fatal(err)
	}
	for _, s := range steps {
		t.step(s)
	}
}

// step does one thing. A word that stands in the table of words and not here fails the play.
func (t *talk) step(s step) {
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
		t.log = append(t.log, done{op: s.Op, state: t.conversation(), requests: len(t.requests())})
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
		t.t.Fatalf("the harness has no operation %q", s.Op)
	}
}

// append sends one message, with what stands beside it.
func (t *talk) append(s step) {
	t.t.Helper()
	if s.Conversation != "" && s.Conversation != t.id {
		other := t.talk(s.Conversation, "")
		other.append(s)
		return
	}
	m := messageOf(s.native)
	if m.Role == "system" && t.format == transcript.Anthropic {
		return // stands beside the messages there
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

// appendAgain sends messages that were sent before.
func (t *talk) appendAgain(ids []string) {
	t.t.Helper()
	var natives []json.RawMessage
	var meta []any
	for _, m := range t.sent {
		if slices.Contains(ids, m.id) {
			natives, meta = append(natives, m.native), append(meta, map[string]any{"id": m.id})
		}
	}
	if len(natives) != len(ids) {
		t.t.Fatalf("%d messages are known by the ids %v", len(natives), ids)
	}
	before := t.context()
	res := t.want(t.call("POST", t.path("/messages"), map[string]any{"messages": natives, "meta": meta}), 200)
	t.noted(done{op: "append_again", res: res, before: before})
}

// appendAt sends a message for a version of the conversation that the client believes in.
func (t *talk) appendAt(s step) {
	t.t.Helper()
	before := t.context()
	native := inForm(s.Message, t.format)
	res := t.call("POST", t.path("/messages"),
		map[string]any{"messages": []json.RawMessage{native}, "if_seq": s.ExpectedVersion})
	t.want(res, s.ExpectStatus...)
	t.noted(done{op: "append", res: res, before: before})
}

// compact asks for a compaction and waits for its end.
func (t *talk) compact(s step) {
	t.t.Helper()
	t.noted(t.compactOnce(s))
}

func (t *talk) compactOnce(s step) done {
	t.t.Helper()
	d := done{op: s.Op, before: t.context()}
	body := map[string]any{"wait_seconds": int(patience / time.Second)}
	if s.Op == "compact_full" {
		body["full"] = true
	}
	ctx := t.t.Context()
	if s.ClientTimeoutMS > 0 {
		var stop context.CancelFunc
		ctx, stop = t.impatient(time.Duration(s.ClientTimeoutMS) * time.Millisecond)
		defer stop()
	}
	var err error
	d.res, err = t.try(ctx, "POST", t.path("/compactions"), body, s.IdempotencyKey)
	switch {
	case err != nil && s.ClientTimeoutMS == 0:
		t.t.Fatal(err)
	case err != nil:
		return d // the client went away
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

// impatient ends so long after the model has been asked: a client that gives up on an answer, and not on a server that
// has not come to its request.
func (t *talk) impatient(patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.t.Context())
	go func() {
		if _, err := t.vendor.WaitForRequest(ctx, 1); err == nil {
			defer time.AfterFunc(patience, cancel).Stop()
			<-ctx.Done()
		}
	}()
	return ctx, cancel
}

// requestCompaction requests a compaction and returns as soon as its model call has arrived.
func (t *talk) requestCompaction() {
	t.t.Helper()
	before, asked := t.context(), len(t.requests())
	res := t.want(t.call("POST", t.path("/compactions"), map[string]any{}), 202)
	var run wire.Run
	if err := json.Unmarshal(res.body, &run); err != nil {
		t.t.Fatal(err)
	}
	t.asked = run.ID
	if _, err := t.vendor.WaitForRequest(t.t.Context(), asked+1); err != nil {
		t.t.Fatal(err)
	}
	t.noted(done{op: "request_compaction", res: res, before: before})
}

// parallel does several operations at once.
func (t *talk) parallel(list []json.RawMessage) {
	t.t.Helper()
	steps, err := stepsOf(list)
	if err != nil {
		t.t.Fatal(err)
	}
	results := make([]done, len(steps))
	var all sync.WaitGroup
	for i, s := range steps {
		if s.Op != "compact" {
			t.t.Fatalf("the harness does not do %q at once with others", s.Op)
		}
		all.Go(func() {
			body := map[string]any{"wait_seconds": int(patience / time.Second)}
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

// parallelConversations plays the messages in several conversations at once, of several tenants in turn.
func (t *talk) parallelConversations(s step) {
	t.t.Helper()
	keys := []string{t.key}
	for n := 1; n < s.Tenants; n++ {
		keys = append(keys, newCaller(t.t, t.sys, t.tenant(n)).key)
	}
	var all sync.WaitGroup
	for c := range s.Count {
		other := t.talk(fmt.Sprint("c", c), keys[c%len(keys)])
		all.Go(func() { other.steps(indexed(s.Messages, "{c}", c)) })
	}
	all.Wait()
}

// waitIdle waits until no run is under way; wait_compaction, until one has ended as well.
func (t *talk) waitIdle(op string) {
	t.t.Helper()
	p := t.play
	if p.vendor.gate != nil {
		p.vendor.gate.Open()
	}
	for _, each := range p.talks {
		each.until("no run is under way", func() bool {
			c := each.conversation()
			return c.State.Run == "" && (op != "wait_compaction" || len(each.allRuns()) > 0)
		})
	}
	t.noted(done{op: op, state: t.conversation()})
}

// until waits for a condition.
func (t *talk) until(what string, holds func() bool) {
	t.t.Helper()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.t.Fatalf("not within %s: %s", patience, what)
		case <-t.t.Context().Done():
			t.t.Fatal(t.t.Context().Err())
		}
	}
}

func (t *talk) cancel() {
	t.t.Helper()
	before := t.context()
	res := t.want(t.call("POST", "/v1/runs/"+t.asked+"/cancel", nil), 200)
	run := new(wire.Run)
	if err := json.Unmarshal(res.body, run); err != nil {
		t.t.Fatal(err)
	}
	t.noted(done{op: "cancel", res: res, run: run, before: before})
}

func (t *talk) undo(s step) {
	t.t.Helper()
	before := t.context()
	right := []int(s.ExpectStatus)
	if right == nil {
		right = []int{200}
	}
	t.noted(done{op: "undo", res: t.want(t.call("DELETE", t.path("/marker"), nil), right...), before: before})
}

// setState sets live state; an empty text is put as such.
func (t *talk) setState(s step) {
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

func (t *talk) changeModel(s step) {
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

// reportError is a reply of the agent's model that failed.
func (t *talk) reportError(e reported) {
	t.t.Helper()
	t.beginReply()
	failure := map[string]any{"status": e.Status}
	if body := e.errorBody(); body != nil {
		failure["body"] = body
	}
	t.finishReply(map[string]any{"error": failure})
}

func (t *talk) beginReply() {
	t.t.Helper()
	var opened wire.Reply
	res := t.want(t.call("POST", t.path("/replies"), map[string]any{}), 201)
	if err := json.Unmarshal(res.body, &opened); err != nil {
		t.t.Fatal(err)
	}
	t.reply = opened.ID
	t.log = append(t.log, done{op: "open_reply", res: res, requests: len(t.requests())})
}

func (t *talk) endReply(message json.RawMessage) {
	t.t.Helper()
	native := inForm(message, t.format)
	t.finishReply(map[string]any{"messages": []json.RawMessage{native}})
	t.sent = append(t.sent, sent{native: native, genuine: messageOf(native).genuine()})
}

func (t *talk) finishReply(body map[string]any) {
	t.t.Helper()
	res := t.want(t.call("POST", t.path("/replies/"+t.reply+"/end"), body), 200)
	t.reply = ""
	t.log = append(t.log, done{op: "end_reply", res: res, requests: len(t.requests())})
}

func (t *talk) restartWorker() {
	t.t.Helper()
	t.log = append(t.log, done{op: "before_restart", state: t.conversation(), requests: len(t.requests())})
	t.sys.StopWorker()
	t.sys.StartWorker()
	t.log = append(t.log, done{op: "restart_worker", state: t.conversation(), requests: len(t.requests())})
}

// noted keeps what an operation did, and checks what holds after every one.
func (t *talk) noted(d done) {
	t.t.Helper()
	d.after = t.context()
	d.requests, d.sent = len(t.requests()), len(t.sent)
	t.log = append(t.log, d)
	t.invariants(d)
}

// settled checks the end of a play: nothing is left under way, and what holds still does.
func (t *talk) settled() {
	t.t.Helper()
	t.until("nothing is under way at the end", func() bool { return t.conversation().State.Run == "" })
	t.noted(done{op: "end"})
	t.accounts()
}

// ops gives the operations of a kind, in order.
func (t *talk) ops(kinds ...string) []done {
	var out []done
	for _, d := range t.log {
		if slices.Contains(kinds, d.op) {
			out = append(out, d)
		}
	}
	return out
}

// main is the conversation of a case that has one.
func (p *play) main() *talk { return p.talks[""] }
