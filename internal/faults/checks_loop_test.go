package faults

import (
	"regexp"
	"strings"
	"testing"

	"precis/internal/store"
	"precis/pipeline"
)

// loopCases: compactions that do not help, and tails that are too large.
var loopCases = map[string]how{
	"B09": {
		says: "what cannot shrink is tried at most twice, then the state says why nothing more is tried; every " +
			"append is taken",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.askedAtMost(2)
			c := m.conversation()
			if !c.State.Trigger.OverLimit || c.State.Hold == "" {
				t.Errorf("over the limit: %v, held because of %q", c.State.Trigger.OverLimit, c.State.Hold)
			}
			runs := len(m.allRuns())
			m.say("go on")
			m.waitIdle("wait_idle")
			if again := len(m.allRuns()); again > runs+1 {
				t.Errorf("one message more, and %d runs more", again-runs)
			}
		},
	},
	"B68": {
		says: "the tail is bounded in tokens: one compaction makes room for a turn",
		check: func(t *testing.T, p *play) {
			m := p.main()
			d := m.compactions()[0]
			m.bySummary(*d.run, d.after, "SUM")
			if n := d.after.Stats.Tokens; n > 28_800-6000 {
				t.Errorf("the context has %d tokens", n)
			}
			m.mustStand(d.after, "Q4 ")
			p.askedFor(1)
		},
	},
	"B84": {
		says: "a result as large as the window is cut in the middle, its ends and its id kept, and the context is " +
			"below the limit; no model is asked in vain",
		note: "by our count the result fits below the limit, where nothing is cut; so the window is made smaller " +
			"as well, in which it does not",
		check: func(t *testing.T, p *play) {
			m := p.main()
			for _, window := range []int{20_000, 16_000} {
				if window < 20_000 {
					m.setConfig(step{ContextWindow: window})
					m.compact(step{Op: "compact"})
				}
				c := m.last()
				limit := window * 9 / 10
				if c.Stats.Tokens >= limit || c.Stats.Limit != limit {
					t.Errorf("the context has %d tokens, the limit is %d", c.Stats.Tokens, c.Stats.Limit)
				}
				m.mustStand(c, m.text(0))
				m.ordered(c, m.text(0), "LOG-HEAD", "LOG-TAIL")
				if window < 20_000 {
					m.ordered(c, "LOG-HEAD", "chars omitted]", "LOG-TAIL")
				}
				if !strings.Contains(string(c.Messages[len(c.Messages)-1]), `"big"`) {
					t.Errorf("the context ends with %.200s", c.Messages[len(c.Messages)-1])
				}
			}
			p.askedAtMost(2)
			m.say("go on")
		},
	},
	"B84b": {
		says: "what the user said last is never cut: a message larger than the window is told as such, tried at " +
			"most twice, and the conversation goes on",
		note: "the case would also take a cut message; the specification never cuts the user's last one",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.askedAtMost(2)
			m.once(m.last(), "PASTE-HEAD", "PASTE-TAIL")
			run := m.compactions()[0].run
			if run.ErrorKind != pipeline.NoShrink && run.Reason == "" {
				t.Errorf("the run is %s (%s) and does not say why the context is too large still", run.Outcome,
					run.ErrorKind)
			}
			if !m.conversation().State.Trigger.OverLimit {
				t.Error("the state does not say that the context is over the limit")
			}
			m.say("go on")
		},
	},
	"B94": {
		says: "an estimate that the vendor's figure corrects starts a compaction by the figure, and the tail is " +
			"not empty after it",
		check: func(t *testing.T, p *play) {
			m := p.main()
			all := m.allRuns()
			if len(all) == 0 || all[0].Trigger.Kind != pipeline.TriggerTokens || all[0].Trigger.Used < 12_100 {
				t.Fatalf("the runs are %+v", all)
			}
			c := m.last()
			m.mustStand(c, "u1")
			state := m.conversation().State
			if state.UsedTokens != c.Stats.Tokens || (c.Stats.Marker == nil) != (state.Marker == nil) {
				t.Errorf("the state says %d tokens, the context %d", state.UsedTokens, c.Stats.Tokens)
			}
			if all[0].Outcome == store.OutcomeApplied {
				m.once(c, "SUM")
			}
		},
	},
}

// answerCases: what a summarizer answers in the place of a summary.
var answerCases = map[string]how{
	"B12": {
		says: "an answer of thoughts alone is no summary: it is asked once more, and both calls are booked",
		check: func(t *testing.T, p *play) {
			m := p.main()
			run := m.summarized("GOOD")
			p.askedFor(2)
			if run.Usage.Calls != 2 || run.Usage.Input < 2*9000 || run.Usage.Output < 2 {
				t.Errorf("booked: %+v", run.Usage)
			}
		},
	},
	"B13": {
		says: "what is asked again after a bad answer is never the same request",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			p.askedFor(3)
			m.mustStand(m.last(), "u3")
			seen := map[string]bool{}
			for _, r := range p.requests() {
				if seen[string(r.Body)] {
					t.Errorf("request %d is one that was sent before", r.N)
				}
				seen[string(r.Body)] = true
			}
		},
	},
	"B14": {
		says: "blank answers to the end: the context stays, or a digest with the user's words lands; nothing " +
			"stands in for a summary",
		fails: true, digest: pipeline.DigestAlways,
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.landed(m.compactions()[0], pipeline.EmptyOutput)
			m.once(m.last(), m.text(0))
			m.never(m.last(), "unavailable")
			p.askedAtMost(4)
		},
	},
	"B15": {
		says: "a tool call of the summarizer is neither carried out nor kept; it is asked once more",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			m.never(m.last(), "s1", "/tmp/compaction")
			p.askedFor(2)
		},
	},
	"B17": {
		says: "five rounds that each give the summary back and add to it: there is one summary within its cap " +
			"after every one, and it does not grow",
		check: func(t *testing.T, p *play) {
			m := p.main()
			first := 0
			for i, d := range m.compactions() {
				if d.after.Stats.Marker == nil {
					t.Fatalf("round %d left no summary: %s %s\n%s", i+1, d.run.Outcome, d.run.Reason, way(*d.run))
				}
				if n := pipeline.EstimateText(summaryOf(d.after)); n > 1000 {
					t.Errorf("round %d leaves a summary of %d tokens", i+1, n)
				}
				if i == 0 {
					first = d.after.Stats.Tokens
				}
				if n := d.after.Stats.Tokens; n > first+2 { // the numbers of the messages get longer
					t.Errorf("round %d leaves %d tokens, the first one left %d", i+1, n, first)
				}
			}
		},
	},
	"B24": {
		says: "what three compactions keep stands once in the transcript, with its first number, and once in the " +
			"context",
		check: func(t *testing.T, p *play) {
			m := p.main()
			if len(m.compactions()) != 3 {
				t.Fatalf("%d compactions", len(m.compactions()))
			}
			for _, d := range m.compactions() {
				n := 0
				for _, native := range d.after.Messages {
					if messageOf(native).text() == "TAIL-UNIQ" {
						n++
					}
				}
				if n != 1 {
					t.Errorf("it stands %d times in the context", n)
				}
			}
			for _, s := range m.transcript() {
				if (messageOf(s.Native).text() == "TAIL-UNIQ") != (s.Seq == 3) {
					t.Errorf("message %d is %.100s", s.Seq, s.Native)
				}
			}
		},
	},
	"B30": {
		says: "an answer that is cut off is never kept: the next request asks for less, and its whole answer is",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("FULL")
			m.never(m.last(), p.scripted(0))
			p.askedFor(2)
			const less = "must be much shorter this time"
			if r := p.requests(); strings.Contains(r[0].LastUser, less) || !strings.Contains(r[1].LastUser, less) {
				t.Errorf("the second request does not ask for less: %.500s", r[1].LastUser)
			}
		},
	},
	"B31": {
		says: "of what the summarizer wraps around its summary nothing is kept, and nothing inside it closes the " +
			"wrapper",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("BODY")
			m.never(m.last(), "SECRET-ANALYSIS", "</invoke>", "</summary>")
			m.once(m.last(), summaryEnd)
		},
	},
	"B56": {
		says: "every request says in which language to answer, the shorter one and those of parts as well",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("RESUMO")
			m.never(m.last(), "metade")
			if len(p.requests()) < 2 {
				t.Errorf("%d requests", len(p.requests()))
			}
			language := regexp.MustCompile(`(?i)in the language (of|that|in which)`)
			for _, r := range p.requests() {
				if !language.MatchString(r.Text) {
					t.Errorf("request %d does not say in which language to answer", r.N)
				}
			}
		},
	},
	"B80": {
		says: "with nothing new a summary is not replaced by an emptier one",
		check: func(t *testing.T, p *play) {
			m := p.main()
			for i, d := range m.compactions() {
				if n := strings.Count(summaryOf(d.after), "SUM1"); n != 1 {
					t.Errorf("after compaction %d the summary stands %d times", i+1, n)
				}
				m.never(d.after, p.scripted(1))
			}
			p.askedFor(1)
		},
	},
	"B82": {
		says: "a refusal goes to the next summarizer at once, and none of its words are kept",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			if refusal, err := scriptOf(p.fault, p.variant); err != nil {
				t.Fatal(err)
			} else if said := refusal.Answers[0].Text; said != "" {
				m.never(m.last(), said)
			}
			var models []string
			for _, r := range p.requests() {
				models = append(models, r.Model)
			}
			if strings.Join(models, " ") != agentModel+" "+secondModel {
				t.Errorf("asked: %v", models)
			}
			if steps := way(m.allRuns()[0]); !strings.Contains(steps, string(pipeline.Refused)) {
				t.Errorf("the record does not say that it was refused:\n%s", steps)
			}
		},
	},
	"B99": {
		says: "an empty compaction of the vendor's own is a failed one: a summary is asked for, and no empty " +
			"block is kept",
		format: "anthropic",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			for _, native := range m.last().Messages {
				if strings.Contains(string(native), `"compaction"`) {
					t.Errorf("the context holds %.200s", native)
				}
			}
			if r := p.requests(); len(r) != 2 || r[0].Native != "edit" || r[1].Native != "" {
				t.Errorf("%d requests, the vendor's own: %q", len(r), r[0].Native)
			}
		},
	},
	"B110": {
		says: "text in the shape of a tool call is no summary; it is asked once more, under the compactor's own " +
			"system prompt",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			m.never(m.last(), "<tool>read")
			p.askedFor(2)
			for _, r := range p.requests() {
				if r.Model != secondModel || r.System == "" ||
					strings.Contains(r.System, messageOf(m.sent[0].native).text()) {
					t.Errorf("request %d to %s has the system prompt %.200s", r.N, r.Model, r.System)
				}
			}
		},
	},
}
