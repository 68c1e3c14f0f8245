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
	// fails says that the case wants a compaction that no model brings about, and digest with which policy it is played
	// beside never: "" where the runs are automatic or over the limit, always where the digest would stay away.
	fails  bool
	digest pipeline.DigestPolicy
	// list replaces the list of summarizers: "self" alone, or "external" alone. "": see play.summarizers.
	list string
	// forms plays the case in each API's format; format is the only one in which it makes sense, "": the one that it is
	// written in.
	forms  bool
	format transcript.Format
	// restarts says that the case stops its worker, and so has a system of its own; a call may then be made twice.
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

// last is the context at the end.
func (t *talk) last() *wire.Context {
	t.t.Helper()
	if len(t.log) == 0 || t.log[len(t.log)-1].after == nil {
		t.t.Fatal("the play has no end")
	}
	return t.log[len(t.log)-1].after
}

// compactions are the runs that the case asked for and waited for, in order.
func (t *talk) compactions() []done { return t.ops("compact", "compact_full") }

// once checks that a context says each phrase once.
func (t *talk) once(c *wire.Context, phrases ...string) {
	t.t.Helper()
	text := textOf(c)
	for _, phrase := range phrases {
		if n := strings.Count(text, phrase); n != 1 {
			t.t.Errorf("%q stands %d times in %.3000s", phrase, n, text)
		}
	}
}

// never checks that a context says none of the phrases.
func (t *talk) never(c *wire.Context, phrases ...string) {
	t.t.Helper()
	text := textOf(c)
	for _, phrase := range phrases {
		if strings.Contains(text, phrase) {
			t.t.Errorf("%q stands in %.3000s", phrase, text)
		}
	}
}

// ordered checks that a context says the phrases in this order.
func (t *talk) ordered(c *wire.Context, phrases ...string) {
	t.t.Helper()
	text, at := textOf(c), 0
	for _, phrase := range phrases {
		n := strings.Index(text[at:], phrase)
		if n < 0 {
			t.t.Errorf("%q is not behind what comes before it in %.3000s", phrase, text)
			return
		}
		at += n + len(phrase)
	}
}

// summarized checks that the last compaction of the case was applied with a model's summary that says the phrase.
func (t *talk) summarized(phrase string) wire.Run {
	t.t.Helper()
	all := t.allRuns()
	if len(all) == 0 {
		t.t.Fatal("there was no compaction")
	}
	run := all[len(all)-1]
	t.bySummary(run, t.last(), phrase)
	return run
}

// bySummary checks that a run was applied with a model's summary, and that a context starts from that and has the
// phrase in it once.
func (t *talk) bySummary(run wire.Run, c *wire.Context, phrase string) {
	t.t.Helper()
	if run.Outcome != precis.OutcomeApplied || run.Digest {
		t.t.Fatalf("the run is %s (%s: %s), by %s\n%s", run.Outcome, run.ErrorKind, run.Reason, run.Summarizer,
			way(run))
	}
	if c.Stats.Marker == nil || c.Stats.Marker.Run != run.ID {
		t.t.Fatalf("the context does not start from run %s", run.ID)
	}
	if summary := summaryOf(c); strings.Count(summary, phrase) != 1 {
		t.t.Errorf("%q stands %d times in the summary %.2000s", phrase, strings.Count(summary, phrase), summary)
	}
}

// landed checks a run that no model wrote a summary for: the digest lands where the policy has one, flagged; elsewhere
// the run fails with the kind. It says whether the digest did.
func (t *talk) landed(d done, kinds ...pipeline.ErrorKind) bool {
	t.t.Helper()
	run := d.run
	needed := run.Trigger.Kind != pipeline.TriggerManual || run.Trigger.Used >= run.Trigger.Limit
	if t.policy == pipeline.DigestAlways || t.policy == "" && needed {
		if run.Outcome != precis.OutcomeApplied || !run.Digest || run.Summarizer != string(pipeline.SummarizerDigest) {
			t.t.Fatalf("the run is %s (%s: %s), by %s; the digest was to land\n%s", run.Outcome, run.ErrorKind,
				run.Reason, run.Summarizer, way(*run))
		}
		if c := d.after; c.Stats.Marker == nil || c.Stats.Marker.Run != run.ID || !c.Stats.Marker.Digest ||
			!strings.Contains(textOf(c), digestSays) {
			t.t.Errorf("the digest does not stand in the context, or does not say what it is")
		}
		return true
	}
	if run.Outcome != precis.OutcomeFailed || !slices.Contains(kinds, run.ErrorKind) || run.Marker != "" {
		t.t.Fatalf("the run is %s (%s: %s), and was to fail with %v\n%s", run.Outcome, run.ErrorKind, run.Reason, kinds,
			way(*run))
	}
	return false
}

// way tells a run's steps, for a failed test's output.
func way(run wire.Run) string {
	var b strings.Builder
	for _, s := range run.Steps {
		b.WriteString(strings.Join([]string{
			s.Stage, s.Rung, s.Summarizer, string(s.Outcome), string(s.ErrorKind),
			s.Message, "→", s.Next,
		}, " ") + "\n")
	}
	return b.String()
}

// askedFor checks how often the vendor was asked.
func (p *play) askedFor(n int) {
	p.t.Helper()
	if got := len(p.requests()); got != n {
		p.t.Errorf("the vendor was asked %d times, want %d", got, n)
	}
}

func (p *play) askedAtMost(n int) {
	p.t.Helper()
	if got := len(p.requests()); got > n {
		p.t.Errorf("the vendor was asked %d times, at most %d", got, n)
	}
}

// requestsWithin checks that each request fits into a window, by the vendor's count, with the answer that it asks for.
func (p *play) requestsWithin(window int) {
	p.t.Helper()
	for _, r := range p.requests() {
		if r.Tokens+r.MaxTokens > window {
			p.t.Errorf("request %d has %d tokens and asks for %d, the window is %d", r.N, r.Tokens, r.MaxTokens, window)
		}
	}
	if len(p.requests()) == 0 {
		p.t.Error("the vendor was not asked")
	}
}

// say appends a message of the user's: the agent can go on.
func (t *talk) say(text string) *wire.Context {
	t.t.Helper()
	t.append(step{native: json.RawMessage(`{"role":"user","content":` + quote(text) + `}`)})
	t.noted(done{op: "say"})
	return t.last()
}

// unchanged checks that a context is the conversation as it was sent.
func (t *talk) unchanged(c *wire.Context) {
	t.t.Helper()
	want := make([]json.RawMessage, len(t.sent))
	for i, m := range t.sent {
		want[i] = m.native
	}
	if !equal(c.Messages, want) {
		t.t.Errorf("the context is not the conversation as it came: %.2000s", textOf(c))
	}
}

// stands says whether a message of the conversation with this text stands in a context as it was sent.
func (t *talk) stands(c *wire.Context, text string) bool {
	for _, m := range t.sent {
		if strings.HasPrefix(messageOf(m.native).text(), text) {
			return slices.ContainsFunc(c.Messages, func(x json.RawMessage) bool { return bytes.Equal(x, m.native) })
		}
	}
	return false
}

func (t *talk) mustStand(c *wire.Context, list ...string) {
	t.t.Helper()
	for _, text := range list {
		if !t.stands(c, text) {
			t.t.Errorf("the message %q does not stand in the context as it was sent", text)
		}
	}
}

// scripted is the text of an answer of the case's script.
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

// text is what a message of the conversation says; negative numbers count from the last one, which is -1.
func (t *talk) text(n int) string {
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

// pinned is the first limit that the case pins.
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
	p.t.Fatal("the case pins nothing")
	return ""
}

// promptLines are the lines of the instructions by hand that are too long to occur by chance.
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
		t.Fatal("the prompt has no line to look for")
	}
	return out
}
