// Package openai reads the messages of OpenAI's chat-completions API:
// https://platform.openai.com/docs/api-reference/chat. Several agents store theirs in the same form.
package openai

import (
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// Address returns the address, usually a data URL, of an image or file part of OpenAI.
func Address(p pipeline.Part) string {
	if len(p.Raw) == 0 {
		return ""
	}
	v := rawjson.Root(p.Raw)
	if at, ok := v.Lookup("image_url"); ok {
		if s, ok := at.Str(); ok {
			return s
		}
		return at.Get("url").Text()
	}
	if audio, ok := v.Lookup("input_audio"); ok {
		return media.Base64URL(p.MediaType, audio.Get("data").Text())
	}
	data := v.Get("file", "file_data").Text()
	if data != "" && !strings.HasPrefix(data, "data:") {
		data = "data:" + p.MediaType + ";base64," + data
	}
	return data
}

func Read(l *layout.Layout) error {
	l.Input = layout.StringInput
	v := rawjson.Root(l.Native)
	var content, reasoning, refusal, calls, callID, name, function rawjson.Value
	var pairs []rawjson.Value
	var at struct{ reasoning, refusal, calls, function int }
	for key, field := range v.Fields() {
		switch string(key) {
		case "role":
			l.Role = field.Value.Text()
		case "content":
			content = field.Value
		case "reasoning_content", "reasoning":
			reasoning, at.reasoning = field.Value, len(pairs)
		case "refusal":
			refusal, at.refusal = field.Value, len(pairs)
		case "tool_calls":
			calls, at.calls = field.Value, len(pairs)
		case "function_call":
			function, at.function = field.Value, len(pairs)
		case "tool_call_id":
			callID = field.Value
		case "name":
			name = field.Value
		}
		pairs = append(pairs, field.Pair)
	}
	switch l.Role {
	case "system", "developer", "user", "assistant":
	case "tool", "function":
		n, err := readResult(l, content, callID.Text(), name.Text(), v)
		if err != nil {
			return err
		}
		l.Nodes = []layout.Node{n}
		return nil
	case "":
		return l.Errorf("the message has no role")
	default:
		return l.Errorf("the role is not system, developer, user, assistant, tool or function")
	}
	members := l.AddList(layout.NewList(pairs))
	if s := reasoning.Text(); s != "" {
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartReasoning, Text: s, Raw: reasoning.Raw()},
			List: members, Index: at.reasoning,
		})
	}
	nodes, err := readContent(l, content, "null")
	if err != nil {
		return err
	}
	l.Nodes = append(l.Nodes, nodes...)
	if s := refusal.Text(); s != "" {
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartText, Type: "refusal", Text: s, Raw: refusal.Raw()},
			List: members, Index: at.refusal, Value: refusal, Block: true,
		})
	}
	if calls.IsArray() {
		els := calls.Elements()
		row := l.AddList(layout.List{Siblings: els, Whole: calls, Parent: members, ParentIndex: at.calls})
		for i, el := range els {
			n, err := readCall(l, el)
			if err != nil {
				return err
			}
			n.List, n.Index = row, i
			l.Nodes = append(l.Nodes, n)
		}
	}
	if function.IsObject() {
		n := readFunction(function, function)
		n.List, n.Index = members, at.function
		l.Nodes = append(l.Nodes, n)
	}
	return nil
}

// readContent reads a content: a string, an array of parts, or nothing. vacant replaces it if all of it is dropped.
func readContent(l *layout.Layout, v rawjson.Value, vacant string) ([]layout.Node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil, nil
		}
		return []layout.Node{{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
			List: -1, Value: v, Vacant: vacant, Block: true,
		}}, nil
	case rawjson.Array:
		els := v.Elements()
		row := l.AddList(layout.List{Siblings: els, Whole: v, Vacant: vacant, Parent: -1})
		nodes := make([]layout.Node, 0, len(els))
		for i, el := range els {
			n, err := readPart(l, el)
			if err != nil {
				return nil, err
			}
			n.List, n.Index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	}
	return nil, l.Errorf("the content is neither a string nor an array of parts")
}

// readPart reads one part of a content array.
func readPart(l *layout.Layout, v rawjson.Value) (layout.Node, error) {
	if v.IsString() {
		return layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, Value: v,
			Block: true,
		}, nil
	}
	if !v.IsObject() {
		return layout.Node{}, l.Errorf("a part of the content is not an object")
	}
	var typ, txt, refusal, image, audio, file rawjson.Value
	v.Read(rawjson.Want{
		{"type", &typ},
		{"text", &txt},
		{"refusal", &refusal},
		{"image_url", &image},
		{"input_audio", &audio},
		{"file", &file},
	})
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: typ.Text(), Raw: v.Raw()}}
	p := &n.Part
	switch p.Type {
	case "text", "refusal":
		if p.Type == "refusal" {
			txt = refusal
		}
		if s, ok := txt.Str(); ok {
			p.Kind, p.Text, n.Value = pipeline.PartText, s, txt
		}
	case "image_url":
		p.Kind = pipeline.PartImage
		url := image // older clients write the address itself
		if image.IsObject() {
			url = image.Get("url")
		}
		media.FromDataURL(p, url.Text())
	case "input_audio":
		p.Kind = pipeline.PartFile
		if audio.IsObject() {
			if format := audio.Get("format").Text(); format != "" {
				p.MediaType = "audio/" + format
			}
			media.Binary(p, audio.Get("data").Text())
		}
	case "file":
		p.Kind = pipeline.PartFile
		if file.IsObject() {
			p.Name = file.Get("filename").Text()
			data := file.Get("file_data").Text()
			if strings.HasPrefix(data, "data:") {
				media.FromDataURL(p, data)
			} else {
				media.Binary(p, data)
			}
		}
	}
	return n, nil
}

// readResult reads a message of role tool, which is one result as a whole.
func readResult(l *layout.Layout, content rawjson.Value, callID, name string, v rawjson.Value) (layout.Node, error) {
	nodes, err := readContent(l, content, `""`)
	if err != nil {
		return layout.Node{}, err
	}
	return layout.Node{
		Part: pipeline.Part{Kind: pipeline.PartToolResult, CallID: callID, Name: name},
		List: -1, Value: content, Insert: v.End() - 1, Content: nodes,
	}, nil
}

// readCall reads one entry of tool_calls.
func readCall(l *layout.Layout, v rawjson.Value) (layout.Node, error) {
	if !v.IsObject() {
		return layout.Node{}, l.Errorf("a tool call is not an object")
	}
	var inner rawjson.Value
	var id, typ string
	for key, field := range v.Fields() {
		switch string(key) {
		case "id":
			id = field.Value.Text()
		case "type":
			typ = field.Value.Text()
		case "function", "custom":
			inner = field.Value
		}
	}
	n := readFunction(v, inner)
	n.Part.CallID, n.Part.Type = id, typ
	return n, nil
}

// readFunction reads the name and the arguments (or the input of a custom tool) at v.
func readFunction(raw, v rawjson.Value) layout.Node {
	n := layout.Node{Part: pipeline.Part{Kind: pipeline.PartToolCall, Raw: raw.Raw()}}
	if !v.IsObject() {
		return n
	}
	for key, field := range v.Fields() {
		switch string(key) {
		case "name":
			n.Part.Name = field.Value.Text()
		case "arguments", "input":
			n.Value = field.Value
			n.Part.Input = field.Value.Text()
			if field.Value.IsObject() { // some servers send the object itself
				n.Part.Input = string(field.Value.Raw())
			}
		}
	}
	return n
}
