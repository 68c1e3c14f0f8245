package faults

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"precis/internal/api/wire"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// structureCases are about pairs of calls and results, roles, and blocks that must not change.
var structureCases = map[string]how{
	"a call without a result at the end of the history": {
		forms: true,
		says: "The call gets a result in the context, the user's last request is whole, and the next append is " +
			"accepted.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUMMARY-1")
			m.once(m.last(), m.text(-2))
			p.modelCalls(1)
			m.appendUser("go on")
		},
	},
	"a result without its call at the start of the history": {
		forms: true,
		says:  "The history is summarized in a request that the vendor accepts.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.once(m.last(), "LAST")
			p.modelCalls(1)
		},
	},
	"thinking blocks in a message that is kept": {
		says: "Thinking, redacted thinking and unknown keys come back byte for byte.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContainBytes(m.last(), 3)
			if !unknownKey.Match(m.sent[3].native) || !strings.Contains(string(m.sent[3].native), `"thinking":""`) {
				t.Error("the message that was sent is not that of the case")
			}
		},
	},
	"no model is available in the middle of a turn": {
		says:  "The context ends with the tool's result, is valid, and the next append is accepted.",
		fails: true, digest: pipeline.DigestAlways, list: "self",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.failedOrDigest(m.compactions()[0], pipeline.ServerError)
			end := m.last().Messages
			if last := end[len(end)-1]; !strings.Contains(string(last), `"m1"`) || role(last) == "assistant" {
				t.Errorf("the context ends with %.200s", last)
			}
			m.appendUser("and now?")
		},
	},
	"ten tool calls in one message": {
		forms: true,
		says:  "The calls and their results are together in the context and in every request, or not there at all.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.once(m.last(), "explain")
			together := func(where, text string) {
				n := 0
				for i := range 10 {
					n += strings.Count(text, fmt.Sprintf(`"p%d"`, i))
				}
				if n != 0 && n != 20 {
					t.Errorf("%s has %d of the ten calls and ten results", where, n)
				}
			}
			var context strings.Builder
			for _, native := range m.last().Messages {
				context.Write(native)
			}
			together("the context", context.String())
			for _, r := range p.requests() {
				together("a request", string(r.Body))
			}
		},
	},
	"a target format in which roles alternate": {
		forms: true,
		says: "The summary is a user message. Where the format requires it, roles alternate starting with the user, " +
			"and the user's last words are a part of their own.",
		note: "There is no setting for alternation; the format decides. The context is read in the formats that it " +
			"is converted to. In the Anthropic format the API joins consecutive messages of one role itself, so " +
			"they are left as they came.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			for _, native := range m.last().Messages {
				if strings.Contains(string(native), summaryBegin) && role(native) != "user" {
					t.Errorf("the summary is a message of role %s", role(native))
				}
			}
			for _, format := range []transcript.Format{transcript.Anthropic, transcript.Google} {
				if format != p.format {
					m.alternates(format, "u3-EXACT")
				}
			}
		},
	},
	"a call whose worker died": {
		forms: true,
		says:  "Later compactions are applied all the same and leave the context below the limit.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			for i, d := range m.compactions() {
				m.bySummary(*d.run, d.after, fmt.Sprint("S", i+1))
				if n := d.after.Stats.Tokens; n >= 14_400 {
					t.Errorf("compaction %d leaves %d tokens", i+1, n)
				}
			}
			m.mustContain(m.last(), "r11")
			p.modelCalls(2)
		},
	},
}

// mustContainBytes checks that a context contains a message of the conversation byte for byte.
func (t *conversation) mustContainBytes(c *wire.Context, number int) {
	t.t.Helper()
	for _, m := range c.Messages {
		if string(m) == string(t.sent[number].native) {
			return
		}
	}
	t.t.Errorf("the context does not contain %s", t.sent[number].native)
}

// alternates reads the context in a format and checks that roles alternate, starting with the user, and that the phrase
// is a part of its own.
func (t *conversation) alternates(format transcript.Format, phrase string) {
	t.t.Helper()
	var c wire.Context
	t.get(t.path("/context?format="+string(format)), &c)
	whole := false
	for i, m := range c.Messages {
		want := "user"
		if i%2 == 1 {
			want = map[transcript.Format]string{transcript.Anthropic: "assistant", transcript.Google: "model"}[format]
		}
		if got := role(m); got != want {
			t.t.Errorf("%s: message %d is of role %s, want %s", format, i, got, want)
		}
		var parts struct{ Content, Parts json.RawMessage }
		if err := json.Unmarshal(m, &parts); err != nil {
			t.t.Fatal(err)
		}
		for _, list := range []json.RawMessage{parts.Content, parts.Parts} {
			var text string
			var blocks []block
			switch {
			case json.Unmarshal(list, &text) == nil:
				whole = whole || text == phrase
			case json.Unmarshal(list, &blocks) == nil:
				for _, b := range blocks {
					whole = whole || b.Text == phrase
				}
			}
		}
	}
	if !whole {
		t.t.Errorf("%s: %q is not a part of its own", format, phrase)
	}
}
