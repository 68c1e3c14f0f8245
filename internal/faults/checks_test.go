package faults

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"precis"
	"precis/internal/api/wire"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// how says how a case is played, and what is checked beside the invariants.
type how struct {
	// says is what is checked, in whole sentences.
	says  string
	check func(t *testing.T, p *play)
	// note says where this system decides otherwise than the case expects, "" for nowhere.
	note string
	// fails says that no model writes a summary in the case. It is played with the digest policy never, and with
	// digest: "" (the default) if the runs are automatic or over the limit, always if the default would not apply a
	// digest.
	fails  bool
	digest pipeline.DigestPolicy
	// list replaces the list of summarizers: "self" or "external" alone, "" for the list of play.summarizers.
	list string
	// forms plays the case in the format of each API. format is the only one in which it makes sense, "" for the
	// format of its messages.
	forms  bool
	format transcript.Format
	// restarts says that the case stops its worker. It then has a system of its own, and a model call may be repeated.
	restarts bool
}

// checks are those of all checks_*_test.go, by the name of the case.
var checks = gathered(structureCases, loopCases, answerCases, overflowCases, usageCases, fidelityCases, durabilityCases,
	undoCases, storageCases, emptyCases)

func gathered(groups ...map[string]how) map[string]how {
	all := map[string]how{}
	for _, group := range groups {
		for id, h := range group {
			if _, twice := all[id]; twice {
				panic("case " + id + " is in two groups")
			}
			all[id] = h
		}
	}
	return all
}

// last is the context at the end of the play.
func (t *conversation) last() *wire.Context {
	t.t.Helper()
	if len(t.log) == 0 || t.log[len(t.log)-1].after == nil {
		t.t.Fatal("the play has not ended")
	}
	return t.log[len(t.log)-1].after
}

// compactions are the manual compactions that were waited for, in order.
func (t *conversation) compactions() []done { return t.ops("compact", "compact_full") }

// once checks that a context contains each phrase once.
func (t *conversation) once(c *wire.Context, phrases ...string) {
	t.t.Helper()
	text := textOf(c)
	for _, phrase := range phrases {
		if n := strings.Count(text, phrase); n != 1 {
			t.t.Errorf("%q is %d times in the context, want once:\n%.3000s", phrase, n, text)
		}
	}
}

// never checks that a context contains none of the phrases.
func (t *conversation) never(c *wire.Context, phrases ...string) {
	t.t.Helper()
	text := textOf(c)
	for _, phrase := range phrases {
		if strings.Contains(text, phrase) {
			t.t.Errorf("%q is in the context:\n%.3000s", phrase, text)
		}
	}
}

// ordered checks that a context contains the phrases in this order.
func (t *conversation) ordered(c *wire.Context, phrases ...string) {
	t.t.Helper()
	text, at := textOf(c), 0
	for _, phrase := range phrases {
		n := strings.Index(text[at:], phrase)
		if n < 0 {
			t.t.Errorf("%q does not follow the phrase before it:\n%.3000s", phrase, text)
			return
		}
		at += n + len(phrase)
	}
}

// summarized checks that the last run was applied with a model's summary that contains the phrase.
func (t *conversation) summarized(phrase string) wire.Run {
	t.t.Helper()
	all := t.allRuns()
	if len(all) == 0 {
		t.t.Fatal("there was no compaction")
	}
	run := all[len(all)-1]
	t.bySummary(run, t.last(), phrase)
	return run
}

// bySummary checks that a run was applied with a model's summary, and that a context starts with a summary which
// contains the phrase once.
func (t *conversation) bySummary(run wire.Run, c *wire.Context, phrase string) {
	t.t.Helper()
	if run.Outcome != precis.OutcomeApplied || run.Digest {
		t.t.Fatalf("the run is %s (%s: %s), by %s\n%s", run.Outcome, run.ErrorKind, run.Reason, run.Summarizer,
			attempts(run))
	}
	if c.Stats.Marker == nil || c.Stats.Marker.Run != run.ID {
		t.t.Fatalf("the context does not start from run %s", run.ID)
	}
	if summary := summaryOf(c); strings.Count(summary, phrase) != 1 {
		t.t.Errorf("%q is %d times in the summary %.2000s", phrase, strings.Count(summary, phrase), summary)
	}
}

// failedOrDigest checks a run for which no model wrote a summary: a digest was applied if the policy allows one, else
// the run failed with one of the kinds. It reports whether a digest was applied.
func (t *conversation) failedOrDigest(d done, kinds ...pipeline.ErrorKind) bool {
	t.t.Helper()
	run := d.run
	needed := run.Trigger.Kind != pipeline.TriggerManual || run.Trigger.Used >= run.Trigger.Limit
	if t.policy == pipeline.DigestAlways || t.policy == "" && needed {
		if run.Outcome != precis.OutcomeApplied || !run.Digest || run.Summarizer != string(pipeline.SummarizerDigest) {
			t.t.Fatalf("the run is %s (%s: %s), by %s; want a digest\n%s", run.Outcome, run.ErrorKind,
				run.Reason, run.Summarizer, attempts(*run))
		}
		if c := d.after; c.Stats.Marker == nil || c.Stats.Marker.Run != run.ID || !c.Stats.Marker.Digest ||
			!strings.Contains(textOf(c), digestNotice) {
			t.t.Errorf("the context has no digest, or the digest does not say that no model wrote it")
		}
		return true
	}
	if run.Outcome != precis.OutcomeFailed || !slices.Contains(kinds, run.ErrorKind) || run.Marker != "" {
		t.t.Fatalf("the run is %s (%s: %s), want a failure with %v\n%s", run.Outcome, run.ErrorKind, run.Reason, kinds,
			attempts(*run))
	}
	return false
}

// attempts lists the attempts of a run, for the output of a failed test.
func attempts(run wire.Run) string {
	var b strings.Builder
	for _, s := range run.Steps {
		b.WriteString(strings.Join([]string{
			s.Stage, s.Rung, s.Summarizer, string(s.Outcome), string(s.ErrorKind),
			s.Message, "→", s.Next,
		}, " ") + "\n")
	}
	return b.String()
}

// modelCalls checks the number of requests to the vendor.
func (p *play) modelCalls(n int) {
	p.t.Helper()
	if got := len(p.requests()); got != n {
		p.t.Errorf("%d model calls, want %d", got, n)
	}
}

func (p *play) modelCallsAtMost(n int) {
	p.t.Helper()
	if got := len(p.requests()); got > n {
		p.t.Errorf("%d model calls, want at most %d", got, n)
	}
}

// requestsWithin checks that each request and the requested output fit into a window, by the vendor's count.
func (p *play) requestsWithin(window int) {
	p.t.Helper()
	for _, r := range p.requests() {
		if r.Tokens+r.MaxTokens > window {
			p.t.Errorf("request %d has %d tokens and requests %d, the window is %d", r.N, r.Tokens, r.MaxTokens, window)
		}
	}
	if len(p.requests()) == 0 {
		p.t.Error("no model was called")
	}
}

// appendUser appends a message of the user and returns the context.
func (t *conversation) appendUser(text string) *wire.Context {
	t.t.Helper()
	t.append(step{native: json.RawMessage(`{"role":"user","content":` + quote(text) + `}`)})
	t.record(done{op: "say"})
	return t.last()
}

// unchanged checks that a context is the messages as they were sent.
func (t *conversation) unchanged(c *wire.Context) {
	t.t.Helper()
	want := make([]json.RawMessage, len(t.sent))
	for i, m := range t.sent {
		want[i] = m.native
	}
	if !equal(c.Messages, want) {
		t.t.Errorf("the context is not the messages as they were sent: %.2000s", textOf(c))
	}
}

// contains reports whether a context contains the message that begins with this text, byte for byte.
func (t *conversation) contains(c *wire.Context, text string) bool {
	for _, m := range t.sent {
		if strings.HasPrefix(messageOf(m.native).text(), text) {
			return slices.ContainsFunc(c.Messages, func(x json.RawMessage) bool { return bytes.Equal(x, m.native) })
		}
	}
	return false
}

func (t *conversation) mustContain(c *wire.Context, list ...string) {
	t.t.Helper()
	for _, text := range list {
		if !t.contains(c, text) {
			t.t.Errorf("the message %q is not in the context as it was sent", text)
		}
	}
}

// scripted returns the text of an answer of the script.
func (p *play) scripted(n int) string {
	p.t.Helper()
	script, err := scriptOf(p.fault, p.variant)
	if err != nil || n >= len(script.Answers) {
		p.t.Fatalf("the script has no answer %d (%v)", n, err)
	}
	if script.Answers[n].Text == "" {
		p.t.Fatalf("answer %d of the script has no text", n)
	}
	return script.Answers[n].Text
}

// text returns the text of a message. Negative numbers count from the last one, which is -1.
func (t *conversation) text(n int) string {
	t.t.Helper()
	if n < 0 {
		n += len(t.sent)
	}
	text := messageOf(t.sent[n].native).text()
	if text == "" {
		t.t.Fatalf("message %d has no text", n)
	}
	return text
}

// pinned returns the first limit that the case pins.
func (p *play) pinned() string {
	p.t.Helper()
	steps, err := stepsOf(p.fault.Messages)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range steps {
		if len(s.Constraints) > 0 {
			return s.Constraints[0]
		}
	}
	p.t.Fatal("the case has no pins")
	return ""
}

// promptLines are the lines of the prompt for a manual compaction that are too long to occur by chance.
func promptLines(t *testing.T) []string {
	t.Helper()
	prompt, err := pipeline.ChoosePrompt("", true, pipeline.ModeExplicit, "")
	if err != nil {
		t.Fatal(err)
	}
	const long = 60 // chars
	var out []string
	for line := range strings.Lines(prompt.System + "\n" + prompt.Text) {
		if line = strings.TrimSpace(line); pipeline.Chars(line) >= long {
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		t.Fatal("the prompt has no long line")
	}
	return out
}
