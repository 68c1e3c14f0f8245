package faults

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// fidelityCases: what has to survive a compaction.
var fidelityCases = map[string]how{
	"B20": {
		forms: true,
		says: "the steps since the user's last request stand behind the summary in their order, and an old " +
			"request is no request any more",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.ordered(m.last(), "SUM", summaryEnd, "TASK-NOW", "STEP-1", "RES-1", "STEP-2", "RES-2")
			for _, text := range []string{"TASK-NOW", "STEP-1", "STEP-2"} {
				m.mustStand(m.last(), text)
			}
			if m.stands(m.last(), "TASK-OLD") {
				t.Error("the old request is a message of the user's still")
			}
		},
	},
	"B22": {
		says: "a mode prompt stands once after each round, with its newest value",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			m.bySummary(*rounds[0].run, rounds[0].after, "S1")
			m.once(rounds[0].after, "MODE-X")
			m.bySummary(*rounds[1].run, rounds[1].after, "S2")
			m.once(rounds[1].after, "MODE-Y")
			m.never(rounds[1].after, "MODE-X")
		},
	},
	"B54": {
		forms: true,
		says: "what no person said is not the user's last word: the real request stays verbatim, alone counts as " +
			"a turn, and what was injected stands at most once",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustStand(m.last(), "REAL-TASK")
			if n := m.conversation().Turns; n != 1 {
				t.Errorf("%d turns", n)
			}
			for _, injected := range []string{"ENV-INFO", "REMINDER-2"} {
				if n := strings.Count(textOf(m.last()), injected); n > 1 {
					t.Errorf("%s stands %d times", injected, n)
				}
			}
		},
	},
	"B57": {
		says: "system prompt and live state stand once after every round; what was emptied is gone, what was " +
			"changed is new, and nothing asks to start over",
		note: "live state takes its values at the start of a turn or at the marker: where the last compaction " +
			"finds nothing to do, they are there with the next message",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			for _, d := range rounds[:3] {
				m.once(d.after, "TODO-A", "PLAN-A", "SKILL-A")
			}
			end := rounds[3].after
			if rounds[3].run.Outcome != "applied" {
				end = m.say("go")
			}
			m.once(end, "PLAN-B", "SKILL-A")
			m.never(end, "TODO-A", "PLAN-A")
			for _, word := range []string{"restart", "start over", "start-up", "startup"} {
				if strings.Contains(strings.ToLower(textOf(end)), word) {
					t.Errorf("the context says %q", word)
				}
			}
		},
	},
	"B72": {
		says: "the first request is part of what the summarizer reads, and no unanswered message in the context",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			found := false
			for _, r := range p.requests() {
				found = found || strings.Contains(r.Text, "ORIGINAL-ASK")
			}
			if !found {
				t.Error("the summarizer was not told the original request")
			}
			m.ordered(m.last(), "SUM", summaryEnd, "LAST")
			if n := strings.Count(textOf(m.last()), "ORIGINAL-ASK"); n > 1 || m.stands(m.last(), "ORIGINAL-ASK") {
				t.Errorf("it stands %d times, as a message: %v", n, m.stands(m.last(), "ORIGINAL-ASK"))
			}
		},
	},
	"B74": {
		says: "a limit that the user set reaches the summarizer whole, and one that is pinned stands in every " +
			"context once, whatever the summary says",
		check: func(t *testing.T, p *play) {
			m := p.main()
			limit := m.text(0)
			if !strings.Contains(p.requests()[0].Text, limit) {
				t.Error("the limit is not in the first request")
			}
			rounds := m.compactions()
			if len(rounds) != 3 {
				t.Fatalf("%d rounds", len(rounds))
			}
			for _, d := range rounds {
				m.bySummary(*d.run, d.after, p.scripted(0))
				m.once(d.after, p.pinned(), limit)
			}
		},
	},
	"B100": {
		says: "children under way are told once after each compaction, and not any more when they have ended",
		note: "live state takes its values at the start of a turn or at the marker: what was removed is gone with " +
			"the next message",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			if len(rounds) != 2 {
				t.Fatalf("%d rounds", len(rounds))
			}
			for _, d := range rounds {
				m.bySummary(*d.run, d.after, "S")
				m.once(d.after, "RUNNING-CHILD")
			}
			m.never(m.say("and now?"), "RUNNING-CHILD")
		},
	},
	"B101": {
		says: "a child's compaction touches neither the parent's context nor its figures",
		check: func(t *testing.T, p *play) {
			parent, child := p.talks["parent"], p.talks["child"]
			parent.unchanged(parent.last())
			c := parent.conversation()
			if c.State.UsedTokens != 505 || c.State.Estimated || parent.last().Stats.Version != 0 ||
				len(parent.allRuns()) != 0 {
				t.Errorf("the parent uses %d tokens, version %d, %d runs", c.State.UsedTokens,
					parent.last().Stats.Version, len(parent.allRuns()))
			}
			child.summarized("CHILD-SUM")
			p.askedFor(1)
		},
	},
	"B105a": {
		says: "the mode stands once and behind the summary, what the user asked for is whole and last, and " +
			"nothing orders the agent to go on",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized(p.scripted(0))
			c := m.last()
			m.once(c, "PLAN-MODE")
			m.ordered(c, p.scripted(0), summaryEnd, "PLAN-MODE", m.text(-1))
			if end := c.Messages[len(c.Messages)-1]; !bytes.Equal(end, m.sent[len(m.sent)-1].native) {
				t.Errorf("the context ends with %.200s", end)
			}
			m.never(c, "Go on from where")
		},
	},
}

// undoCases: taking compactions back, and other models.
var undoCases = map[string]how{
	"B60": {
		says: "a smaller window counts at once: the state is over the limit, and the compaction keeps within the " +
			"new window",
		check: func(t *testing.T, p *play) {
			m := p.main()
			if s := m.ops("state")[0].state.State; !s.Trigger.OverLimit || s.Trigger.Window != 16_000 {
				t.Errorf("over the limit: %v, the window is %d", s.Trigger.OverLimit, s.Trigger.Window)
			}
			m.summarized("SUM")
			m.mustStand(m.last(), "LAST")
			p.requestsWithin(16_000)
			if n := m.last().Stats.Tokens; n >= 14_400 {
				t.Errorf("the context has %d tokens", n)
			}
		},
	},
	"B61": {
		says: "each undo gives the context from before its compaction and what came since, the third the whole " +
			"transcript, and the fourth a clear error",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds, undone := m.compactions(), m.ops("undo")
			if len(rounds) != 3 || len(undone) != 4 {
				t.Fatalf("%d compactions, %d undone", len(rounds), len(undone))
			}
			for i := range 3 {
				round := rounds[2-i]
				want := append([]json.RawMessage(nil), round.before.Messages...)
				for _, s := range m.sent[round.sent:] {
					want = append(want, s.native)
				}
				if !equal(undone[i].after.Messages, want) {
					t.Errorf("undo %d gives another context than before compaction %d", i+1, 3-i)
				}
			}
			m.unchanged(m.last())
			m.never(m.last(), "S1", "S2", "S3")
			if code := undone[3].res.code(); code != "nothing_to_undo" {
				t.Errorf("the fourth is answered %q", code)
			}
		},
	},
	"B104": {
		says: "after an undo the older summary is whole, and what it covers no more is verbatim again",
		check: func(t *testing.T, p *play) {
			m := p.main()
			c := m.last()
			m.once(c, "SUM1-WHOLE")
			m.ordered(c, "SUM1-WHOLE", summaryEnd, m.text(2), m.text(3), m.text(4))
			m.never(c, "SUM2")
			m.mustStand(c, "u2", "u3")
			if m.compactions()[1].run.Outcome != "applied" {
				t.Error("there was no second compaction to undo")
			}
		},
	},
}

// storageCases: caching, isolation, what must not leak.
var storageCases = map[string]how{
	"B52": {
		says: "of the instructions that a summarizer gives back nothing is kept, and its next request has them once",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			m.bySummary(*rounds[0].run, rounds[0].after, "BODY")
			m.bySummary(*rounds[1].run, rounds[1].after, "BODY2")
			p.askedFor(2)
			for _, line := range promptLines(t) {
				for _, d := range rounds {
					m.never(d.after, line)
				}
				for _, r := range p.requests() {
					if n := strings.Count(r.Text, line); n > 1 {
						t.Errorf("request %d has %q %d times", r.N, line, n)
					}
				}
			}
		},
	},
	"B79": {
		says: "twenty conversations of two tenants at once: each request and each context has its own mark alone, " +
			"and a foreign key finds nothing",
		check: func(t *testing.T, p *play) {
			owners := map[string]string{}
			for name, m := range p.talks {
				for _, run := range m.allRuns() {
					owners[run.ID] = name
				}
			}
			for _, r := range p.requests() {
				owner := owners[r.Header.Get("X-Precis-Run")]
				onlyMark(t, "a request", r.Text, owner)
			}
			if n := len(p.requests()); n != 40 {
				t.Errorf("%d requests", n)
			}
			for name, m := range p.talks {
				if name == "" {
					continue
				}
				for _, d := range m.compactions() {
					m.bySummary(*d.run, d.after, p.scripted(0))
					onlyMark(t, "a context", textOf(d.after), name)
				}
			}
			c0, c1 := p.talks["c0"], p.talks["c1"]
			foreign := caller{url: c0.url, key: c1.key}
			message := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}}}
			for _, call := range []struct {
				method, path string
				body         any
			}{
				{"GET", c0.path(""), nil},
				{"PATCH", c0.path(""), map[string]any{"metadata": map[string]any{"a": "b"}}},
				{"GET", c0.path("/messages"), nil},
				{"POST", c0.path("/messages"), message},
				{"POST", c0.path("/sync"), message},
				{"GET", c0.path("/context"), nil},
				{"POST", c0.path("/replies"), map[string]any{}},
				{"GET", c0.path("/compactions"), nil},
				{"POST", c0.path("/compactions"), map[string]any{}},
				{"DELETE", c0.path("/marker"), nil},
				{"GET", c0.path("/state"), nil},
				{"PUT", c0.path("/state/todo"), map[string]any{"text": "x"}},
				{"DELETE", c0.path("/state/todo"), nil},
				{"GET", c0.path("/events"), nil},
				{"GET", "/v1/runs/" + c0.compactions()[0].run.ID, nil},
				{"POST", "/v1/runs/" + c0.compactions()[0].run.ID + "/cancel", nil},
			} {
				res, err := foreign.try(t.Context(), call.method, call.path, call.body, "")
				if err != nil || res.status != 404 {
					t.Errorf("%s %s with the other tenant's key: %d, %v", call.method, call.path, res.status, err)
				}
			}
			c0.noted(done{op: "end"}) // and nothing of it happened
		},
	},
	"B87": {
		says: "with redaction on no credential goes out or into a summary, the compaction is applied, and the " +
			"transcript is as it was",
		check: func(t *testing.T, p *play) {
			m := p.main()
			secrets := regexp.MustCompile(`AKIA[A-Z]+|[a-z]+\.[a-z]+\.[a-z0-9]+`)
			m.summarized(secrets.ReplaceAllString(p.scripted(0), "[redacted]"))
			found := secrets.FindAllString(string(m.transcript()[2].Native), -1)
			if len(found) != 2 {
				t.Fatalf("the tool's result holds %q", found)
			}
			for _, secret := range found {
				for _, r := range p.requests() {
					if strings.Contains(string(r.Body), secret) {
						t.Errorf("%s went out", secret)
					}
				}
				m.never(m.last(), secret)
			}
			if !strings.Contains(p.requests()[0].Text, "AWS_ACCESS_KEY_ID=") {
				t.Error("the tool's result is not in the request at all")
			}
		},
	},
}

var marks = regexp.MustCompile(`MARK-\d+`)

// onlyMark checks that a text has the mark of its conversation and no other.
func onlyMark(t *testing.T, what, text, owner string) {
	t.Helper()
	want := "MARK-" + strings.TrimPrefix(owner, "c")
	found := marks.FindAllString(text, -1)
	for _, mark := range found {
		if mark != want {
			t.Errorf("%s of %s has %s", what, owner, mark)
		}
	}
	if owner == "" || len(found) == 0 {
		t.Errorf("%s of %q has no mark", what, owner)
	}
}

// emptyCases: nothing to do.
var emptyCases = map[string]how{
	"B41": {
		says: "far below the limit the context is the conversation, byte for byte",
		check: func(t *testing.T, p *play) {
			p.main().unchanged(p.main().last())
			p.askedFor(0)
		},
	},
	"B65": {
		says: "with nothing to compact no model is asked and nothing is marked, and the run says which of the " +
			"reasons it is",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.askedFor(0)
			m.unchanged(m.last())
			if n := len(m.markers()); n != 0 {
				t.Errorf("%d markers", n)
			}
			want := "all_protected"
			if len(m.sent) == 0 || len(m.sent) == 1 && role(m.sent[0].native) == "system" {
				want = "empty"
			}
			if len(m.compactions()) != 2 {
				t.Fatalf("%d compactions", len(m.compactions()))
			}
			for _, d := range m.compactions() {
				if d.run.Outcome != "skipped" || d.run.Reason != want {
					t.Errorf("the run is %s (%s), want %s", d.run.Outcome, d.run.Reason, want)
				}
			}
		},
	},
	"B66": {
		forms: true,
		says: "messages without text do no harm: the compaction is applied, and the context has no empty text " +
			"that we made",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustStand(m.last(), "LAST")
			for _, native := range m.last().Messages {
				ours := true
				for _, s := range m.sent {
					ours = ours && string(s.native) != string(native)
				}
				if ours && strings.TrimSpace(messageOf(native).text()) == "" && messageOf(native).ToolCalls == nil {
					t.Errorf("an empty message of ours: %.200s", native)
				}
			}
		},
	},
}
