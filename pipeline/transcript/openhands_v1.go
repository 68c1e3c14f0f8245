package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

func (f openHands) v1(l *layout.Layout, e handsEvent, v rawjson.Value) error {
	at := v.Members()
	field := func(key string) string { return at[key].Text() }
	switch e.kind {
	case "MessageEvent":
		return f.llmMessage(l, at)
	case "ActionEvent":
		l.Role = "assistant"
		f.reasoning(l, at["reasoning_content"], at["thinking_blocks"])
		nodes, err := f.content(l, at["thought"])
		if err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, nodes...)
		n := layout.Node{
			List: -1, Vacant: `"{}"`,
			Part: pipeline.Part{
				Kind: pipeline.PartToolCall, Type: "function", CallID: field("tool_call_id"),
				Name: field("tool_name"),
			},
		}
		if in, ok := at["tool_call"].Lookup("arguments"); ok {
			n.Value, n.Part.Input = in, in.TextOrRaw()
		} else if in, ok := at["tool_call"].Lookup("function", "arguments"); ok {
			n.Value, n.Part.Input = in, in.TextOrRaw()
		} else {
			n.Part.Input, n.Fixed = string(at["action"].Raw()), true
		}
		l.Nodes = append(l.Nodes, n)
	case "ObservationEvent":
		l.Role = "tool"
		content := at["observation"].Get("content")
		if content.IsMissing() {
			content = at["observation"].Get("output")
		}
		failed := at["observation"].Get("is_error")
		n := layout.Node{List: -1, Value: content, Part: pipeline.Part{
			Kind: pipeline.PartToolResult, CallID: field("tool_call_id"), Name: field("tool_name"),
			IsError: failed.IsTrue(),
		}}
		if at["observation"].IsObject() {
			n.Insert = at["observation"].End() - 1
		}
		if content.IsArray() {
			n.As = func(text string) ([]byte, error) {
				return fmt.Appendf(nil, "[%s]", layout.TextBlock(text)), nil
			}
		}
		nodes, err := f.content(l, content)
		if err != nil {
			return err
		}
		n.Content = nodes
		l.Nodes = []layout.Node{n}
	case "AgentErrorEvent", "UserRejectObservation":
		l.Role = "tool"
		said := at["error"]
		if e.kind == "UserRejectObservation" {
			said = at["rejection_reason"]
		}
		l.Nodes = []layout.Node{{
			List: -1, Value: said, Insert: v.End() - 1, Key: "error", Content: layout.OptionalText(said),
			Part: pipeline.Part{
				Kind: pipeline.PartToolResult, CallID: field("tool_call_id"), Name: field("tool_name"), IsError: true,
			},
		}}
	case "Condensation", "CondensationSummaryEvent":
		l.Role = "user"
		if l.Nodes = layout.OptionalText(at["summary"]); l.Nodes == nil {
			return l.Errorf("a condensation has no summary")
		}
	default:
		return l.Errorf("an event of kind %q is not a message", e.kind)
	}
	return nil
}

func (openHands) reasoning(l *layout.Layout, said, blocks rawjson.Value) {
	if nodes := layout.OptionalText(said); nodes != nil {
		nodes[0].Part.Kind = pipeline.PartReasoning
		if blocks.IsArray() { // the same content, in the form that the vendor takes back
			nodes[0].Twins = []layout.Node{{List: -1, Value: blocks, Vacant: "[]"}}
		}
		l.Nodes = append(l.Nodes, nodes...)
	}
}

func (f openHands) llmMessage(l *layout.Layout, at map[string]rawjson.Value) error {
	in := map[string]rawjson.Value{}
	if at["llm_message"].IsObject() {
		for key, field := range at["llm_message"].Fields() {
			in[string(key)] = field.Value
		}
	}
	switch l.Role = in["role"].Text(); l.Role {
	case "user", "assistant", "system", "tool":
	default:
		return l.Errorf("the role of the llm_message is not that of a chat message")
	}
	f.reasoning(l, in["reasoning_content"], in["thinking_blocks"])
	for _, v := range []rawjson.Value{in["content"], at["extended_content"]} {
		nodes, err := f.content(l, v)
		if err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, nodes...)
	}
	return nil
}

// content reads an array of text and image contents, or a string.
func (f openHands) content(l *layout.Layout, v rawjson.Value) ([]layout.Node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		return layout.OptionalText(v), nil
	case rawjson.Array:
	default:
		return nil, l.Errorf("the content is neither a string nor an array")
	}
	els := v.Elements()
	row := l.AddList(layout.NewList(els))
	var nodes []layout.Node
	for i, el := range els {
		if !el.IsObject() {
			return nil, l.Errorf("an entry of the content is not an object")
		}
		n := layout.Node{
			List: row, Index: i, Block: true,
			Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: el.Get("type").Text(), Raw: el.Raw()},
		}
		said := el.Get("text")
		switch {
		case n.Part.Type == "text" && said.IsString():
			n.Part.Kind, n.Part.Text, n.Value = pipeline.PartText, said.Text(), said
		case n.Part.Type == "image":
			n.Part.Kind = pipeline.PartImage
			media.FromAddress(&n.Part, f.address(n.Part))
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}
