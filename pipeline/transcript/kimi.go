package transcript

import (
	"errors"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Kimi is context files of Kimi CLI, JSONL: chat messages in OpenAI's shape, one a line, with content parts of its
// own ("think"), and between them lines of bookkeeping whose role begins with '_'.
//
// Written is a context file that Kimi CLI restores: the system prompt if the file had one, the summary in the form
// of its own compaction, and the lines of the messages that stay, as they were. Checkpoints are not: what they lead
// back to is gone.
const Kimi Format = "kimi"

type kimiCodec struct{}

func (kimiCodec) Format() Format { return Kimi }

func (kimiCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(Kimi, native, decodeKimi)
}

func decodeKimi(native []byte) (pipeline.Message, error) {
	l, err := kimiLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	if m.Role == pipeline.RoleUser {
		m.Kind = kimiKind(m)
	}
	return m, nil
}

// kimiCompacted is how the text part begins that Kimi CLI puts before its summary.
const kimiCompacted = "<system>Previous context has been compacted."

// kimiKind tells what no person said: Kimi CLI speaks in <system> elements.
func kimiKind(m pipeline.Message) pipeline.Kind {
	said := 0
	for i, p := range m.Parts {
		s := strings.TrimSpace(p.Text)
		switch {
		case p.Kind != pipeline.PartText:
			said++
		case i == 0 && strings.HasPrefix(s, kimiCompacted):
			return pipeline.KindSummary
		case s == "", enclosed(s, "system"), enclosed(s, "system-reminder"):
		default:
			said++
		}
	}
	if said == 0 {
		return pipeline.KindReminder
	}
	return m.Kind
}

func (kimiCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := rawjson.Check(m.Native); err != nil {
		return nil, parseError(Kimi, "%v", err)
	}
	l, err := kimiLayout(m.Native)
	if err != nil {
		return nil, err
	}
	return l.edit(edits, func(_ node, text string) ([]byte, error) { return rawjson.Quote(text), nil })
}

func (kimiCodec) Make(m pipeline.Made) ([]byte, error) {
	switch {
	case m.Role == pipeline.RoleTool:
		return fmt.Appendf(nil, `{"role":"tool","content":[%s],"tool_call_id":%s}`, textBlock(m.Text),
			rawjson.Quote(m.CallID)), nil
	case m.Kind == pipeline.KindSummary:
		if err := mustSay(m); err != nil {
			return nil, err
		}
		mark := textBlock(kimiCompacted + " Here is the compaction output:</system>")
		return wrapBlocks("user", [][]byte{mark, textBlock(m.Text)}), nil
	}
	return openAICodec{}.Make(m)
}

// kimiLayout reads a chat message, sound JSON.
func kimiLayout(native []byte) (*layout, error) {
	l, err := openAILayout(native)
	if err != nil {
		return nil, called(Kimi, err)
	}
	think := func(n *node) {
		if n.part.Type != "think" {
			return
		}
		n.part.Kind = pipeline.PartReasoning
		n.part.Text = rawjson.Root(n.part.Raw).Get("think").Text()
	}
	for i := range l.nodes {
		think(&l.nodes[i])
	}
	return l, nil
}

// called puts another format's name into an error of OpenAI's reader.
func called(f Format, err error) error {
	var e *pipeline.Error
	if errors.As(err, &e) {
		return pipeline.Errorf(e.Kind, "%s",
			strings.Replace(e.Message, "format "+string(OpenAI), "format "+string(f), 1))
	}
	return err
}

func (kimiCodec) address(p pipeline.Part) string { return openAIURL(p) }

// ---- files

func detectKimi(s rawjson.Outline) bool {
	return s.Has("role=_checkpoint", "role=_usage", "role=_system_prompt") ||
		s.Has("role") && s.Has("content", "tool_calls") && s.Has("role=user", "role=assistant", "role=tool") &&
			!s.Has("type", "messages", "message", "ts")
}

func openKimi(s *stream, o Options) source {
	return openLines(s, o, Meta{Format: Kimi}, kimiContext{})
}

type kimiContext struct{}

func (kimiContext) record(out *scribe, b []byte, line int) error {
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
		// The size of the context so far.
		if n := v.Get("token_count").Count(); out.begun {
			out.usage(line, &Usage{Used: n})
		}
		return nil
	case strings.HasPrefix(role, "_"):
		out.note(line, NoteRecord, role, "a line of the client, no message")
		return nil
	}
	m, err := decodeKimi(b)
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

func (kimiContext) end(*scribe, []byte) error { return nil }

func writeKimi(out Output) ([]byte, error) {
	all, err := entriesOf(kimiCodec{}, out.Items)
	if err != nil {
		return nil, err
	}
	return rawjson.Lines(append(envelopeLines(out.Meta.Envelope), nativesOf(all)...)), nil
}

// envelopeLines are the lines that stand before the messages of a file, as an envelope that is an array has them.
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

// lineArray makes such an envelope.
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
