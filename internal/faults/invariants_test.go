package faults

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline/transcript"
)

// What marks a summary, and a digest, in a context.
const (
	summaryBegin = "<conversation_summary>"
	summaryEnd   = "</conversation_summary>"
	digestNotice = "No model wrote this summary"
)

// invariants checks what docs/faults.md promises after every operation of every case.
func (t *conversation) invariants(d done) {
	t.t.Helper()
	now := d.after
	t.pairsAreWhole(now)
	t.lastMessageIsKept(now)
	t.systemIsFirst(now)
	t.transcriptIsUnchanged()
	t.failureLeavesNothing(d)
	t.summaryIsOne(now)
	if again := t.context(); again.Stats.HeadSeq == now.Stats.HeadSeq && again.Stats.Version == now.Stats.Version &&
		!equal(now.Messages, again.Messages) {
		t.t.Errorf("%s: two reads of the same context differ", d.op)
	}
}

// pairsAreWhole checks that the vendor accepts the context: every result follows its call, and every call has its
// result.
func (t *conversation) pairsAreWhole(c *wire.Context) {
	t.t.Helper()
	if len(c.Messages) == 0 {
		return
	}
	if err := t.refused(c); err != nil {
		t.t.Errorf("the vendor refuses the context: %v\n%.2000s", err, textOf(c))
	}
	for _, m := range c.Messages {
		if !bytes.HasPrefix(m, []byte(`{"role":"system"`)) {
			return
		}
	}
	if c.Stats.Marker != nil {
		t.t.Error("the context has system messages only")
	}
}

// refused says why the vendor would refuse a request with the context. If the context ends with the agent's message, a
// message of the user is added.
func (t *conversation) refused(c *wire.Context) error {
	messages := slices.Clone(c.Messages)
	if role(messages[len(messages)-1]) == "assistant" {
		messages = append(messages, json.RawMessage(`{"role":"user","content":"next"}`))
	}
	body := map[string]any{"messages": messages}
	if t.format != transcript.Anthropic {
		return vendorserver.ValidateOpenAI(encode(body))
	}
	if c.System != nil {
		body["system"] = c.System
	}
	return vendorserver.ValidateAnthropic(withoutUnknownKey(encode(body)))
}

// unknownKey matches a key in a block of one case. It has to be kept, but no API accepts it.
var unknownKey = regexp.MustCompile(`,"x_unknown":\{[^{}]*\}`)

func withoutUnknownKey(body []byte) []byte { return unknownKey.ReplaceAll(body, nil) }

func role(native json.RawMessage) string { return messageOf(native).Role }

// lastMessageIsKept checks that the user's last message is in the context byte for byte, and that no message is in it
// more often than it was sent.
func (t *conversation) lastMessageIsKept(c *wire.Context) {
	t.t.Helper()
	wasSent, inContext, last := map[string]int{}, map[string]int{}, ""
	for _, m := range t.sent {
		wasSent[string(m.native)]++
		if m.genuine {
			last = string(m.native)
		}
	}
	for _, m := range c.Messages {
		inContext[string(m)]++
	}
	for native, n := range wasSent {
		if inContext[native] > n {
			t.t.Errorf("a message is %d times in the context and was sent %d times: %.200s", inContext[native], n,
				native)
		}
	}
	if last != "" && inContext[last] == 0 {
		t.t.Errorf("the user's last message is not in the context: %.200s", last)
	}
}

// systemIsFirst checks that the system prompt is first and unchanged.
func (t *conversation) systemIsFirst(c *wire.Context) {
	t.t.Helper()
	if !bytes.Equal(c.System, t.system) {
		t.t.Errorf("the system prompt is %s, want %s", c.System, t.system)
	}
	var want json.RawMessage
	for _, m := range t.sent {
		if role(m.native) == "system" {
			want = m.native
		}
	}
	for i, m := range c.Messages {
		if role(m) == "system" && (i > 0 || !bytes.Equal(m, want)) {
			t.t.Errorf("message %d of the context is a system message: %.200s", i, m)
		}
	}
	if want != nil && (len(c.Messages) == 0 || role(c.Messages[0]) != "system") {
		t.t.Error("the system message is not first")
	}
}

// transcriptIsUnchanged checks that the stored messages are those that were sent.
func (t *conversation) transcriptIsUnchanged() {
	t.t.Helper()
	stored := t.transcript()
	if len(stored) != len(t.sent) {
		t.t.Errorf("the transcript has %d messages, want %d", len(stored), len(t.sent))
		return
	}
	for i, m := range stored {
		if m.Seq != int64(i+1) || !bytes.Equal(m.Native, t.sent[i].native) || m.ID != t.sent[i].id {
			t.t.Errorf("message %d of the transcript is number %d, %.200s", i+1, m.Seq, m.Native)
		}
		if m.Genuine != t.sent[i].genuine {
			t.t.Errorf("message %d of the transcript is genuine: %v, want %v", i+1, m.Genuine, t.sent[i].genuine)
		}
	}
}

// failureLeavesNothing checks that a run which applied nothing left the context unchanged.
func (t *conversation) failureLeavesNothing(d done) {
	t.t.Helper()
	if d.before == nil || d.op == "undo" && d.res.status == 200 || d.run != nil &&
		d.run.Outcome == precis.OutcomeApplied {
		return
	}
	if d.run == nil && d.before.Stats.Version != d.after.Stats.Version {
		return // another run took effect in the meantime
	}
	if !equal(d.before.Messages, d.after.Messages) {
		t.t.Errorf("%s took no effect, but the context has changed:\n%.1500s\nbefore:\n%.1500s", d.op,
			textOf(d.after), textOf(d.before))
	}
}

// summaryIsOne checks that a context has one summary if a marker is active and none otherwise, that the summary is not
// empty, and that a digest says that no model wrote it.
func (t *conversation) summaryIsOne(c *wire.Context) {
	t.t.Helper()
	text := textOf(c)
	begins, ends := strings.Count(text, summaryBegin), strings.Count(text, summaryEnd)
	want := 0
	if m := c.Stats.Marker; m != nil && m.Messages > 0 { // a marker that covers nothing only cuts what is too large
		want = 1
	}
	if begins != want || ends != want {
		t.t.Errorf("the context has %d summaries with %d ends, want %d:\n%.2000s", begins, ends, want, text)
	}
	if want == 0 {
		return
	}
	if strings.TrimSpace(summaryOf(c)) == "" {
		t.t.Error("the summary is empty")
	}
	if says := strings.Contains(text, digestNotice); says != c.Stats.Marker.Digest {
		t.t.Errorf("the summary is a digest: %v; its text says so: %v", c.Stats.Marker.Digest, says)
	}
}

// accounts checks that every run has ended, and that every request to the vendor is in the usage ledger of its run.
func (t *conversation) accounts() {
	t.t.Helper()
	asked := map[string]int{}
	for _, r := range t.requests() {
		asked[r.Header.Get("X-Precis-Run")]++
	}
	for _, run := range t.allRuns() {
		t.t.Logf("%s: run by %s is %s (%s: %s), by %s, of %d tokens %d\n%s", t.id, run.Trigger.Kind, run.Outcome,
			run.ErrorKind, run.Reason, run.Summarizer, run.TokensBefore, run.TokensAfter, attempts(run))
		if run.Outcome == "" {
			t.t.Errorf("run %s has not ended", run.ID)
		}
		if run.Usage.Calls != asked[run.ID] && !t.how.restarts {
			t.t.Errorf("run %s has %d model calls in the usage ledger, want %d", run.ID, run.Usage.Calls, asked[run.ID])
		}
	}
}

// requestsAreValid checks every request against the rules of its API.
func (p *play) requestsAreValid() {
	p.t.Helper()
	for _, r := range p.requests() {
		options := vendorserver.ValidateOptions{
			Request: true, Version: r.Header.Get("Anthropic-Version"),
			Betas: r.Header.Get("Anthropic-Beta"),
		}
		validate := vendorserver.ValidateOpenAIRequest
		if r.Type == "anthropic" {
			validate = vendorserver.ValidateAnthropicRequest
		}
		if err := validate(withoutUnknownKey(r.Body), options); err != nil {
			p.t.Errorf("request %d is not valid: %v", r.N, err)
		}
		if r.MaxTokens < 1 {
			p.t.Errorf("request %d requests %d tokens", r.N, r.MaxTokens)
		}
	}
}

func equal(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// textOf returns all texts of a context, one a line.
func textOf(c *wire.Context) string {
	var b strings.Builder
	for _, m := range c.Messages {
		texts(&b, m)
	}
	return b.String()
}

// texts writes the strings of a JSON value, except roles and types.
func texts(b *strings.Builder, raw json.RawMessage) {
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // valid, as the whole is
		b.WriteString(s)
		b.WriteByte('\n')
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, item := range list {
			texts(b, item)
		}
	case '{':
		fields, _ := fieldsOf(raw)
		for _, f := range fields {
			if f.key != "role" && f.key != "type" {
				texts(b, f.value)
			}
		}
	}
}

// summaryOf returns the text of the context's summary, without the notices before it.
func summaryOf(c *wire.Context) string {
	_, rest, _ := strings.Cut(textOf(c), summaryBegin)
	inside, _, _ := strings.Cut(rest, summaryEnd)
	var said []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(inside), "\n\n") {
		ours := false
		for _, begin := range []string{"This session continues ", "The full transcript is kept: ", "["} {
			ours = ours || strings.HasPrefix(paragraph, begin)
		}
		if !ours || len(said) > 0 {
			said = append(said, paragraph)
		}
	}
	return strings.Join(said, "\n\n")
}
