package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// cursor is the format of the agent transcripts that Cursor writes beside a project, JSONL:
// {"role":…,"message":{"content":[…]}} per line. They contain neither ids nor the results of tools, although the
// model saw these. A note reports that; in a conversion to an API each call gets a result that says so.
//
// Output.File writes a transcript in the same shape. Cursor stores its chats in a database and does not load
// transcripts: to continue the conversation elsewhere, write it as anthropic or openai.
type cursor struct{}

func (cursor) name() Format { return Cursor }

// read reads {"role":…,"message":{"content":[…]}}, valid JSON.
func (f cursor) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	switch l.Role = v.Get("role").Text(); l.Role {
	case "user", "assistant", "system":
	case "":
		return l.Errorf("the message has no role")
	default:
		return l.Errorf("the role is not user, assistant or system")
	}
	content := v.Get("message", "content")
	switch content.Kind() {
	case rawjson.String:
		l.Nodes = []layout.Node{layout.Text(content)}
	case rawjson.Array:
		nodes, err := anthropic.ReadBlocks(l, content, layout.NewList(nil))
		if err != nil {
			return err
		}
		for i := range nodes {
			if n := &nodes[i]; n.Part.Type == "tool_use" {
				f.call(n, content.Elements()[i])
			}
		}
		l.Nodes = nodes
	default:
		return l.Errorf("the message has no content")
	}
	return nil
}

func (cursor) message(l *layout.Layout) pipeline.Message { return l.Message() }

// Make writes a line. It returns nil for a result, which the format cannot hold.
func (cursor) Make(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleTool {
		return nil, nil
	}
	if err := layout.MustSay(m); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"role":%s,"message":{"content":[%s]}}`, rawjson.Quote(string(m.Role)),
			layout.TextBlock(m.Text)),
		nil
}

// call reads a call, which has no id.
func (cursor) call(n *layout.Node, v rawjson.Value) {
	n.Value = v.Get("input")
	n.Insert, n.Key, n.Block = v.End()-1, "input", false
	n.Part.Kind, n.Part.Name = pipeline.PartToolCall, v.Get("name").Text()
	n.Part.Input = n.Value.TextOrRaw()
}

func (cursor) address(p pipeline.Part) string { return anthropic.Address(p) }

func (cursor) detect(s rawjson.Outline) bool {
	return s.Has("role=user", "role=assistant") && s.Has("message.content") &&
		!s.Has("uuid", "parentUuid", "type=user", "type=assistant", "type=message")
}

func (cursor) open(s *jsonstream.Reader, o Options) source {
	return openLines(s, o, Meta{Format: Cursor}, &cursorTranscript{})
}

type cursorTranscript struct{}

func (*cursorTranscript) record(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	if typ := v.Get("type").Text(); typ != "" {
		what := typ
		if status := v.Get("status").Text(); status != "" {
			what += "/" + status
		}
		out.note(line, NoteRecord, what, "a line of the client is not a message")
		return nil
	}
	m, err := decode(cursor{}, b)
	if err != nil {
		return err
	}
	for range m.Calls() {
		out.note(line, NoteMissing, "tool results",
			"the transcript records no ids and no results: what the calls returned is not in it")
	}
	out.message(line, m)
	return nil
}

func (*cursorTranscript) end(*emitter, []byte) error { return nil }

func (cursor) write(out Output) ([]byte, error) {
	all, err := out.entries(cursor{})
	if err != nil {
		return nil, err
	}
	return rawjson.Lines(nativesOf(all)), nil
}
