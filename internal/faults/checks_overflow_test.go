package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"precis"
	"precis/internal/api/wire"
	"precis/pipeline"
)

// overflowCases are about histories larger than the summarizer's window.
var overflowCases = map[string]how{
	"a history many times the summarizer's window": {
		says: "The input is cut before the first request: no request exceeds the window, and the summary is " +
			"applied.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			p.requestsWithin(32_000)
		},
	},
	"a summarizer with a small output limit": {
		says: "The requested output is within the model's limit and fits beside the input.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			p.requestsWithin(8000)
			for _, r := range p.requests() {
				if r.MaxTokens < 1 || r.MaxTokens > 4096 {
					t.Errorf("request %d requests %d tokens", r.N, r.MaxTokens)
				}
			}
		},
	},
	"one large image in a new conversation": {
		says: "The image counts by its size in pixels, not by its bytes: nothing is compacted, and it comes back " +
			"byte for byte.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.unchanged(m.last())
			p.modelCalls(0)
			if n := m.read().State.UsedTokens; n >= 10_000 {
				t.Errorf("it counts %d tokens", n)
			}
		},
	},
	"the many spellings of an overflow": {
		says: "Each one is recognized: the second request is smaller, and its answer is the summary.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			p.modelCallsAtMost(3)
			r := p.requests()
			if len(r) < 2 || r[1].Tokens >= r[0].Tokens && r[1].Model == r[0].Model {
				t.Errorf("%d requests, the second is not smaller than the first", len(r))
			}
			if steps := attempts(m.allRuns()[0]); !strings.Contains(steps, string(pipeline.InputTokensExceeded)) &&
				!strings.Contains(steps, string(pipeline.InputTooLarge)) {
				t.Errorf("the record does not say that the input was too large:\n%s", steps)
			}
		},
	},
	"room for the agent's answer": {
		says: "The output reserve lowers the limit, and a compaction starts.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			all := m.allRuns()
			if len(all) != 1 || all[0].Trigger.Kind != pipeline.TriggerTokens || all[0].Trigger.Limit != 6000 ||
				all[0].Trigger.Used != 6510 {
				t.Errorf("the runs are %+v", all)
			}
			if d := m.read().State.Trigger; d.Limit != 6000 {
				t.Errorf("the limit is %d", d.Limit)
			}
		},
	},
	"large content of every kind": {
		says: "No kind of content makes a request too large, and the user's short messages are whole in it.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			p.requestsWithin(16_000)
			if !strings.Contains(p.requests()[0].Text, "SMALL-ASK") {
				t.Error("the user's small request is not in the first request")
			}
		},
	},
	"errors that are reported again and again": {
		says: "Error texts, of the agent's model or of the summarizer, never become messages. The number of model " +
			"calls is bounded.",
		fails: true,
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.never(m.last(), p.failures()...)
			if n := len(m.transcript()); n != 3 {
				t.Errorf("the transcript has %d messages", n)
			}
			// Two summarizers, and three failures until the breaker opens.
			p.modelCallsAtMost(6)
			all := m.allRuns()
			if len(all) == 0 || all[0].Trigger.Kind != pipeline.TriggerOverflow {
				t.Fatalf("the runs are %+v", all)
			}
			want := []precis.Outcome{precis.OutcomeFailed}
			if p.policy != pipeline.DigestNever { // a second digest would change nothing
				want = []precis.Outcome{precis.OutcomeApplied, precis.OutcomeSkipped}
			}
			var got []precis.Outcome
			for _, run := range all {
				got = append(got, run.Outcome)
				if run.Outcome == precis.OutcomeApplied && !run.Digest {
					t.Errorf("run %s was applied by %s", run.ID, run.Summarizer)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the runs end %v, want %v", got, want)
			}
			// A report that fires the trigger but starts no run says what prevents the run.
			var end wire.Appended
			ends := m.ops("end_reply")
			if err := json.Unmarshal(ends[len(ends)-1].res.body, &end); err != nil {
				t.Fatal(err)
			}
			if end.Run != nil || end.Trigger.Hold == "" {
				t.Errorf("the last report started %v, held because of %q", end.Run, end.Trigger.Hold)
			}
		},
	},
	"tool messages that are dropped": {
		forms: true,
		says:  "One request has what the user and the agent said and nothing of the tools.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			p.modelCalls(1)
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
					t.Errorf("%s is in the request", noise)
				}
			}
		},
	},
}

// usageCases are about usage figures and estimates.
var usageCases = map[string]how{
	"a usage figure from before a compaction": {
		says: "The figure no longer counts after the compaction: no second one starts, and the next figure of the " +
			"vendor is used.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCalls(1)
			after := m.ops("wait_compaction")[0].state.State
			if after.UsedTokens >= 3000 || !after.Estimated {
				t.Errorf("after it %d tokens are used, estimated: %v", after.UsedTokens, after.Estimated)
			}
			if end := m.read().State; end.UsedTokens != 1205 || end.Estimated {
				t.Errorf("at the end %d tokens are used, estimated: %v", end.UsedTokens, end.Estimated)
			}
			m.once(m.last(), "SUM1")
		},
	},
	"usage reported by every request": {
		says: "The usage is that of the last request, not the sum of all.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCalls(0)
			m.unchanged(m.last())
			if s := m.read().State; s.UsedTokens != 2100 || s.Estimated || len(m.allRuns()) != 0 {
				t.Errorf("%d tokens are used, estimated: %v, %d runs", s.UsedTokens, s.Estimated, len(m.allRuns()))
			}
		},
	},
	"automatic compaction is off": {
		says: "Nothing starts automatically, not even after a reported overflow. A manual compaction works.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			idle := m.ops("wait_idle")[0]
			if idle.requests != 0 || !idle.state.State.Trigger.OverLimit || idle.state.State.Run != "" {
				t.Errorf("before: %d requests, over the limit: %v", idle.requests, idle.state.State.Trigger.OverLimit)
			}
			m.summarized("MANUAL")
			p.modelCalls(1)
			if n := len(m.allRuns()); n != 1 {
				t.Errorf("%d runs", n)
			}
		},
	},
	"a figure that includes cached tokens": {
		says: "Cached tokens are counted once.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCalls(0)
			if s := m.ops("read_state")[0].state.State; s.UsedTokens != 60_100 || s.Estimated {
				t.Errorf("%d tokens are used, estimated: %v", s.UsedTokens, s.Estimated)
			}
		},
	},
	"Chinese and Japanese text": {
		says: "Wide scripts count with their real size, in the usage and in what is sent to the summarizer.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("要約")
			m.mustContain(m.last(), "続けて")
			if s := m.ops("read_state")[0].state.State; s.UsedTokens < 18_000 || !s.Estimated {
				t.Errorf("%d tokens are used, estimated: %v", s.UsedTokens, s.Estimated)
			}
			for _, r := range p.requests() {
				if r.Tokens > 16_000 {
					t.Errorf("request %d has %d tokens", r.N, r.Tokens)
				}
			}
		},
	},
	"a usage figure of zero": {
		says: "The estimate is used and marked as one.",
		check: func(t *testing.T, p *play) {
			p.modelCalls(0)
			if s := p.main().ops("read_state")[0].state.State; s.UsedTokens < 14_000 || !s.Estimated ||
				!s.Trigger.OverLimit {
				t.Errorf("%d tokens are used, estimated: %v, over the limit: %v", s.UsedTokens, s.Estimated,
					s.Trigger.OverLimit)
			}
		},
	},
	"exactly at the limit": {
		says: "Reaching the limit is enough, one token less is not. A configured limit takes precedence over the " +
			"share of the window.",
		check: func(t *testing.T, p *play) {
			var got []string
			for _, d := range p.main().ops("read_state") {
				s := d.state.State
				got = append(got, fmt.Sprintf("%d of %d %v", s.UsedTokens, s.Trigger.Limit, s.Trigger.OverLimit))
			}
			if all, want := strings.Join(got, "; "),
				"8999 of 9000 false; 9000 of 9000 true; 9000 of 5000 true"; all != want {
				t.Errorf("the states are %s; want %s", all, want)
			}
			p.modelCalls(0)
		},
	},
	"an unknown output limit and a small window": {
		says: "Nothing is reserved for the output, so that small turns start no compaction.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCalls(0)
			if n := len(m.allRuns()); n != 0 {
				t.Errorf("%d runs", n)
			}
			if limit := m.ops("read_state")[0].state.State.Trigger.Limit; limit < 8000 || limit > 14_745 {
				t.Errorf("the limit is %d", limit)
			}
		},
	},
	"a figure that is too small to be true": {
		says: "The context is over the limit all the same, and the figure is reported as implausible.",
		check: func(t *testing.T, p *play) {
			p.modelCalls(0)
			s := p.main().ops("read_state")[0].state.State
			if s.UsedTokens <= 29_491 || !s.Trigger.OverLimit || !s.Trigger.Implausible {
				t.Errorf("%d tokens are used, over the limit: %v, implausible: %v", s.UsedTokens, s.Trigger.OverLimit,
					s.Trigger.Implausible)
			}
		},
	},
}

// failures returns the texts of all errors in the case: those of the agent's model and of the summarizer.
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
