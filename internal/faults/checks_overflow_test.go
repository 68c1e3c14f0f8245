package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"precis/internal/service"
	"precis/internal/store"
	"precis/pipeline"
)

// overflowCases: histories larger than who is to summarize them.
var overflowCases = map[string]how{
	"B18": {
		says: "a history many times the summarizer's window is cut before the first request: none is larger, and " +
			"the summary is applied",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustStand(m.last(), "LAST")
			p.requestsWithin(32_000)
		},
	},
	"B19": {
		says: "the output that is asked for is within the model's bounds, and fits beside the input",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustStand(m.last(), "LAST")
			p.requestsWithin(8000)
			for _, r := range p.requests() {
				if r.MaxTokens < 1 || r.MaxTokens > 4096 {
					t.Errorf("request %d asks for %d tokens", r.N, r.MaxTokens)
				}
			}
		},
	},
	"B26": {
		says: "an image counts by its size in pixels and not by its letters: nothing is compacted, and it comes " +
			"back byte for byte",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.unchanged(m.last())
			p.askedFor(0)
			if n := m.conversation().State.UsedTokens; n >= 10_000 {
				t.Errorf("it counts %d tokens", n)
			}
		},
	},
	"B42": {
		says: "an overflow is known in all of its spellings: the second request is smaller, and its answer is the " +
			"summary",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustStand(m.last(), "LAST")
			p.askedAtMost(3)
			r := p.requests()
			if len(r) < 2 || r[1].Tokens >= r[0].Tokens && r[1].Model == r[0].Model {
				t.Errorf("%d requests, the second is not smaller than the first", len(r))
			}
			if steps := way(m.allRuns()[0]); !strings.Contains(steps, string(pipeline.InputTokensExceeded)) &&
				!strings.Contains(steps, string(pipeline.InputTooLarge)) {
				t.Errorf("the record does not say that the input was too large:\n%s", steps)
			}
		},
	},
	"B43": {
		says: "the room for the agent's answer lowers the limit, and a compaction is started",
		check: func(t *testing.T, p *play) {
			m := p.main()
			all := m.allRuns()
			if len(all) != 1 || all[0].Trigger.Kind != pipeline.TriggerTokens || all[0].Trigger.Limit != 6000 ||
				all[0].Trigger.Used != 6510 {
				t.Errorf("the runs are %+v", all)
			}
			if d := m.conversation().State.Trigger; d.Limit != 6000 {
				t.Errorf("the limit is %d", d.Limit)
			}
		},
	},
	"B85": {
		says: "no kind of content can make a request too large, and what the user said in few words is whole in it",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustStand(m.last(), "LAST")
			p.requestsWithin(16_000)
			if !strings.Contains(p.requests()[0].Text, "SMALL-ASK") {
				t.Error("the user's small request is not in the first request")
			}
		},
	},
	"B86": {
		says:  "neither the agent's errors nor the summarizer's become messages, and no error is asked about for ever",
		fails: true,
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.never(m.last(), p.failures()...)
			if n := len(m.transcript()); n != 3 {
				t.Errorf("the transcript has %d messages", n)
			}
			// Two summarizers, and the breaker's three failures.
			p.askedAtMost(6)
			all := m.allRuns()
			if len(all) == 0 || all[0].Trigger.Kind != pipeline.TriggerOverflow {
				t.Fatalf("the runs are %+v", all)
			}
			want := []store.Outcome{store.OutcomeFailed}
			if p.policy != pipeline.DigestNever { // the digest lands once; another one in its place would bring nothing
				want = []store.Outcome{store.OutcomeApplied, store.OutcomeSkipped}
			}
			var got []store.Outcome
			for _, run := range all {
				got = append(got, run.Outcome)
				if run.Outcome == store.OutcomeApplied && !run.Digest {
					t.Errorf("run %s was applied by %s", run.ID, run.Summarizer)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the runs end %v, want %v", got, want)
			}
			// What holds further runs back is told with each report that fires and starts nothing.
			var end service.Appended
			ends := m.ops("end_turn")
			if err := json.Unmarshal(ends[len(ends)-1].res.body, &end); err != nil {
				t.Fatal(err)
			}
			if end.Run != nil || end.Trigger.Hold == "" {
				t.Errorf("the last report started %v, held because of %q", end.Run, end.Trigger.Hold)
			}
		},
	},
	"B93": {
		forms: true,
		says: "tool noise that is dropped is gone: one request holds what the user and the agent said, and " +
			"nothing of the tools",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustStand(m.last(), "LAST")
			p.askedFor(1)
			text := p.requests()[0].Text
			for i := range 8 {
				for _, said := range []string{"USER-", "NARRATION-", "CONCLUSION-"} {
					if !strings.Contains(text, fmt.Sprint(said, i)) {
						t.Errorf("%s%d is not in the request", said, i)
					}
				}
			}
			for _, noise := range []string{"TOOLTEXT", "ARGS-"} {
				if strings.Contains(text, noise) {
					t.Errorf("%s came back", noise)
				}
			}
		},
	},
}

// usageCases: figures, estimates and what they start.
var usageCases = map[string]how{
	"B08": {
		says: "after a compaction the figure from before it counts no more: no second one starts, and the next " +
			"real figure stands",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.askedFor(1)
			after := m.ops("wait_compaction")[0].state.State
			if after.UsedTokens >= 3000 || !after.Estimated {
				t.Errorf("after it %d tokens are used, estimated: %v", after.UsedTokens, after.Estimated)
			}
			if end := m.conversation().State; end.UsedTokens != 1205 || end.Estimated {
				t.Errorf("at the end %d tokens are used, estimated: %v", end.UsedTokens, end.Estimated)
			}
			m.once(m.last(), "SUM1")
		},
	},
	"B11": {
		says: "usage is the last request's and never a sum",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.askedFor(0)
			m.unchanged(m.last())
			if s := m.conversation().State; s.UsedTokens != 2100 || s.Estimated || len(m.allRuns()) != 0 {
				t.Errorf("%d tokens are used, estimated: %v, %d runs", s.UsedTokens, s.Estimated, len(m.allRuns()))
			}
		},
	},
	"B44": {
		says: "with automatic compaction off nothing starts by itself, an overflow that is reported neither; by " +
			"hand it works",
		check: func(t *testing.T, p *play) {
			m := p.main()
			idle := m.ops("wait_idle")[0]
			if idle.requests != 0 || !idle.state.State.Trigger.OverLimit || idle.state.State.Run != "" {
				t.Errorf("before: %d requests, over the limit: %v", idle.requests, idle.state.State.Trigger.OverLimit)
			}
			m.summarized("MANUAL")
			p.askedFor(1)
			if n := len(m.allRuns()); n != 1 {
				t.Errorf("%d runs", n)
			}
		},
	},
	"B45c": {
		says: "what the vendor had in its cache is counted once",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.askedFor(0)
			if s := m.ops("state")[0].state.State; s.UsedTokens != 60_100 || s.Estimated {
				t.Errorf("%d tokens are used, estimated: %v", s.UsedTokens, s.Estimated)
			}
		},
	},
	"B83": {
		says: "wide scripts count as what they are, in the figure and in what is sent to the summarizer",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("要約")
			m.mustStand(m.last(), "続けて")
			if s := m.ops("state")[0].state.State; s.UsedTokens < 18_000 || !s.Estimated {
				t.Errorf("%d tokens are used, estimated: %v", s.UsedTokens, s.Estimated)
			}
			for _, r := range p.requests() {
				if r.Tokens > 16_000 {
					t.Errorf("request %d has %d tokens", r.N, r.Tokens)
				}
			}
		},
	},
	"B107": {
		says: "a figure of zero is none: the estimate stands, and says so",
		check: func(t *testing.T, p *play) {
			p.askedFor(0)
			if s := p.main().ops("state")[0].state.State; s.UsedTokens < 14_000 || !s.Estimated ||
				!s.Trigger.OverLimit {
				t.Errorf("%d tokens are used, estimated: %v, over the limit: %v", s.UsedTokens, s.Estimated,
					s.Trigger.OverLimit)
			}
		},
	},
	"B109": {
		says: "reaching the limit is enough, one below is not, and a configured limit goes before the window's share",
		check: func(t *testing.T, p *play) {
			var got []string
			for _, d := range p.main().ops("state") {
				s := d.state.State
				got = append(got, fmt.Sprintf("%d of %d %v", s.UsedTokens, s.Trigger.Limit, s.Trigger.OverLimit))
			}
			if all, want := strings.Join(got, "; "),
				"8999 of 9000 false; 9000 of 9000 true; 9000 of 5000 true"; all != want {
				t.Errorf("the states are %s; want %s", all, want)
			}
			p.askedFor(0)
		},
	},
	"B111": {
		says: "an output limit that is not known reserves nothing: small turns in a small window start no compaction",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.askedFor(0)
			if n := len(m.allRuns()); n != 0 {
				t.Errorf("%d runs", n)
			}
			if limit := m.ops("state")[0].state.State.Trigger.Limit; limit < 8000 || limit > 14_745 {
				t.Errorf("the limit is %d", limit)
			}
		},
	},
	"B112": {
		says: "a figure of a prompt that the vendor cut in silence does not hide that the context is too large, " +
			"and is told to be implausible",
		check: func(t *testing.T, p *play) {
			p.askedFor(0)
			s := p.main().ops("state")[0].state.State
			if s.UsedTokens <= 29_491 || !s.Trigger.OverLimit || !s.Trigger.Implausible {
				t.Errorf("%d tokens are used, over the limit: %v, implausible: %v", s.UsedTokens, s.Trigger.OverLimit,
					s.Trigger.Implausible)
			}
		},
	},
}

// failures are the words of the errors in the case, the agent's own and the summarizer's.
func (p *play) failures() []string {
	p.t.Helper()
	var out []string
	var walk func(list []json.RawMessage)
	walk = func(list []json.RawMessage) {
		steps, err := stepsOf(list)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, s := range steps {
			if s.Error != nil {
				out = append(out, s.Error.Message)
			}
			walk(s.Messages)
		}
	}
	walk(p.fault.Messages)
	script, err := scriptOf(p.fault, p.variant)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range script.Answers {
		if a.Error != nil {
			out = append(out, a.Error.Message)
		}
	}
	if len(out) < 2 || slices.Contains(out, "") {
		p.t.Fatalf("the case's errors say %q", out)
	}
	return out
}
