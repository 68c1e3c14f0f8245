package transcript

import (
	"strings"

	"precis/pipeline"
)

// MSAgent is messages of Microsoft's Agent Framework: {"role":…,"contents":[…]}, the role a string or {"value":…}.
// Files hold runs, one a line, with the messages of each under "messages", or a serialized thread with them under
// "chat_message_store_state.messages".
//
// Written is the run, or the thread, with the new list of messages, the summary a user message among them: the
// framework has no form of its own for one.
const MSAgent Format = "ms-agent"

type msAgentCodec struct{}

func (msAgentCodec) Format() Format { return MSAgent }

func (msAgentCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(MSAgent, native, decodeMSAgent)
}

func decodeMSAgent(native []byte) (pipeline.Message, error) {
	l, err := msAgentLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	m.ID = text(native, first(get(native, root(native), "message_id")))
	return m, nil
}

func (msAgentCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := whole(m.Native); err != nil {
		return nil, parseError(MSAgent, "%v", err)
	}
	l, err := msAgentLayout(m.Native)
	if err != nil {
		return nil, err
	}
	return l.edit(edits, func(n node, text string) ([]byte, error) {
		if kind(l.native, n.value) == '{' {
			return anthropicInput(n, text)
		}
		return quote(text), nil
	})
}

func (msAgentCodec) Make(m pipeline.Made) ([]byte, error) {
	b := append([]byte(`{"role":{"value":`), quote(string(m.Role))...)
	b = append(b, `},"contents":[{"type":`...)
	if m.Role == pipeline.RoleTool {
		b = append(append(b, `"function_result","call_id":`...), quote(m.CallID)...)
		b = append(append(b, `,"result":`...), quote(m.Text)...)
		if m.IsError {
			b = append(append(b, `,"exception":`...), quote(m.Text)...)
		}
		return append(b, "}]}"...), nil
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	return append(append(append(b, `"text","text":`...), quote(m.Text)...), "}]}"...), nil
}

// msAgentLayout reads {"role":…,"contents":[…]}, sound JSON.
func msAgentLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(MSAgent, "it is no object")
	}
	role, _ := get(b, v, "role")
	if kind(b, role) == '{' {
		role, _ = get(b, role, "value")
	}
	switch l.role = text(b, role); l.role {
	case "system", "user", "assistant", "tool":
	case "":
		return nil, parseError(MSAgent, "it has no role")
	default:
		return nil, parseError(MSAgent, "its role is not system, user, assistant or tool")
	}
	contents, _ := get(b, v, "contents")
	switch kind(b, contents) {
	case 'n':
		return l, nil
	case '[':
	default:
		return nil, parseError(MSAgent, "its contents are no array")
	}
	els := elements(b, contents)
	row := l.addList(newList(els))
	for i, el := range els {
		if kind(b, el) != '{' {
			return nil, parseError(MSAgent, "one of its contents is no object")
		}
		if n, ok := l.msAgentContent(el); ok {
			n.list, n.index = row, i
			l.nodes = append(l.nodes, n)
		}
	}
	return l, nil
}

// msAgentContent reads one of the contents; ok is false for one that is no part of the message.
func (l *layout) msAgentContent(v span) (n node, ok bool) {
	b := l.native
	at := map[string]span{}
	for key, f := range fields(b, v) {
		at[string(key)] = f.value
	}
	n = node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Type: text(b, at["type"]), Raw: v.of(b)}}
	p := &n.part
	switch p.Type {
	case "usage":
		return n, false
	case "text":
		if kind(b, at["text"]) == '"' {
			p.Kind, p.Text, n.value = pipeline.PartText, text(b, at["text"]), at["text"]
		}
	case "error":
		if kind(b, at["message"]) == '"' {
			p.Kind, p.Text, n.value = pipeline.PartText, text(b, at["message"]), at["message"]
		}
	case "text_reasoning":
		p.Kind, p.Text = pipeline.PartReasoning, text(b, at["text"])
	case "data", "uri", "hosted_file":
		p.Kind, p.MediaType, p.Name = pipeline.PartFile, text(b, at["media_type"]), text(b, at["name"])
		if strings.HasPrefix(p.MediaType, "image/") || strings.HasPrefix(text(b, at["uri"]), "data:image/") {
			p.Kind = pipeline.PartImage
		}
		fromAddress(p, msAgentCodec{}.address(*p))
	case "function_call":
		p.Kind, p.CallID, p.Name, n.block = pipeline.PartToolCall, text(b, at["call_id"]), text(b, at["name"]), false
		n.value, n.insert, n.key = at["arguments"], v.end-1, "arguments"
		p.Input = inputText(b, n.value)
	case "function_result":
		p.Kind, p.CallID, n.block = pipeline.PartToolResult, text(b, at["call_id"]), false
		failed := kind(b, at["exception"])
		p.IsError = failed != 0 && failed != 'n'
		n.value, n.insert, n.key = at["result"], v.end-1, "result"
		if n.content = l.anyContent(n.value); n.content == nil && failed == '"' {
			// What went wrong is all that came of it.
			n.content = l.anyContent(at["exception"])
		}
	}
	return n, true
}

func (msAgentCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	return text(b, first(get(b, root(b), "uri")))
}

// ---- files

var msAgentPaths = []string{"messages", "chat_message_store_state.messages"}

func detectMSAgent(s sketched) bool {
	return s.has("messages[].contents", "chat_message_store_state.messages[].contents") &&
		s.has("messages[].role", "chat_message_store_state.messages[].role")
}

func openMSAgent(s *stream, o Options) source {
	return openArrays(s, o, Meta{Format: MSAgent}, msAgentRun{}, msAgentPaths...)
}

type msAgentRun struct{}

func (msAgentRun) record(out *scribe, b []byte, line int) error {
	m, err := decodeMSAgent(b)
	if err != nil {
		return err
	}
	out.message(line, m)
	contents, _ := get(b, root(b), "contents")
	if kind(b, contents) != '[' {
		return nil
	}
	for _, el := range elements(b, contents) {
		if text(b, first(get(b, el, "type"))) == "usage" {
			out.usage(line, msAgentUsage(b, el))
		}
	}
	return nil
}

func msAgentUsage(b []byte, v span) *Usage {
	details, ok := get(b, v, "details")
	if !ok {
		details, _ = get(b, v, "usage_details")
	}
	figure := func(key string) int { return number(b, first(get(b, details, key))) }
	u := &Usage{
		Input: figure("input_token_count"), Output: figure("output_token_count"),
		Used: figure("total_token_count"),
	}
	if u.Used == 0 {
		u.Used = u.Input + u.Output
	}
	return u
}

func (msAgentRun) end(out *scribe, around []byte) error {
	if around == nil {
		return nil
	}
	v := root(around)
	out.meta.Envelope = around
	out.meta.ID = text(around, first(get(around, v, "id")))
	out.meta.Model = text(around, first(dig(around, v, "config", "assistant", "model")))
	return nil
}

func writeMSAgent(out Output) ([]byte, error) {
	all, err := entriesOf(msAgentCodec{}, out.Items)
	if err != nil {
		return nil, err
	}
	// Roles are written as the messages beside them have theirs.
	if role := firstStored(all, "role"); len(role) > 0 && role[0] == '"' {
		for i, e := range all {
			if at, ok := get(e.native, root(e.native), "role"); ok && e.made != nil {
				all[i].native = apply(e.native, []splice{{at, quote(string(e.made.Role))}})
			}
		}
	}
	// One run a line, as it came.
	return oneLine(putArray(out.Meta.Envelope, arrayOf(nativesOf(all)), msAgentPaths...)), nil
}
