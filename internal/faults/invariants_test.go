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

// The words by which a client knows a summary, and a digest, in a context.
const (
	summaryBegin = "<conversation_summary>"
	summaryEnd   = "</conversation_summary>"
	digestSays   = "No model wrote this summary"
)

// invariants are what the head of the collection asks of every case, after every operation that may touch a context.
func (t *talk) invariants(d done) {
	t.t.Helper()
	now := d.after
	t.pairsAreWhole(now)
	t.lastWordStands(now)
	t.systemIsFirst(now)
	t.transcriptIsUnchanged()
	t.failureLeavesNothing(d)
	t.summaryIsOne(now)
	if again := t.context(); again.Stats.HeadSeq == now.Stats.HeadSeq && again.Stats.Version == now.Stats.Version &&
		!equal(now.Messages, again.Messages) {
		t.t.Errorf("%s: the context is read twice, and differs", d.op)
	}
}

// pairsAreWhole is the first of the collection: the vendor takes the context, so every result follows its call and
// every call has its result.
func (t *talk) pairsAreWhole(c *wire.Context) {
	t.t.Helper()
	if len(c.Messages) == 0 {
		return
	}
	if err := t.refused(c); err != nil {
		t.t.Errorf("the vendor does not take the context: %v\n%.2000s", err, textOf(c))
	}
	for _, m := range c.Messages {
		if !bytes.HasPrefix(m, []byte(`{"role":"system"`)) {
			return
		}
	}
	if c.Stats.Marker != nil {
		t.t.Error("nothing but system messages is left of the context")
	}
}

// refused puts a context into a request and says why the vendor would not take it, with the user's next message behind
// it where the agent spoke last.
func (t *talk) refused(c *wire.Context) error {
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
	return vendorserver.ValidateAnthropic(withoutNobodysKey(encode(body)))
}

// nobodysKey is what B28 has in a block: it has to be kept, and no API would take it.
var nobodysKey = regexp.MustCompile(`,"x_unknown":\{[^{}]*\}`)

func withoutNobodysKey(body []byte) []byte { return nobodysKey.ReplaceAll(body, nil) }

func role(native json.RawMessage) string { return messageOf(native).Role }

// lastWordStands is the second: the last message of the user's is there, byte for byte. No message stands more often
// than it was sent.
func (t *talk) lastWordStands(c *wire.Context) {
	t.t.Helper()
	said, stands, last := map[string]int{}, map[string]int{}, ""
	for _, m := range t.sent {
		said[string(m.native)]++
		if m.genuine {
			last = string(m.native)
		}
	}
	for _, m := range c.Messages {
		stands[string(m)]++
	}
	for native, n := range said {
		if stands[native] > n {
			t.t.Errorf("a message stands %d times in the context, and was sent %d times: %.200s", stands[native], n,
				native)
		}
	}
	if last != "" && stands[last] == 0 {
		t.t.Errorf("the user's last message does not stand in the context: %.200s", last)
	}
}

// systemIsFirst is the third: the system prompt is as it was given, and in front.
func (t *talk) systemIsFirst(c *wire.Context) {
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

// transcriptIsUnchanged is the fourth: what is stored is what was sent.
func (t *talk) transcriptIsUnchanged() {
	t.t.Helper()
	stored := t.transcript()
	if len(stored) != len(t.sent) {
		t.t.Errorf("the transcript has %d messages of %d", len(stored), len(t.sent))
		return
	}
	for i, m := range stored {
		if m.Seq != int64(i+1) || !bytes.Equal(m.Native, t.sent[i].native) || m.ID != t.sent[i].id {
			t.t.Errorf("message %d of the transcript is number %d, %.200s", i+1, m.Seq, m.Native)
		}
		if m.Genuine != t.sent[i].genuine {
			t.t.Errorf("message %d of the transcript is the user's: %v", i+1, m.Genuine)
		}
	}
}

// failureLeavesNothing is the fifth: after a run that applied nothing the context is what it was.
func (t *talk) failureLeavesNothing(d done) {
	t.t.Helper()
	if d.before == nil || d.op == "undo" && d.res.status == 200 || d.run != nil &&
		d.run.Outcome == precis.OutcomeApplied {
		return
	}
	if d.run == nil && d.before.Stats.Version != d.after.Stats.Version {
		return // something else took effect meanwhile
	}
	if !equal(d.before.Messages, d.after.Messages) {
		t.t.Errorf("%s took no effect, and the context is another one:\n%.1500s\nbefore:\n%.1500s", d.op,
			textOf(d.after), textOf(d.before))
	}
}

// summaryIsOne: a context has one summary when a marker counts, and none otherwise; none is empty, and one that no
// model wrote says so.
func (t *talk) summaryIsOne(c *wire.Context) {
	t.t.Helper()
	text := textOf(c)
	begins, ends := strings.Count(text, summaryBegin), strings.Count(text, summaryEnd)
	want := 0
	if m := c.Stats.Marker; m != nil && m.Messages > 0 { // one that covers nothing only cut what was too large
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
	if says := strings.Contains(text, digestSays); says != c.Stats.Marker.Digest {
		t.t.Errorf("it is a digest: %v; it says so: %v", c.Stats.Marker.Digest, says)
	}
}

// accounts checks the books at the end: every run has ended, and every request to the vendor is booked on the run that
// it was made for.
func (t *talk) accounts() {
	t.t.Helper()
	asked := map[string]int{}
	for _, r := range t.requests() {
		asked[r.Header.Get("X-Precis-Run")]++
	}
	for _, run := range t.allRuns() {
		t.t.Logf("%s: run by %s is %s (%s: %s), by %s, of %d tokens %d\n%s", t.id, run.Trigger.Kind, run.Outcome,
			run.ErrorKind, run.Reason, run.Summarizer, run.TokensBefore, run.TokensAfter, way(run))
		if run.Outcome == "" {
			t.t.Errorf("run %s has not ended", run.ID)
		}
		if run.Usage.Calls != asked[run.ID] && !t.how.restarts {
			t.t.Errorf("run %s has booked %d calls of %d", run.ID, run.Usage.Calls, asked[run.ID])
		}
	}
}

// requestsAreValid: no request breaks the rules of its API, whatever is stored.
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
		if err := validate(withoutNobodysKey(r.Body), options); err != nil {
			p.t.Errorf("request %d is not valid: %v", r.N, err)
		}
		if r.MaxTokens < 1 {
			p.t.Errorf("request %d asks for %d tokens", r.N, r.MaxTokens)
		}
	}
}

func equal(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// textOf is everything that a context says, each text on a line of its own.
func textOf(c *wire.Context) string {
	var b strings.Builder
	for _, m := range c.Messages {
		texts(&b, m)
	}
	return b.String()
}

// texts writes the strings of a JSON value, the names of roles and types left out.
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

// summaryOf is what the context's summary says, without what stands in front of it in its element.
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
