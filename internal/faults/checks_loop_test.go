package faults

import (
	"regexp"
	"strings"
	"testing"

	"precis"
	"precis/pipeline"
)

// loopCases are about compactions that do not help, and tails that are too large.
var loopCases = map[string]how{
	"a history that cannot become smaller": {
		says: "Two attempts at most; then the state says why no further run starts. Every append is accepted.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCallsAtMost(2)
			c := m.read()
			if !c.State.Trigger.OverLimit || c.State.Hold == "" {
				t.Errorf("over the limit: %v, held because of %q", c.State.Trigger.OverLimit, c.State.Hold)
			}
			runs := len(m.allRuns())
			m.appendUser("go on")
			m.waitIdle("wait_idle")
			if again := len(m.allRuns()); again > runs+1 {
				t.Errorf("one more message started %d runs", again-runs)
			}
		},
	},
	"a few long messages at the end": {
		says: "The tail is limited in tokens: one compaction makes room for the next turn.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			d := m.compactions()[0]
			m.bySummary(*d.run, d.after, "SUM")
			if n := d.after.Stats.Tokens; n > 28_800-6000 {
				t.Errorf("the context has %d tokens", n)
			}
			m.mustContain(d.after, "Q4 ")
			p.modelCalls(1)
		},
	},
	"a tool result as large as the window": {
		says: "Its middle is cut, its ends and its id are kept, and the context is below the limit. No model is " +
			"asked needlessly.",
		note: "By our count the result fits below the limit of the first window, where nothing is cut. The case " +
			"therefore also uses a smaller window.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			for _, window := range []int{20_000, 16_000} {
				if window < 20_000 {
					m.changeModel(step{Window: window})
					m.compact(step{Op: "compact"})
				}
				c := m.last()
				limit := window * 9 / 10
				if c.Stats.Tokens >= limit || c.Stats.Limit != limit {
					t.Errorf("the context has %d tokens, the limit is %d", c.Stats.Tokens, c.Stats.Limit)
				}
				m.mustContain(c, m.text(0))
				m.ordered(c, m.text(0), "LOG-HEAD", "LOG-TAIL")
				if window < 20_000 {
					m.ordered(c, "LOG-HEAD", "chars omitted]", "LOG-TAIL")
				}
				if !strings.Contains(string(c.Messages[len(c.Messages)-1]), `"big"`) {
					t.Errorf("the context ends with %.200s", c.Messages[len(c.Messages)-1])
				}
			}
			p.modelCallsAtMost(2)
			m.appendUser("go on")
		},
	},
	"a last user message larger than the window": {
		says: "The message is never cut. The run says so after two model calls at most, and the next append is " +
			"accepted.",
		note: "Other systems cut the message. We never cut the user's last message.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCallsAtMost(2)
			m.once(m.last(), "PASTE-HEAD", "PASTE-TAIL")
			run := m.compactions()[0].run
			if run.ErrorKind != pipeline.NoShrink && run.Reason == "" {
				t.Errorf("the run is %s (%s) and does not say why the context is still too large", run.Outcome,
					run.ErrorKind)
			}
			if !m.read().State.Trigger.OverLimit {
				t.Error("the state does not say that the context is over the limit")
			}
			m.appendUser("go on")
		},
	},
	"an estimate that is far too low": {
		says: "The vendor's figure starts a compaction, and the tail is not empty afterwards.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			all := m.allRuns()
			if len(all) == 0 || all[0].Trigger.Kind != pipeline.TriggerTokens || all[0].Trigger.Used < 12_100 {
				t.Fatalf("the runs are %+v", all)
			}
			c := m.last()
			m.mustContain(c, "u1")
			state := m.read().State
			if state.UsedTokens != c.Stats.Tokens || (c.Stats.Marker == nil) != (state.Marker == nil) {
				t.Errorf("the state says %d tokens, the context %d", state.UsedTokens, c.Stats.Tokens)
			}
			if all[0].Outcome == precis.OutcomeApplied {
				m.once(c, "SUM")
			}
		},
	},
}

// answerCases are about answers that are not a summary.
var answerCases = map[string]how{
	"an answer of thinking alone": {
		says: "Thinking is not a summary: the model is asked once more, and both model calls are in the usage " +
			"ledger.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			run := m.summarized("GOOD")
			p.modelCalls(2)
			if run.Usage.Calls != 2 || run.Usage.Input < 2*9000 || run.Usage.Output < 2 {
				t.Errorf("usage of the run: %+v", run.Usage)
			}
		},
	},
	"three answers in a row are empty or cut off": {
		says: "Each retry sends a different request.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			p.modelCalls(3)
			m.mustContain(m.last(), "u3")
			seen := map[string]bool{}
			for _, r := range p.requests() {
				if seen[string(r.Body)] {
					t.Errorf("request %d repeats an earlier one", r.N)
				}
				seen[string(r.Body)] = true
			}
		},
	},
	"blank answers only": {
		says: "The context stays as it was, or a digest with the user's words is applied. No placeholder is stored " +
			"as a summary.",
		fails: true, digest: pipeline.DigestAlways,
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.failedOrDigest(m.compactions()[0], pipeline.EmptyOutput)
			m.once(m.last(), m.text(0))
			m.never(m.last(), "unavailable")
			p.modelCallsAtMost(4)
		},
	},
	"the summarizer calls a tool": {
		says: "The tool call is neither executed nor stored; the model is asked once more.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			m.never(m.last(), "s1", "notes/INDEX.md")
			p.modelCalls(2)
		},
	},
	"each summary repeats the one before": {
		says: "Over five rounds there is one summary, within its limit, and it does not grow.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			first := 0
			for i, d := range m.compactions() {
				if d.after.Stats.Marker == nil {
					t.Fatalf("round %d left no summary: %s %s\n%s", i+1, d.run.Outcome, d.run.Reason, attempts(*d.run))
				}
				if n := pipeline.EstimateText(summaryOf(d.after)); n > 1000 {
					t.Errorf("round %d leaves a summary of %d tokens", i+1, n)
				}
				if i == 0 {
					first = d.after.Stats.Tokens
				}
				if n := d.after.Stats.Tokens; n > first+2 { // the message numbers get longer
					t.Errorf("round %d leaves %d tokens, the first one left %d", i+1, n, first)
				}
			}
		},
	},
	"the same tail is kept by three compactions": {
		says: "The tail is in the transcript once, under its first number, and in every context once.",
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
					t.Errorf("the tail is %d times in the context", n)
				}
			}
			for _, s := range m.transcript() {
				if (messageOf(s.Native).text() == "TAIL-UNIQ") != (s.Seq == 3) {
					t.Errorf("message %d is %.100s", s.Seq, s.Native)
				}
			}
		},
	},
	"a summary that is cut off": {
		says: "The partial summary is not stored. The next request asks for a shorter one, and that answer is used.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("FULL")
			m.never(m.last(), p.scripted(0))
			p.modelCalls(2)
			const less = "must be much shorter this time"
			if r := p.requests(); strings.Contains(r[0].LastUser, less) || !strings.Contains(r[1].LastUser, less) {
				t.Errorf("the second request does not ask for less: %.500s", r[1].LastUser)
			}
		},
	},
	"markup around and inside a summary": {
		says: "Only the summary's own text is stored, and nothing inside it closes the wrapper.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("BODY")
			m.never(m.last(), "DRAFT-THOUGHTS", "</invoke>", "</summary>")
			m.once(m.last(), summaryEnd)
		},
	},
	"a conversation in another language": {
		says: "Every request names the language to answer in, also the shorter one and those for parts.",
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
	"no new message since the last summary": {
		says: "The summary is not replaced by an emptier one.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			for i, d := range m.compactions() {
				if n := strings.Count(summaryOf(d.after), "SUM1"); n != 1 {
					t.Errorf("after compaction %d the context has the summary %d times", i+1, n)
				}
				m.never(d.after, p.scripted(1))
			}
			p.modelCalls(1)
		},
	},
	"a refusal or a content filter": {
		says: "The next summarizer is asked at once, and no word of the refusal is stored.",
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
				t.Errorf("models called: %v", models)
			}
			if steps := attempts(m.allRuns()[0]); !strings.Contains(steps, string(pipeline.Refused)) {
				t.Errorf("the record does not say that it was refused:\n%s", steps)
			}
		},
	},
	"an empty compaction block of the vendor": {
		says:   "It counts as a failure: a summary is requested instead, and no empty block is stored.",
		format: "anthropic",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			for _, native := range m.last().Messages {
				if strings.Contains(string(native), `"compaction"`) {
					t.Errorf("the context contains %.200s", native)
				}
			}
			if r := p.requests(); len(r) != 2 || r[0].Native != "edit" || r[1].Native != "" {
				t.Errorf("%d requests, the vendor's own: %q", len(r), r[0].Native)
			}
		},
	},
	"text in the shape of a tool call": {
		says: "It is not a summary: the model is asked once more, under the compactor's own system prompt.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			m.never(m.last(), "<tool>read")
			p.modelCalls(2)
			for _, r := range p.requests() {
				if r.Model != secondModel || r.System == "" ||
					strings.Contains(r.System, messageOf(m.sent[0].native).text()) {
					t.Errorf("request %d to %s has the system prompt %.200s", r.N, r.Model, r.System)
				}
			}
		},
	},
}
