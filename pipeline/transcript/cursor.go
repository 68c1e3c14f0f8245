package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Cursor is the agent transcripts that Cursor writes beside a project, JSONL: {"role":…,"message":{"content":[…]}} a
// line. They record neither ids nor results: what the tools returned, which the model saw, is not there. It is said
// in a note; on the way to an API each call gets a result that says so too.
//
// Written is a transcript in the same shape. Cursor keeps its chats in a database of its own and loads none of
// these: to go on with the conversation elsewhere, write it as anthropic or openai.
const Cursor Format = "cursor"

type cursorCodec struct{}

func (cursorCodec) Format() Format { return Cursor }

func (cursorCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(Cursor, native, decodeCursor)
}

func decodeCursor(native []byte) (pipeline.Message, error) {
	l, err := cursorLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	return l.message(), nil
}

func (cursorCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	return encodeWhole(Cursor, m, edits, cursorLayout)
}

// Make writes a line. A result has no place in the format and is nothing.
func (cursorCodec) Make(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleTool {
		return nil, nil
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"role":%s,"message":{"content":[%s]}}`, rawjson.Quote(string(m.Role)), textBlock(m.Text)),
		nil
}

// cursorLayout reads {"role":…,"message":{"content":[…]}}, sound JSON.
func cursorLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	v := rawjson.Root(native)
	if !v.IsObject() {
		return nil, parseError(Cursor, "it is no object")
	}
	switch l.role = v.Get("role").Text(); l.role {
	case "user", "assistant", "system":
	case "":
		return nil, parseError(Cursor, "it has no role")
	default:
		return nil, parseError(Cursor, "its role is not user, assistant or system")
	}
	content, _ := v.Lookup("message", "content")
	switch content.Kind() {
	case rawjson.String:
		l.nodes = []node{l.literalNode(content)}
	case rawjson.Array:
		nodes, err := l.blocks(Cursor, content, newList(nil))
		if err != nil {
			return nil, err
		}
		for i := range nodes {
			if n := &nodes[i]; n.part.Type == "tool_use" {
				l.cursorCall(n, content.Elements()[i])
			}
		}
		l.nodes = nodes
	default:
		return nil, parseError(Cursor, "its message has no content")
	}
	return l, nil
}

// cursorCall reads a call, which has no id.
func (l *layout) cursorCall(n *node, v rawjson.Value) {
	n.value, _ = v.Lookup("input")
	n.insert, n.key, n.block = v.End()-1, "input", false
	n.part.Kind, n.part.Name = pipeline.PartToolCall, v.Get("name").Text()
	n.part.Input = n.value.TextOrRaw()
}

func (cursorCodec) address(p pipeline.Part) string { return anthropicURL(p) }

// ---- files

func detectCursor(s rawjson.Outline) bool {
	return s.Has("role=user", "role=assistant") && s.Has("message.content") &&
		!s.Has("uuid", "parentUuid", "type=user", "type=assistant", "type=message")
}

func openCursor(s *stream, o Options) source {
	return openLines(s, o, Meta{Format: Cursor}, &cursorTranscript{})
}

type cursorTranscript struct{}

func (*cursorTranscript) record(out *scribe, b []byte, line int) error {
	v := rawjson.Root(b)
	if typ := v.Get("type").Text(); typ != "" {
		what := typ
		if status := v.Get("status").Text(); status != "" {
			what += "/" + status
		}
		out.note(line, NoteRecord, what, "a line of the client, no message")
		return nil
	}
	m, err := decodeCursor(b)
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

func (*cursorTranscript) end(*scribe, []byte) error { return nil }

func writeCursor(out Output) ([]byte, error) {
	all, err := entriesOf(cursorCodec{}, out.Items)
	if err != nil {
		return nil, err
	}
	return rawjson.Lines(nativesOf(all)), nil
}
