package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
	"precis/pipeline/transcript/wire/openai"
)

// langChain is the format of the messages of LangChain and LangGraph, in the three forms that its libraries write and
// load:
//
//   - dumpd: {"lc":1,"type":"constructor","id":[…,"HumanMessage"],"kwargs":{…}}
//   - messages_to_dict: {"type":"human","data":{…}}
//   - a LangGraph state, flat: {"type":"human","content":…}
//
// A file is an array of them, or a state with them under "messages" (or "values.messages"). Output.File writes the
// same: the array for load or messages_from_dict, or the state with the new list. Two compactions are recognized: the
// summary of SummarizationMiddleware, and the _summarization_event of Deep Agents.
type langChain struct{}

func (langChain) name() Format { return LangChain }

// read reads a message of one of the three forms, valid JSON.
func (f langChain) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	body := f.body(v)
	if l.Role = f.role(v, body); l.Role == "" {
		return l.Errorf("the type is not human, ai, system, tool or one of their classes")
	}
	at := body.Members()
	nodes, err := f.content(l, at["content"])
	if err != nil {
		return err
	}
	if l.Role == "tool" {
		l.Nodes = []layout.Node{{
			Part: pipeline.Part{
				Kind: pipeline.PartToolResult, CallID: at["tool_call_id"].Text(), Name: at["name"].Text(),
				IsError: at["status"].Text() == "error",
			},
			List: -1, Value: at["content"], Insert: body.End() - 1, Content: nodes,
		}}
		return nil
	}
	if reasoning, ok := at["additional_kwargs"].Lookup("reasoning_content"); ok && reasoning.Text() != "" {
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartReasoning, Text: reasoning.Text(), Raw: reasoning.Raw()},
			List: -1, Value: reasoning, Vacant: `""`,
		})
	}
	l.Nodes = append(l.Nodes, nodes...)
	f.calls(l, at["tool_calls"], at["additional_kwargs"])
	// A call whose arguments could not be read is a call all the same: its result tells the model so.
	f.calls(l, at["invalid_tool_calls"], at["additional_kwargs"])
	return nil
}

func (f langChain) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	body := f.body(rawjson.Root(l.Native))
	m.ID = body.Get("id").Text()
	if source := body.Get("additional_kwargs", "lc_source"); source.Text() == "summarization" {
		m.Kind = pipeline.KindSummary
	}
	return m
}

// Make writes the flat form, which LangChain takes wherever it takes messages. Output.File puts it into the form of
// the other messages.
func (langChain) Make(m pipeline.Made) ([]byte, error) {
	typ := map[pipeline.Role]string{
		pipeline.RoleSystem: "system", pipeline.RoleUser: "human", pipeline.RoleAssistant: "ai",
		pipeline.RoleTool: "tool",
	}[m.Role]
	b := fmt.Appendf(nil, `{"type":%s,"content":%s`, rawjson.Quote(typ), rawjson.Quote(m.Text))
	switch {
	case m.Role == pipeline.RoleTool:
		b = fmt.Appendf(b, `,"tool_call_id":%s,"name":%s`, rawjson.Quote(m.CallID), rawjson.Quote(m.Name))
		if m.IsError {
			b = append(b, `,"status":"error"`...)
		}
		return append(b, "}"...), nil
	case m.Kind == pipeline.KindSummary:
		b = append(b, `,"additional_kwargs":{"lc_source":"summarization"}`...)
	}
	if err := layout.MustSay(m); err != nil {
		return nil, err
	}
	return append(b, "}"...), nil
}

// body is the object with the fields of a message.
func (langChain) body(v rawjson.Value) rawjson.Value {
	for _, key := range []string{"kwargs", "data"} {
		if at, ok := v.Lookup(key); ok && at.IsObject() {
			return at
		}
	}
	return v
}

// role returns the role for a type or for the name of a class.
func (langChain) role(v, body rawjson.Value) string {
	name := v.Get("type").Text()
	if name == "constructor" {
		name = body.Get("type").Text()
		if path, ok := v.Lookup("id"); ok && path.IsArray() {
			if els := path.Elements(); len(els) > 0 {
				name = els[len(els)-1].Text()
			}
		}
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Chunk"), "Message")
	if name == "Chat" || name == "chat" {
		name = body.Get("role").Text()
	}
	switch strings.ToLower(name) {
	case "human", "user":
		return "user"
	case "ai", "assistant":
		return "assistant"
	case "system", "developer":
		return "system"
	case "tool", "function":
		return "tool"
	}
	return ""
}

// content reads a content: a string, or an array of strings and of blocks in the shape of a vendor or of
// LangChain's own standard blocks.
func (f langChain) content(l *layout.Layout, v rawjson.Value) ([]layout.Node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil, nil
		}
		return []layout.Node{layout.Text(v)}, nil
	case rawjson.Array:
		els := v.Elements()
		row := l.AddList(layout.NewList(els))
		nodes := make([]layout.Node, 0, len(els))
		for i, el := range els {
			n, err := f.block(l, el)
			if err != nil {
				return nil, err
			}
			n.List, n.Index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	}
	return nil, l.Errorf("the content is neither a string nor an array of blocks")
}

func (f langChain) block(l *layout.Layout, v rawjson.Value) (layout.Node, error) {
	n, err := anthropic.ReadBlock(l, v)
	if err != nil || !v.IsObject() {
		return n, err
	}
	p := &n.Part
	field := func(keys ...string) string {
		for _, key := range keys {
			if s := v.Get(key).Text(); s != "" {
				return s
			}
		}
		return ""
	}
	switch p.Type {
	case "reasoning":
		p.Kind, p.Text = pipeline.PartReasoning, field("reasoning", "text")
	case "reasoning_content": // Bedrock's
		p.Kind = pipeline.PartReasoning
		if at, ok := v.Lookup("reasoning_content", "text"); ok {
			p.Text = at.Text()
		}
	case "image", "image_url":
		p.Kind = pipeline.PartImage
	case "file", "audio", "video", "text-plain", "input_audio", "document":
		p.Kind, p.Name = pipeline.PartFile, field("filename", "title")
	case "tool_call":
		p.Kind, p.CallID, p.Name = pipeline.PartToolCall, field("id"), field("name")
		n.Value = v.Get("args")
		p.Input, n.Block, n.Insert, n.Key = n.Value.TextOrRaw(), false, v.End()-1, "args"
	}
	if p.Kind == pipeline.PartImage || p.Kind == pipeline.PartFile {
		if s := field("mime_type", "media_type"); s != "" {
			p.MediaType = s
		}
		media.FromAddress(p, f.address(*p))
	}
	return n, nil
}

// calls reads tool_calls. A call that is also in the content, as a block of its vendor, or in additional_kwargs, is
// one call in several places.
func (f langChain) calls(l *layout.Layout, calls, extra rawjson.Value) {
	if !calls.IsArray() {
		return
	}
	els := calls.Elements()
	row := l.AddList(layout.NewList(els))
	var raw []rawjson.Value
	rawRow := -1
	if list, ok := extra.Lookup("tool_calls"); ok && list.IsArray() {
		raw = list.Elements()
		rawRow = l.AddList(layout.NewList(raw))
	}
	for i, el := range els {
		if !el.IsObject() {
			continue
		}
		args := el.Get("args")
		n := layout.Node{
			Part: pipeline.Part{
				Kind: pipeline.PartToolCall, CallID: el.Get("id").Text(),
				Name: el.Get("name").Text(), Type: el.Get("type").Text(),
				Input: args.TextOrRaw(), Raw: el.Raw(),
			},
			List: row, Index: i, Value: args, Insert: el.End() - 1, Key: "args",
		}
		for j, r := range raw {
			if id := r.Get("id").Text(); id == n.Part.CallID && id != "" {
				arguments := r.Get("function", "arguments")
				n.Twins = append(n.Twins, layout.Node{List: rawRow, Index: j, Value: arguments, As: quoted1})
			}
		}
		if at := f.callNode(l, n.Part.CallID); at >= 0 {
			// The block comes first: it shows where among the texts the call was made.
			l.Nodes[at].Twins = append(n.Twins, n)
			continue
		}
		l.Nodes = append(l.Nodes, n)
	}
}

func quoted1(text string) ([]byte, error) { return rawjson.Quote(text), nil }

// callNode finds the call of an id that has no twin yet, -1 for none.
func (langChain) callNode(l *layout.Layout, id string) int {
	for i, n := range l.Nodes {
		if n.Part.Kind == pipeline.PartToolCall && n.Part.CallID == id && id != "" && n.Twins == nil {
			return i
		}
	}
	return -1
}

// address reads the shapes of OpenAI, of Anthropic and of the standard blocks.
func (langChain) address(p pipeline.Part) string {
	if url := openai.Address(p); url != "" {
		return url
	}
	if url := anthropic.Address(p); url != "" {
		return url
	}
	b := []byte(p.Raw)
	for _, key := range []string{"base64", "data", "url"} {
		if s := rawjson.Root(b).Get(key).Text(); s != "" {
			return media.Base64URL(p.MediaType, s)
		}
	}
	return ""
}
