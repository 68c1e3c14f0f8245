package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/openai"
)

// copilot is the format of sessions of GitHub's Copilot CLI: events.jsonl, a chain of events by parentId, and the
// older object with chatMessages in OpenAI's shape. A stored message is one event: user.message, assistant.message,
// tool.execution_complete; or one entry of chatMessages. A tool.execution_start is a message only if no assistant
// message has its call. The model saw transformedContent in the place of a user's message.
//
// Output.File writes the same kind of file, with the session's first event, its system prompt, and a
// session.compaction_complete event with the summary, as Copilot CLI records its own; the events that stay follow it
// in the chain. In the older object the summary is one of chatMessages.
type copilot struct{}

func (copilot) name() Format { return Copilot }

// read reads an event that is for the model, or a chat message, valid JSON.
func (f copilot) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	data, ok := v.Lookup("data")
	if !ok || !data.IsObject() {
		err := openai.Read(l)
		l.Input = f.input
		return err
	}
	l.Input = f.input
	at := data.Members()
	switch typ := v.Get("type").Text(); typ {
	case "user.message":
		l.Role = "user"
		f.user(l, at)
	case "assistant.message":
		l.Role = "assistant"
		f.assistant(l, data, at)
	case "tool.execution_start":
		l.Role = "assistant"
		l.Nodes = []layout.Node{f.call(data, -1, 0)}
	case "tool.execution_complete":
		l.Role = "tool"
		f.result(l, data, at)
	case "session.binary_asset":
		l.Role = "user"
		l.Nodes = []layout.Node{f.asset(data, at)}
	case "session.compaction_complete":
		l.Role = "user"
		if !at["summaryContent"].IsString() {
			return l.Errorf("a %s event has no summaryContent", typ)
		}
		l.Nodes = []layout.Node{layout.Text(at["summaryContent"])}
	default:
		return l.Errorf("an event of type %q is not a message", typ)
	}
	return nil
}

func (copilot) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	v := rawjson.Root(l.Native)
	data, isEvent := v.Lookup("data")
	if !isEvent {
		return m
	}
	m.ID = v.Get("id").Text()
	switch v.Get("type").Text() {
	case "session.compaction_complete":
		m.Kind = pipeline.KindSummary
	case "session.binary_asset":
		m.Kind = pipeline.KindSynthetic
	case "user.message":
		// The user typed no text: the program wrote the message, as it does to make an agent continue.
		content, ok := data.Lookup("content")
		source := data.Get("source").Text()
		if ok && content.Text() == "" || source != "" && source != "user" {
			m.Kind = pipeline.KindSynthetic
		}
	}
	return m
}

// input returns a new input for a tool call: an object for calls of functions whose old input is one.
func (copilot) input(n layout.Node, text string) ([]byte, error) {
	if n.Part.Type == "function" {
		return layout.InputAsBefore(n, text)
	}
	return layout.StringInput(n, text)
}

// Make writes an event without the fields that depend on a session: Output.File adds an id and a place in the chain.
func (copilot) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		b := fmt.Appendf(nil, `{"type":"tool.execution_complete","data":{"toolCallId":%s`, rawjson.Quote(m.CallID))
		if m.IsError {
			b = fmt.Appendf(b, `,"success":false,"error":{"message":%s`, rawjson.Quote(m.Text))
		} else {
			b = fmt.Appendf(b, `,"success":true,"result":{"content":%s`, rawjson.Quote(m.Text))
		}
		return append(b, "}}}"...), nil
	case pipeline.RoleUser:
		if err := layout.MustSay(m); err != nil {
			return nil, err
		}
		switch m.Kind {
		case pipeline.KindSummary:
			return fmt.Appendf(
				nil, `{"type":"session.compaction_complete","data":{"success":true,"summaryContent":%s}}`,
				rawjson.Quote(m.Text)), nil
		case pipeline.KindOrdinary:
			return fmt.Appendf(nil, `{"type":"user.message","data":{"content":%s,"attachments":[]}}`,
				rawjson.Quote(m.Text)), nil
		}
		return fmt.Appendf(
			nil, `{"type":"user.message","data":{"content":"","transformedContent":%s,"attachments":[]}}`,
			rawjson.Quote(m.Text)), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal,
		"an event of Copilot with role %s is written by a model and cannot be made", m.Role)
}

func (f copilot) user(l *layout.Layout, at map[string]rawjson.Value) {
	said := at["transformedContent"]
	if !said.IsString() {
		said = at["content"]
	}
	if said.IsString() && !said.IsEmpty() {
		l.Nodes = append(l.Nodes, layout.Text(said))
	}
	files := at["attachments"]
	if !files.IsArray() {
		return
	}
	els := files.Elements()
	row := l.AddList(layout.NewList(els))
	for i, el := range els {
		// The text already contains attachments that are only named (a file, a selection).
		if !el.IsObject() || el.Get("type").Text() != "blob" {
			continue
		}
		n := layout.Node{List: row, Index: i, Block: true, Fixed: true, Part: pipeline.Part{
			Kind: pipeline.PartFile, Type: "blob", MediaType: el.Get("mimeType").Text(),
			Name: el.Get("displayName").Text(), Raw: el.Raw(),
		}}
		if strings.HasPrefix(n.Part.MediaType, "image/") {
			n.Part.Kind = pipeline.PartImage
		}
		media.FromAddress(&n.Part, f.address(n.Part))
		l.Nodes = append(l.Nodes, n)
	}
}

// asset reads an image or a file that a result names by the id of the asset. The model saw it with the result.
func (f copilot) asset(data rawjson.Value, at map[string]rawjson.Value) layout.Node {
	n := layout.Node{List: -1, Fixed: true, Block: true, Value: data, Vacant: `{}`, Part: pipeline.Part{
		Kind: pipeline.PartFile, Type: "asset", MediaType: at["mimeType"].Text(), Name: at["description"].Text(),
		Raw: data.Raw(),
	}}
	if strings.HasPrefix(n.Part.MediaType, "image/") {
		n.Part.Kind = pipeline.PartImage
	}
	media.FromAddress(&n.Part, f.address(n.Part))
	return n
}

func (f copilot) assistant(l *layout.Layout, data rawjson.Value, at map[string]rawjson.Value) {
	var pairs []rawjson.Value
	place := map[string]int{}
	for key, field := range data.Fields() {
		place[string(key)] = len(pairs)
		pairs = append(pairs, field.Pair)
	}
	members := l.AddList(layout.NewList(pairs))
	if s := at["reasoningText"].Text(); s != "" {
		n := layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartReasoning, Text: s, Raw: at["reasoningText"].Raw()},
			List: members, Index: place["reasoningText"],
		}
		if _, ok := at["reasoningOpaque"]; ok { // the same reasoning, in the form that the vendor takes back
			n.Twins = []layout.Node{{List: members, Index: place["reasoningOpaque"]}}
		}
		l.Nodes = append(l.Nodes, n)
	}
	if said := at["content"]; said.IsString() && !said.IsEmpty() {
		l.Nodes = append(l.Nodes, layout.Text(said))
	}
	if calls := at["toolRequests"]; calls.IsArray() {
		els := calls.Elements()
		row := l.AddList(layout.NewList(els))
		for i, el := range els {
			if el.IsObject() {
				l.Nodes = append(l.Nodes, f.call(el, row, i))
			}
		}
	}
}

func (copilot) call(v rawjson.Value, row, index int) layout.Node {
	n := layout.Node{
		List: row, Index: index, Insert: v.End() - 1, Key: "arguments",
		Part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "function", Raw: v.Raw()},
	}
	for key, field := range v.Fields() {
		switch string(key) {
		case "toolCallId":
			n.Part.CallID = field.Value.Text()
		case "name", "toolName":
			n.Part.Name = field.Value.Text()
		case "type":
			n.Part.Type = cmp.Or(field.Value.Text(), n.Part.Type)
		case "arguments":
			n.Value, n.Part.Input = field.Value, field.Value.TextOrRaw()
		}
	}
	if row < 0 { // the event consists only of the call
		n.Vacant = "{}"
	}
	return n
}

func (copilot) result(l *layout.Layout, data rawjson.Value, at map[string]rawjson.Value) {
	n := layout.Node{List: -1, Part: pipeline.Part{
		Kind: pipeline.PartToolResult, CallID: at["toolCallId"].Text(),
		IsError: at["success"].IsFalse(),
	}}
	said, ok := data.Lookup("result", "content")
	if !ok || !said.IsString() {
		said, ok = data.Lookup("error", "message")
	}
	if ok && said.IsString() {
		n.Value = said
		if !said.IsEmpty() {
			n.Content = []layout.Node{layout.Text(said)}
		}
	} else {
		n.Insert, n.Key = data.End()-1, "result"
		n.As = func(text string) ([]byte, error) {
			return fmt.Appendf(nil, `{"content":%s}`, rawjson.Quote(text)), nil
		}
	}
	l.Nodes = []layout.Node{n}
}

func (copilot) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	if url := openai.Address(p); url != "" {
		return url
	}
	return media.Base64URL(p.MediaType, rawjson.Root(b).Get("data").Text())
}
