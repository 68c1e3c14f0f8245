package transcript

import (
	"fmt"
	"strconv"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// action reads {"action":…,"args":{…}}, or in the oldest files the fields of args beside action.
func (f openHands) action(l *layout.Layout, e handsEvent, v rawjson.Value) error {
	args := e.args
	if !args.IsObject() {
		args = v
	}
	at := args.Members()
	l.Role = "assistant"
	switch {
	case e.action == "message":
		// The oldest files do not record the role: a message is the agent's if it waits for an answer.
		if e.source != "agent" && (e.source != "" || !at["wait_for_response"].IsTrue()) {
			l.Role = "user"
		}
		l.Nodes = layout.OptionalText(at["content"])
		for _, key := range []string{"image_urls", "images_urls"} {
			f.images(l, at[key])
		}
		return nil
	case e.action == "condensation":
		l.Role = "user"
		if l.Nodes = layout.OptionalText(at["summary"]); l.Nodes == nil {
			return l.Errorf("a condensation has no summary")
		}
		return nil
	case e.source == "user":
		l.Role = "user"
		l.Nodes = layout.OptionalText(at["command"])
		return nil
	}
	if e.meta.IsObject() {
		f.recorded(l, e, at)
		return nil
	}
	l.Nodes = layout.OptionalText(at["thought"])
	n := layout.Node{List: -1, Part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: e.action, Name: e.action, CallID: e.id,
	}}
	// The input consists of several fields of the action, which cannot be replaced together.
	own, _ := args.DropKeys(func(key string, _ rawjson.Value) bool {
		return key == "thought" || key == "action" || key == "id" || key == "timestamp" || key == "source" ||
			key == "message"
	})
	n.Part.Input, n.Fixed = string(own), true
	l.Nodes = append(l.Nodes, n)
	return nil
}

func (openHands) images(l *layout.Layout, v rawjson.Value) {
	if !v.IsArray() {
		return
	}
	els := v.Elements()
	row := l.AddList(layout.NewList(els))
	for i, el := range els {
		if !el.IsString() {
			continue
		}
		n := layout.Node{
			List: row, Index: i, Block: true, Fixed: true,
			Part: pipeline.Part{Kind: pipeline.PartImage, Type: "image_url", Raw: el.Raw()},
		}
		media.FromAddress(&n.Part, el.Text())
		l.Nodes = append(l.Nodes, n)
	}
}

// recorded reads an action that has the model's response, with its text and its calls.
func (f openHands) recorded(l *layout.Layout, e handsEvent, at map[string]rawjson.Value) {
	n := layout.Node{List: -1, Vacant: `""`, Part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: e.action,
		CallID: e.meta.Get("tool_call_id").Text(), Name: e.meta.Get("function_name").Text(),
	}}
	message, said := f.response(e.meta)
	calls := message.Get("tool_calls")
	index := 0
	if calls.IsArray() {
		for i, el := range calls.Elements() {
			if el.Get("id").Text() != n.Part.CallID {
				continue
			}
			index = i
			if in, ok := el.Lookup("function", "arguments"); ok {
				n.Value, n.Part.Input, n.Part.Raw = in, in.TextOrRaw(), el.Raw()
			}
			break
		}
	}
	if n.Value.IsMissing() { // the response was not recorded
		own, _ := e.args.DropKeys(func(key string, _ rawjson.Value) bool { return key == "thought" })
		n.Part.Input, n.Fixed = string(own), true
	}
	thought := at["thought"]
	switch {
	case index > 0: // the first call of a response has its text
	case said != nil:
		first := said[0]
		if thought.IsString() && !thought.IsEmpty() {
			first.Twins = []layout.Node{{List: -1, Value: thought, Vacant: `""`}}
		}
		l.Nodes = append(l.Nodes, first)
	case message.IsMissing():
		l.Nodes = append(l.Nodes, layout.OptionalText(thought)...)
	}
	l.Nodes = append(l.Nodes, n)
}

// response finds the message of a recorded response, and its text.
func (openHands) response(meta rawjson.Value) (message rawjson.Value, said []layout.Node) {
	choices, ok := meta.Lookup("model_response", "choices")
	if !ok || !choices.IsArray() {
		return rawjson.Value{}, nil
	}
	els := choices.Elements()
	if len(els) == 0 {
		return rawjson.Value{}, nil
	}
	if message, ok = els[0].Lookup("message"); !ok || !message.IsObject() {
		return rawjson.Value{}, nil
	}
	content := message.Get("content")
	return message, layout.OptionalText(content)
}

// observation reads {"observation":…,"content":…}.
func (f openHands) observation(l *layout.Layout, e handsEvent, v rawjson.Value) {
	content := v.Get("content")
	if e.observation == "recall" {
		l.Role = "user"
		f.recall(l, v)
		return
	}
	n := layout.Node{
		List: -1, Value: content, Insert: v.End() - 1, Content: layout.OptionalText(content),
		Part: pipeline.Part{
			Kind: pipeline.PartToolResult, Type: e.observation, CallID: e.cause, IsError: e.observation == "error",
		},
	}
	if e.meta.IsObject() {
		n.Part.CallID, n.Part.Name = e.meta.Get("tool_call_id").Text(),
			e.meta.Get("function_name").Text()
	}
	l.Role = "tool"
	l.Nodes = []layout.Node{n}
}

// recall reads what OpenHands adds to the user's message: information about the repository, and knowledge that a
// keyword of the message triggered.
func (openHands) recall(l *layout.Layout, v rawjson.Value) {
	extras := v.Get("extras")
	for _, key := range []string{"repo_instructions", "additional_agent_instructions"} {
		at := extras.Get(key)
		l.Nodes = append(l.Nodes, layout.OptionalText(at)...)
	}
	list := extras.Get("microagent_knowledge")
	if !list.IsArray() {
		return
	}
	for _, el := range list.Elements() {
		at := el.Get("content")
		l.Nodes = append(l.Nodes, layout.OptionalText(at)...)
	}
}

// madeV0 writes an event of V0. Its id is below those of all events of the file.
func (openHands) madeV0(m pipeline.Made, n int) []byte {
	id := strconv.Itoa(-1 - n)
	switch {
	case m.Role == pipeline.RoleTool:
		observation := "run"
		if m.IsError {
			observation = "error"
		}
		return fmt.Appendf(nil, `{"id":%s,"source":"environment","observation":"%s","content":%s,`+
			`"tool_call_metadata":{"function_name":%s,"tool_call_id":%s}}`, id, observation, rawjson.Quote(m.Text),
			rawjson.Quote(m.Name), rawjson.Quote(m.CallID))
	case m.Kind == pipeline.KindSummary:
		return fmt.Appendf(nil, `{"id":%s,"source":"agent","action":"condensation","args":{"forgotten_event_ids":[`+
			`],"summary":%s,"summary_offset":0}}`, id, rawjson.Quote(m.Text))
	}
	return fmt.Appendf(nil, `{"id":%s,"source":"user","action":"message","args":{"content":%s,"image_urls":null}}`, id,
		rawjson.Quote(m.Text))
}
