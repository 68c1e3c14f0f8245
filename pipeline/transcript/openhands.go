package transcript

import (
	"cmp"
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// openHands is the format of event streams of OpenHands, in three forms: the runs of its evaluations (V0), one per
// line, with the events under "history"; older runs whose events have no ids; and the events of the SDK (V1), one per
// line. A stored message is one event: a message of the user, one action of the agent, or its observation. Calls of
// one response are separate events. The system prompt and the tools are not messages.
//
// The arguments of a call are those that the model wrote, if the event has them, else the fields of the action. The
// ids of calls without one are derived from the event, and those of results from their cause. Without event ids they
// are matched by their order.
//
// Output.File writes the same kind of stream, with the summary as a condensation. OpenHands does not load such a
// file: it stores a session as a folder of events. To continue elsewhere, write the conversation as openai or
// anthropic.
type openHands struct{}

func (openHands) name() Format { return OpenHands }

// read reads an event that is for the model, valid JSON.
func (f openHands) read(l *layout.Layout) error {
	l.Input = layout.InputAsBefore
	v := rawjson.Root(l.Native)
	e := f.event(v)
	switch {
	case e.kind != "":
		return f.v1(l, e, v)
	case e.action != "":
		return f.action(l, e, v)
	case e.observation != "":
		f.observation(l, e, v)
		return nil
	}
	return l.Errorf("the event is neither an action nor an observation")
}

func (f openHands) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	e := f.event(rawjson.Root(l.Native))
	m.ID = e.id
	switch {
	case e.action == "condensation", e.kind == "Condensation", e.kind == "CondensationSummaryEvent":
		m.Kind = pipeline.KindSummary
	case e.observation == "recall":
		m.Kind = pipeline.KindReminder
	case e.action == "run" && m.Role == pipeline.RoleUser:
		m.Kind = pipeline.KindSynthetic
	}
	return m
}

// amend turns an action whose call was dropped into a message with its text only.
func (f openHands) amend(l *layout.Layout, edits []pipeline.Edit, out []byte) ([]byte, error) {
	uncalled := false // the last edit of a part applies
	for _, e := range edits {
		if l.Nodes[e.Part].Part.Kind == pipeline.PartToolCall {
			uncalled = e.Op == pipeline.EditDrop
		}
	}
	if !uncalled {
		return out, nil
	}
	return f.saidOnly(out)
}

// saidOnly returns a message with only the text of an action whose call is dropped.
func (f openHands) saidOnly(native []byte) ([]byte, error) {
	l, err := layoutOf(f, native)
	if err != nil {
		return nil, err
	}
	v := rawjson.Root(native)
	e := f.event(v)
	kept, _ := v.KeepKeys("id", "timestamp")
	if e.kind != "" {
		in, _ := v.KeepKeys("reasoning_content", "thinking_blocks")
		said := []byte(`[]`)
		if thought, ok := v.Lookup("thought"); ok {
			said = thought.Raw()
		}
		in = rawjson.AddPair(rawjson.AddPair(in, "role", []byte(`"assistant"`)), "content", said)
		return rawjson.AddPair(rawjson.AddPair(rawjson.AddPair(kept, "source", []byte(`"agent"`)), "llm_message", in),
			"kind",
			[]byte(`"MessageEvent"`)), nil
	}
	said := []byte(`""`)
	for _, n := range l.Nodes {
		if n.Part.Kind == pipeline.PartText {
			said = n.Value.Raw()
		}
	}
	args := fmt.Appendf(nil, `{"content":%s,"image_urls":null,"wait_for_response":true}`, said)
	return rawjson.AddPair(rawjson.AddPair(rawjson.AddPair(kept, "source", []byte(`"agent"`)), "action",
			[]byte(`"message"`)), "args", args),
		nil
}

// Make writes an event of V1. Output.File rewrites it for a V0 run.
func (openHands) Make(m pipeline.Made) ([]byte, error) {
	id := rawjson.Quote(madeUUID("openhands", string(m.Role), string(m.Kind), m.CallID, m.Text))
	switch {
	case m.Role == pipeline.RoleTool && m.IsError:
		return fmt.Appendf(
			nil, `{"id":%s,"source":"agent","error":%s,"tool_name":%s,"tool_call_id":%s,"kind":"AgentErrorEvent"}`, id,
			rawjson.Quote(m.Text), rawjson.Quote(m.Name), rawjson.Quote(m.CallID)), nil
	case m.Role == pipeline.RoleTool:
		return fmt.Appendf(nil, `{"id":%s,"source":"environment","tool_name":%s,"tool_call_id":%s,"observation":{`+
			`"content":[%s],"is_error":false},"kind":"ObservationEvent"}`, id, rawjson.Quote(m.Name),
			rawjson.Quote(m.CallID), layout.TextBlock(m.Text)), nil
	case m.Role != pipeline.RoleUser:
		return nil, pipeline.Errorf(pipeline.Internal,
			"an event of OpenHands with role %s is written by a model and cannot be made", m.Role)
	}
	if err := layout.MustSay(m); err != nil {
		return nil, err
	}
	if m.Kind == pipeline.KindSummary {
		return fmt.Appendf(nil, `{"id":%s,"source":"environment","forgotten_event_ids":[],"summary":%s,`+
			`"summary_offset":0,"llm_response_id":"","kind":"Condensation"}`, id, rawjson.Quote(m.Text)), nil
	}
	return fmt.Appendf(
		nil, `{"id":%s,"source":"user","llm_message":{"role":"user","content":[%s]},"kind":"MessageEvent"}`, id,
		layout.TextBlock(m.Text)), nil
}

// handsEvent has the values of an event that the format reads.
type handsEvent struct {
	id, source, action, observation, kind string
	cause                                 string
	args, meta                            rawjson.Value // of an action; the record of the call
}

func (openHands) event(v rawjson.Value) handsEvent {
	e := handsEvent{}
	for key, field := range v.Fields() {
		switch string(key) {
		case "id":
			e.id = cmp.Or(field.Value.Text(), field.Value.Numeral())
		case "cause":
			e.cause = cmp.Or(field.Value.Text(), field.Value.Numeral())
		case "source":
			e.source = field.Value.Text()
		case "action":
			e.action = field.Value.Text() // an object in V1
		case "observation":
			e.observation = field.Value.Text()
		case "kind":
			e.kind = field.Value.Text()
		case "args":
			e.args = field.Value
		case "tool_call_metadata":
			e.meta = field.Value
		}
	}
	return e
}

// address reads {"image_urls":[…]}, or an address of its own.
func (openHands) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	v := rawjson.Root(b)
	if s, ok := v.Str(); ok {
		return s
	}
	if list, ok := v.Lookup("image_urls"); ok && list.IsArray() {
		if els := list.Elements(); len(els) > 0 {
			return els[0].Text()
		}
	}
	return ""
}
