package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// msAgent is the format of messages of Microsoft's Agent Framework: {"role":…,"contents":[…]}, the role a string or
// {"value":…}. Files hold runs, one per line, with their messages under "messages", or a serialized thread with its
// messages under "chat_message_store_state.messages".
//
// Output.File writes the run or the thread with the new list of messages. The summary is a user message, because the
// framework has no form of its own for one.
type msAgent struct{}

func (msAgent) name() Format { return MSAgent }

// read reads {"role":…,"contents":[…]}, valid JSON.
func (f msAgent) read(l *layout.Layout) error {
	l.Input = func(n layout.Node, text string) ([]byte, error) {
		if n.Value.IsObject() {
			return layout.ObjectInput(n, text)
		}
		return layout.StringInput(n, text)
	}
	v := rawjson.Root(l.Native)
	role := v.Get("role")
	if role.IsObject() {
		role = role.Get("value")
	}
	switch l.Role = role.Text(); l.Role {
	case "system", "user", "assistant", "tool":
	case "":
		return l.Errorf("the message has no role")
	default:
		return l.Errorf("the role is not system, user, assistant or tool")
	}
	contents := v.Get("contents")
	switch contents.Kind() {
	case rawjson.Null:
		return nil
	case rawjson.Array:
	default:
		return l.Errorf("the contents are not an array")
	}
	els := contents.Elements()
	row := l.AddList(layout.NewList(els))
	for i, el := range els {
		if !el.IsObject() {
			return l.Errorf("an entry of the contents is not an object")
		}
		if n, ok := f.content(el); ok {
			n.List, n.Index = row, i
			l.Nodes = append(l.Nodes, n)
		}
	}
	return nil
}

func (msAgent) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	m.ID = rawjson.Root(l.Native).Get("message_id").Text()
	return m
}

func (msAgent) Make(m pipeline.Made) ([]byte, error) {
	b := fmt.Appendf(nil, `{"role":{"value":%s},"contents":[{"type":`, rawjson.Quote(string(m.Role)))
	if m.Role == pipeline.RoleTool {
		b = fmt.Appendf(b, `"function_result","call_id":%s,"result":%s`, rawjson.Quote(m.CallID), rawjson.Quote(m.Text))
		if m.IsError {
			b = fmt.Appendf(b, `,"exception":%s`, rawjson.Quote(m.Text))
		}
		return append(b, "}]}"...), nil
	}
	if err := layout.MustSay(m); err != nil {
		return nil, err
	}
	return fmt.Appendf(b, `"text","text":%s}]}`, rawjson.Quote(m.Text)), nil
}

// content reads one of the contents; ok is false for one that is not part of the message.
func (f msAgent) content(v rawjson.Value) (n layout.Node, ok bool) {
	at := v.Members()
	n = layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: at["type"].Text(), Raw: v.Raw()}}
	p := &n.Part
	switch p.Type {
	case "usage":
		return n, false
	case "text":
		if at["text"].IsString() {
			p.Kind, p.Text, n.Value = pipeline.PartText, at["text"].Text(), at["text"]
		}
	case "error":
		if at["message"].IsString() {
			p.Kind, p.Text, n.Value = pipeline.PartText, at["message"].Text(), at["message"]
		}
	case "text_reasoning":
		p.Kind, p.Text = pipeline.PartReasoning, at["text"].Text()
	case "data", "uri", "hosted_file":
		p.Kind, p.MediaType, p.Name = pipeline.PartFile, at["media_type"].Text(), at["name"].Text()
		if strings.HasPrefix(p.MediaType, "image/") || strings.HasPrefix(at["uri"].Text(), "data:image/") {
			p.Kind = pipeline.PartImage
		}
		media.FromAddress(p, f.address(*p))
	case "function_call":
		p.Kind, p.CallID, p.Name, n.Block = pipeline.PartToolCall, at["call_id"].Text(), at["name"].Text(), false
		n.Value, n.Insert, n.Key = at["arguments"], v.End()-1, "arguments"
		p.Input = n.Value.TextOrRaw()
	case "function_result":
		p.Kind, p.CallID, n.Block = pipeline.PartToolResult, at["call_id"].Text(), false
		failed := at["exception"].Kind()
		p.IsError = failed != 0 && failed != 'n'
		n.Value, n.Insert, n.Key = at["result"], v.End()-1, "result"
		if n.Content = layout.AnyContent(n.Value); n.Content == nil && failed == '"' {
			// The error is the only result.
			n.Content = layout.AnyContent(at["exception"])
		}
	}
	return n, true
}

func (msAgent) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	return rawjson.Root(b).Get("uri").Text()
}

var msAgentPaths = []string{"messages", "chat_message_store_state.messages"}

func (msAgent) detect(s rawjson.Outline) bool {
	return s.Has("messages[].contents", "chat_message_store_state.messages[].contents") &&
		s.Has("messages[].role", "chat_message_store_state.messages[].role")
}

func (msAgent) open(s *jsonstream.Reader, o Options) source {
	return openArrays(s, o, Meta{Format: MSAgent}, msAgentRun{}, msAgentPaths...)
}

type msAgentRun struct{}

func (msAgentRun) record(out *emitter, b []byte, line int) error {
	m, err := decode(msAgent{}, b)
	if err != nil {
		return err
	}
	out.message(line, m)
	contents := rawjson.Root(b).Get("contents")
	if !contents.IsArray() {
		return nil
	}
	for _, el := range contents.Elements() {
		if el.Get("type").Text() == "usage" {
			out.usage(line, msAgent{}.usage(el))
		}
	}
	return nil
}

func (msAgent) usage(v rawjson.Value) *Usage {
	details, ok := v.Lookup("details")
	if !ok {
		details = v.Get("usage_details")
	}
	figure := func(key string) int { return details.Get(key).Count() }
	u := &Usage{
		Input: figure("input_token_count"), Output: figure("output_token_count"),
		Used: figure("total_token_count"),
	}
	if u.Used == 0 {
		u.Used = u.Input + u.Output
	}
	return u
}

func (msAgentRun) end(out *emitter, around []byte) error {
	if around == nil {
		return nil
	}
	v := rawjson.Root(around)
	out.meta.Envelope = around
	out.meta.ID = v.Get("id").Text()
	out.meta.Model = v.Get("config", "assistant", "model").Text()
	return nil
}

func (msAgent) write(out Output) ([]byte, error) {
	all, err := out.entries(msAgent{})
	if err != nil {
		return nil, err
	}
	// Roles are written in the form that the other messages use.
	if role := firstStored(all, "role"); len(role) > 0 && role[0] == '"' {
		for i, e := range all {
			if at, ok := rawjson.Root(e.native).Lookup("role"); ok && e.made != nil {
				all[i].native = at.With(rawjson.Quote(string(e.made.Role)))
			}
		}
	}
	// One run per line, as in the file.
	return rawjson.OneLine(rawjson.PutArray(out.Meta.Envelope, rawjson.ArrayOf(nativesOf(all)), msAgentPaths...)), nil
}
