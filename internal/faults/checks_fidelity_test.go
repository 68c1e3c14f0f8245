package faults

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// fidelityCases are about what has to survive a compaction.
var fidelityCases = map[string]how{
	"a mode prompt that changes between two compactions": {
		says: "Each context has the mode prompt once, with its newest value.",
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
	"work in progress since the last request": {
		forms: true,
		says: "All messages since the user's last request follow the summary in order. An older request is not " +
			"repeated as a message.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.ordered(m.last(), "SUM", summaryEnd, "TASK-NOW", "STEP-1", "RES-1", "STEP-2", "RES-2")
			for _, text := range []string{"TASK-NOW", "STEP-1", "STEP-2"} {
				m.mustContain(m.last(), text)
			}
			if m.contains(m.last(), "TASK-OLD") {
				t.Error("the old request is still a message of the user")
			}
		},
	},
	"messages of role user that no person wrote": {
		forms: true,
		says: "They are not the user's last message: the real request stays verbatim and is the only turn. Each of " +
			"them is in the context once at most.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "REAL-TASK")
			if n := m.read().Turns; n != 1 {
				t.Errorf("%d turns", n)
			}
			for _, injected := range []string{"ENV-INFO", "REMINDER-2"} {
				if n := strings.Count(textOf(m.last()), injected); n > 1 {
					t.Errorf("%s is %d times in the context", injected, n)
				}
			}
		},
	},
	"live state over three rounds": {
		says: "The system prompt and the live state are in each context once. A removed value is absent, a changed " +
			"one is new, and no text asks the agent to start over.",
		note: "Live state is re-injected at the start of a turn or at a marker. Where the last compaction has " +
			"nothing to do, the new values are in the context from the next message on.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			for _, d := range rounds[:3] {
				m.once(d.after, "TODO-A", "PLAN-A", "SKILL-A")
			}
			end := rounds[3].after
			if rounds[3].run.Outcome != "applied" {
				end = m.appendUser("go")
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
	"the first request of a long conversation": {
		says: "The summarizer reads it. In the context it is not an unanswered message.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			found := false
			for _, r := range p.requests() {
				found = found || strings.Contains(r.Text, "FIRST-REQUEST")
			}
			if !found {
				t.Error("no request to the summarizer has the first request")
			}
			m.ordered(m.last(), "SUM", summaryEnd, "LAST")
			if n := strings.Count(textOf(m.last()), "FIRST-REQUEST"); n > 1 || m.contains(m.last(), "FIRST-REQUEST") {
				t.Errorf("the first request is %d times in the context, as a message: %v", n,
					m.contains(m.last(), "FIRST-REQUEST"))
			}
		},
	},
	"a limit that the user sets early": {
		says: "The summarizer reads it whole. A pinned limit is in every context once, whatever the summary says.",
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
	"subagents that are running": {
		says: "Each context after a compaction names them once, and no context does after they have ended.",
		note: "Live state is re-injected at the start of a turn or at a marker: a removed entry is absent from the " +
			"next message on.",
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
			m.never(m.appendUser("and now?"), "RUNNING-CHILD")
		},
	},
	"a subagent's conversation is compacted": {
		says: "The parent's context and figures do not change.",
		check: func(t *testing.T, p *play) {
			parent, child := p.conversations["parent"], p.conversations["child"]
			parent.unchanged(parent.last())
			c := parent.read()
			if c.State.UsedTokens != 505 || c.State.Estimated || parent.last().Stats.Version != 0 ||
				len(parent.allRuns()) != 0 {
				t.Errorf("the parent uses %d tokens, version %d, %d runs", c.State.UsedTokens,
					parent.last().Stats.Version, len(parent.allRuns()))
			}
			child.summarized("CHILD-SUM")
			p.modelCalls(1)
		},
	},
	"a mode that only allows proposals": {
		says: "The mode is in the context once, after the summary. The user's request is whole and last, and no " +
			"text tells the agent to continue.",
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

// undoCases are about undo and a change of the model.
var undoCases = map[string]how{
	"a switch to a model with a smaller window": {
		says: "The new window applies at once: the state is over the limit, and the compaction stays within the new " +
			"window.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			if s := m.ops("read_state")[0].state.State; !s.Trigger.OverLimit || s.Trigger.Window != 16_000 {
				t.Errorf("over the limit: %v, the window is %d", s.Trigger.OverLimit, s.Trigger.Window)
			}
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			p.requestsWithin(16_000)
			if n := m.last().Stats.Tokens; n >= 14_400 {
				t.Errorf("the context has %d tokens", n)
			}
		},
	},
	"three compactions are undone": {
		says: "Each undo restores the context before its compaction plus what was appended since; the third " +
			"restores the whole transcript. A fourth undo is a clear error.",
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
	"the newer of two compactions is undone": {
		says: "The older summary is whole, and what it does not cover is verbatim again.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			c := m.last()
			m.once(c, "SUM1-WHOLE")
			m.ordered(c, "SUM1-WHOLE", summaryEnd, m.text(2), m.text(3), m.text(4))
			m.never(c, "SUM2")
			m.mustContain(c, "u2", "u3")
			if m.compactions()[1].run.Outcome != "applied" {
				t.Error("there was no second compaction to undo")
			}
		},
	},
}

// storageCases are about isolation, and text that must not leak.
var storageCases = map[string]how{
	"a summary that repeats the instructions": {
		says: "No line of the instructions is stored, and the next request contains each once.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			m.bySummary(*rounds[0].run, rounds[0].after, "BODY")
			m.bySummary(*rounds[1].run, rounds[1].after, "BODY2")
			p.modelCalls(2)
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
	"twenty conversations of two tenants at once": {
		says: "Each request and each context has the mark of its own conversation only. The other tenant's key " +
			"finds nothing.",
		check: func(t *testing.T, p *play) {
			owners := map[string]string{}
			for name, m := range p.conversations {
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
			for name, m := range p.conversations {
				if name == "" {
					continue
				}
				for _, d := range m.compactions() {
					m.bySummary(*d.run, d.after, p.scripted(0))
					onlyMark(t, "a context", textOf(d.after), name)
				}
			}
			c0, c1 := p.conversations["c0"], p.conversations["c1"]
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
			c0.record(done{op: "end"}) // no call changed the conversation
		},
	},
	"credentials in a tool result": {
		says: "With redaction on, no credential is sent or stored in a summary. The compaction is applied, and the " +
			"transcript is unchanged.",
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
						t.Errorf("%s was sent", secret)
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

// onlyMark checks that a text has the mark of its conversation and no other mark.
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

// emptyCases are about conversations with nothing to compact.
var emptyCases = map[string]how{
	"a conversation far below the limit": {
		says: "The context is the conversation, byte for byte.",
		check: func(t *testing.T, p *play) {
			p.main().unchanged(p.main().last())
			p.modelCalls(0)
		},
	},
	"nothing to compact": {
		says: "No model is asked, no marker is stored, and the run says why.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCalls(0)
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
	"messages without text": {
		forms: true,
		says:  "The compaction is applied, and the context has no empty text that was added by it.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			for _, native := range m.last().Messages {
				ours := true
				for _, s := range m.sent {
					ours = ours && string(s.native) != string(native)
				}
				if ours && strings.TrimSpace(messageOf(native).text()) == "" && messageOf(native).ToolCalls == nil {
					t.Errorf("precis added an empty message: %.200s", native)
				}
			}
		},
	},
}
