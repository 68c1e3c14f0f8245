package faults

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"precis/internal/contract"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// playTimeout is how long a play waits for an event.
const playTimeout = 90 * time.Second

// pollInterval is the time between two checks for it.
const pollInterval = 100 * time.Millisecond

// play is one case being played: in one format, with one of its variants and one digest policy.
type play struct {
	t       *testing.T
	sys     *system
	vendor  *vendor
	fault   fault
	how     how
	variant int
	format  transcript.Format
	// policy is the digest policy, "" for the default.
	policy pipeline.DigestPolicy

	mu            sync.Mutex
	conversations map[string]*conversation
}

// name distinguishes the plays of a case.
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

// newVendor makes the scripted vendor of the play.
func (p *play) newVendor(t *testing.T, number int) *vendor {
	t.Helper()
	script, err := scriptOf(p.fault, p.variant)
	if err != nil {
		t.Fatalf("%s: %v", p.fault.Name, err)
	}
	v := &vendor{
		name: fmt.Sprintf("v%d", number), typ: contract.ProtocolOpenAI,
		native: p.fault.Settings.Mode == "beta",
	}
	if p.format == transcript.Anthropic {
		v.typ = contract.ProtocolAnthropic
	}
	script.Lenient = true // a case may hold what no vendor accepts; requestsAreValid checks every request instead
	if p.overlaps() {
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

// overlaps reports whether the case does something while a summary is written. The delayed answer is then held until
// the case waits for it, so that the order does not depend on the speed of the machine.
func (p *play) overlaps() bool {
	steps, err := stepsOf(p.fault.Messages)
	if err != nil {
		panic(err) // a case is checked before it is played
	}
	return slices.ContainsFunc(steps, func(s step) bool { return s.Op == "request_compaction" })
}

// settings are those of the case, in the form of the API.
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

// summarizers is the list of the case: the agent's own model and then another one, both answered by the case's one
// script. Only the other one is listed if it has a window of its own, or if the case is about external summarizers.
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
	p.conversations = map[string]*conversation{}
	main := p.conversation("", "")
	main.steps(p.fault.Messages)
	for _, t := range p.conversations {
		t.finish()
	}
	p.requestsAreValid()
}

// tenant names a tenant of the play.
func (p *play) tenant(number int) string { return fmt.Sprintf("%s-%d", p.vendor.name, number) }

// conversation returns a conversation of the play by its name in the case, and creates it if it is new.
func (p *play) conversation(name, key string) *conversation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.conversations[name]; t != nil {
		return t
	}
	for _, t := range p.conversations { // all conversations belong to one tenant, unless a key is given
		if key == "" {
			key = t.key
		}
	}
	c := caller{url: p.sys.url, key: key}
	if key == "" {
		c = newCaller(p.t, p.sys, p.tenant(0))
	}
	t := &conversation{play: p, caller: c, id: orText(name, "main")}
	p.conversations[name] = t
	t.create()
	return t
}

// requests are all requests to the vendor.
func (p *play) requests() []vendorserver.Request { return p.vendor.Requests() }

// main is the conversation of a case that has only one.
func (p *play) main() *conversation { return p.conversations[""] }
