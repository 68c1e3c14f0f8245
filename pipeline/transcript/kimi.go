package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
	"precis/pipeline/transcript/wire/openai"
)

// kimi is the format of context files of Kimi CLI, JSONL: chat messages in OpenAI's shape, one per line, with content
// parts of its own ("think"), and between them lines of bookkeeping whose role begins with '_'.
//
// Output.File writes a context file that Kimi CLI restores: the system prompt if the file had one, the summary in the
// form of its own compaction, and the unchanged lines of the messages that stay. Checkpoints are not written, because
// the state that they lead back to no longer exists.
type kimi struct{}

func (kimi) name() Format { return Kimi }

// read reads a chat message, valid JSON.
func (kimi) read(l *layout.Layout) error {
	if err := openai.Read(l); err != nil {
		return err
	}
	think := func(n *layout.Node) {
		if n.Part.Type != "think" {
			return
		}
		n.Part.Kind = pipeline.PartReasoning
		n.Part.Text = rawjson.Root(n.Part.Raw).Get("think").Text()
	}
	for i := range l.Nodes {
		think(&l.Nodes[i])
	}
	return nil
}

func (f kimi) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	if m.Role == pipeline.RoleUser {
		m.Kind = f.kind(m)
	}
	return m
}

// kimiCompacted is the beginning of the text part that Kimi CLI puts before its summary.
const kimiCompacted = "<system>Previous context has been compacted."

// kimiElements are the elements that Kimi CLI writes, beside those of all agents.
var kimiElements = map[string]pipeline.Kind{"system": pipeline.KindReminder}

// kind returns the kind of a user message: Kimi CLI writes its own into <system> elements.
func (kimi) kind(m pipeline.Message) pipeline.Kind {
	said := 0
	for i, p := range m.Parts {
		s := strings.TrimSpace(p.Text)
		switch {
		case p.Kind != pipeline.PartText:
			said++
		case i == 0 && strings.HasPrefix(s, kimiCompacted):
			return pipeline.KindSummary
		default:
			if _, ok := layout.Injected(s, kimiElements); !ok {
				said++
			}
		}
	}
	if said == 0 {
		return pipeline.KindReminder
	}
	return m.Kind
}

func (kimi) Make(m pipeline.Made) ([]byte, error) {
	switch {
	case m.Role == pipeline.RoleTool:
		return fmt.Appendf(nil, `{"role":"tool","content":[%s],"tool_call_id":%s}`, layout.TextBlock(m.Text),
			rawjson.Quote(m.CallID)), nil
	case m.Kind == pipeline.KindSummary:
		if err := layout.MustSay(m); err != nil {
			return nil, err
		}
		mark := layout.TextBlock(kimiCompacted + " Here is the compaction output:</system>")
		return anthropic.Wrap("user", [][]byte{mark, layout.TextBlock(m.Text)}), nil
	}
	return openAIChat{}.Make(m)
}

func (kimi) address(p pipeline.Part) string { return openai.Address(p) }

// ---- files

func (kimi) detect(s rawjson.Outline) bool {
	return s.Has("role=_checkpoint", "role=_usage", "role=_system_prompt") ||
		s.Has("role") && s.Has("content", "tool_calls") && s.Has("role=user", "role=assistant", "role=tool") &&
			!s.Has("type", "messages", "message", "ts")
}

func (kimi) open(s *jsonstream.Reader, o Options) source {
	return openLines(s, o, Meta{Format: Kimi}, kimiContext{})
}

type kimiContext struct{}

func (kimiContext) record(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	role := v.Get("role").Text()
	switch {
	case role == "_system_prompt":
		if prompt, ok := v.Lookup("content"); ok && prompt.IsString() {
			out.meta.System = prompt.Raw()
			out.meta.Envelope = lineArray(b)
		}
		return nil
	case role == "_usage":
		// It has the current size of the context.
		if n := v.Get("token_count").Count(); out.begun {
			out.usage(line, &Usage{Used: n})
		}
		return nil
	case strings.HasPrefix(role, "_"):
		out.note(line, NoteRecord, role, "a line of the client is not a message")
		return nil
	}
	m, err := decode(kimi{}, b)
	if err != nil {
		return err
	}
	if m.Kind == pipeline.KindSummary && out.count == 0 {
		out.compaction(line, Compaction{Summary: m})
		return nil
	}
	out.message(line, m)
	return nil
}

func (kimiContext) end(*emitter, []byte) error { return nil }

func (kimi) write(out Output) ([]byte, error) {
	all, err := out.entries(kimi{})
	if err != nil {
		return nil, err
	}
	return rawjson.Lines(append(envelopeLines(out.Meta.Envelope), nativesOf(all)...)), nil
}

// envelopeLines returns the lines before the messages of a file, from an envelope that is an array.
func envelopeLines(e []byte) [][]byte {
	if len(e) == 0 || rawjson.Check(e) != nil || !rawjson.Root(e).IsArray() {
		return nil
	}
	var out [][]byte
	for _, el := range rawjson.Root(e).Elements() {
		out = append(out, el.Raw())
	}
	return out
}

// lineArray makes an envelope for envelopeLines.
func lineArray(lines ...[]byte) []byte {
	b := []byte(`[`)
	for i, line := range lines {
		if i > 0 {
			b = append(b, ","...)
		}
		b = append(b, rawjson.OneLine(line)...)
	}
	return append(b, "]"...)
}
