package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// OpenHands is event streams of OpenHands, in three forms: the runs of its evaluations (V0), one a line, with the
// events under "history"; the same from before events had ids; and the events of the SDK (V1), one a line. A stored
// message is one event: what the user said, one action of the agent, or what came of it. Calls of one response are
// events of their own. The system prompt and the tools stand beside the messages.
//
// A call's arguments are those that the model wrote, where the event has them; else the action's own fields. Calls
// of events without call ids are named after the event, and results after their cause; before events had ids they
// pair by their order.
//
// Written is the same kind of stream, the summary a condensation. OpenHands loads neither as one file: it keeps its
// sessions in a folder of events. To go on elsewhere, write the conversation as openai or anthropic.
const OpenHands Format = "openhands"

type openHands struct{}

func (openHands) name() Format { return OpenHands }

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

// amend makes a message of words alone of an action whose call was dropped.
func (f openHands) amend(l *layout.Layout, edits []pipeline.Edit, out []byte) ([]byte, error) {
	uncalled := false // the last edit of a part counts
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

// saidOnly makes a message out of an action whose call is dropped: the words that stood with it.
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

// Make writes an event of V1. WriteFile writes those of a V0 run in its form.
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
			"what role %s says in an event of OpenHands a model wrote: none can be made", m.Role)
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

// handsEvent is what an event says of itself.
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

// read reads an event that is for the model, sound JSON.
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
	return l.Errorf("it is neither an action nor an observation")
}

// ---- V0

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
		// The oldest files do not say who spoke: the agent does when it waits for an answer.
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
	// The input is the action's own fields. Nothing can be put in the place of them together.
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

// recorded reads an action that has the model's response with it: what the model said and called are there.
func (f openHands) recorded(l *layout.Layout, e handsEvent, at map[string]rawjson.Value) {
	n := layout.Node{List: -1, Vacant: `""`, Part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: e.action,
		CallID: e.meta.Get("tool_call_id").Text(), Name: e.meta.Get("function_name").Text(),
	}}
	message, said := f.response(e.meta)
	calls, _ := message.Lookup("tool_calls")
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
	if n.Value.IsMissing() { // a response that was not kept
		own, _ := e.args.DropKeys(func(key string, _ rawjson.Value) bool { return key == "thought" })
		n.Part.Input, n.Fixed = string(own), true
	}
	thought := at["thought"]
	switch {
	case index > 0: // the words stand with the first call of a response
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
	content, _ := message.Lookup("content")
	return message, layout.OptionalText(content)
}

// observation reads {"observation":…,"content":…}.
func (f openHands) observation(l *layout.Layout, e handsEvent, v rawjson.Value) {
	content, _ := v.Lookup("content")
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

// recall reads what OpenHands adds to the user's words: what it knows of the repository, and knowledge that a
// word of theirs called up.
func (openHands) recall(l *layout.Layout, v rawjson.Value) {
	extras, _ := v.Lookup("extras")
	for _, key := range []string{"repo_instructions", "additional_agent_instructions"} {
		at, _ := extras.Lookup(key)
		l.Nodes = append(l.Nodes, layout.OptionalText(at)...)
	}
	list, _ := extras.Lookup("microagent_knowledge")
	if !list.IsArray() {
		return
	}
	for _, el := range list.Elements() {
		at, _ := el.Lookup("content")
		l.Nodes = append(l.Nodes, layout.OptionalText(at)...)
	}
}

// ---- V1

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
		content, _ := at["observation"].Lookup("content")
		if content.IsMissing() {
			content, _ = at["observation"].Lookup("output")
		}
		failed, _ := at["observation"].Lookup("is_error")
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
		return l.Errorf("an event of kind %q is no message", e.kind)
	}
	return nil
}

func (openHands) reasoning(l *layout.Layout, said, blocks rawjson.Value) {
	if nodes := layout.OptionalText(said); nodes != nil {
		nodes[0].Part.Kind = pipeline.PartReasoning
		if blocks.IsArray() { // the same, as the vendor wants it back
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
		return l.Errorf("its llm_message has no role of a chat message")
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
		return nil, l.Errorf("a content is neither a string nor an array")
	}
	els := v.Elements()
	row := l.AddList(layout.NewList(els))
	var nodes []layout.Node
	for i, el := range els {
		if !el.IsObject() {
			return nil, l.Errorf("an entry of a content is no object")
		}
		n := layout.Node{
			List: row, Index: i, Block: true,
			Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: el.Get("type").Text(), Raw: el.Raw()},
		}
		said, _ := el.Lookup("text")
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

// ---- files

func (openHands) detect(s rawjson.Outline) bool {
	if s.Has("history[].action", "history[].observation") && !s.Has("history[].role", "trajectory") {
		return true
	}
	return s.Has("kind") && s.Has("source") && s.Has("timestamp") && s.Has("id") &&
		s.Has("llm_message", "tool_call", "observation", "system_prompt", "key", "forgotten_event_ids", "action_id")
}

func (openHands) open(s *jsonstream.Reader, o Options) source {
	m := Meta{Format: OpenHands}
	if sk := rawjson.OutlineOf(s.Window()); sk.Has("history", "instance_id", "instruction", "test_result") {
		return openArrays(s, o, m, &handsRun{}, "history")
	}
	return openLines(s, o, m, &handsRun{v1: true})
}

// handsRun reads the events of a run.
type handsRun struct {
	v1 bool
	// head are the events with the system prompt.
	head [][]byte
	// at is the place of each event: twice the number of messages before it, and one more if it is a message itself;
	// and one more again, for recentIDs has no 0.
	at recentIDs
	// counted is the usage that the next message of the agent's belongs to.
	counted *Usage
	line    int
}

func (h *handsRun) record(out *scribe, b []byte, line int) error {
	e := openHands{}.event(rawjson.Root(b))
	before := out.count
	err := h.event(out, b, e, line)
	if e.id != "" {
		h.at.add(e.id, int64(before+out.count)+1)
	}
	return err
}

func (h *handsRun) event(out *scribe, b []byte, e handsEvent, line int) error {
	v := rawjson.Root(b)
	switch {
	case e.kind == "" && e.action == "" && e.observation == "":
		return errors.New("an event without a kind, an action or an observation")
	case e.action == "system":
		h.system(out, b, e.args, "content")
		return nil
	case e.kind == "SystemPromptEvent":
		at, _ := v.Lookup("system_prompt")
		if at.IsObject() {
			h.system(out, b, at, "text")
		}
		if tools, ok := v.Lookup("tools"); ok && tools.IsArray() && !tools.IsEmpty() {
			if _, isFunction := tools.Elements()[0].Lookup("function"); isFunction {
				out.meta.Tools = tools.Raw()
			}
		}
		return nil
	case e.kind == "ConversationStateUpdateEvent":
		h.state(out, b, line)
		return nil
	case e.action == "condensation", e.kind == "Condensation":
		return h.condensation(out, b, e, line)
	case h.bookkeeping(b, e):
		out.note(line, NoteRecord, cmp.Or(e.kind, e.action, e.observation), "an event of the program, no message")
		return nil
	}
	m, err := decode(openHands{}, b)
	if err != nil {
		return err
	}
	if m.Role != pipeline.RoleAssistant {
		h.flush(out)
	}
	out.message(line, m)
	h.flush(out)
	out.usage(line, h.recordedUsage(e))
	return nil
}

// bookkeeping says whether an event is not for the model.
func (h *handsRun) bookkeeping(b []byte, e handsEvent) bool {
	if e.kind != "" {
		switch e.kind {
		case "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "UserRejectObservation",
			"CondensationSummaryEvent":
			return false
		}
		return true
	}
	switch e.action {
	case "recall", "change_agent_state", "null", "pause", "resume", "stop", "condensation_request":
		return true
	}
	switch e.observation {
	case "agent_state_changed", "null":
		return true
	case "recall":
		m, err := decode(openHands{}, b)
		return err == nil && len(m.Parts) == 0
	}
	return false
}

// system takes the system prompt, which stands beside the messages.
func (h *handsRun) system(out *scribe, b []byte, v rawjson.Value, key string) {
	if prompt, ok := v.Lookup(key); ok && prompt.IsString() {
		out.meta.System = prompt.Raw()
	}
	if tools, ok := v.Lookup("tools"); ok && tools.IsArray() {
		out.meta.Tools = tools.Raw()
	}
	h.head = append(h.head, b)
}

// state takes the figures of the last request, which come before the event that the request led to.
func (h *handsRun) state(out *scribe, b []byte, line int) {
	v := rawjson.Root(b)
	h.flush(out)
	all, _ := v.Lookup("value", "usage_to_metrics")
	if all.IsObject() {
		for key, field := range all.Fields() {
			used, ok := field.Value.Lookup("accumulated_token_usage")
			if string(key) == "condenser" || !ok || h.counted != nil {
				continue
			}
			h.counted, h.line = &Usage{
				Used: used.Get("per_turn_token").Count(), Model: used.Get("model").Text(),
			}, line
		}
	}
	out.note(line, NoteRecord, "ConversationStateUpdateEvent", "an event of the program, no message")
}

// flush gives out a figure that waited for the message that it covers.
func (h *handsRun) flush(out *scribe) {
	if h.counted != nil && out.count > 0 {
		out.usage(h.line, h.counted)
	}
	h.counted = nil
}

// recordedUsage is the usage of the response that an action of V0 came of, once for each response.
func (h *handsRun) recordedUsage(e handsEvent) *Usage {
	if e.action == "" || !e.meta.IsObject() {
		return nil
	}
	response, ok := e.meta.Lookup("model_response")
	if !ok || !response.IsObject() {
		return nil
	}
	return openAIChat{}.usage(response)
}

// condensation takes a summary. Only one that stands for a stretch without gaps is a compaction: what it left out in
// the middle of others stays as it is.
func (h *handsRun) condensation(out *scribe, b []byte, e handsEvent, line int) error {
	const what = "condensation"
	args := e.args
	if e.kind != "" {
		args = rawjson.Root(b)
	}
	m, err := decode(openHands{}, b)
	if err != nil {
		out.note(line, NoteBoundary, what, "it has no summary: what it forgets is kept here")
		return nil
	}
	from, to, n := h.forgotten(args)
	switch {
	case n == 0: // what it stands for is not in the file
		out.compaction(line, Compaction{Summary: m, Kept: out.count})
		return nil
	case from < 0:
		out.note(line, NoteBoundary, what,
			"it forgets events that are not there, or here and there among others: they are kept")
		return nil
	}
	out.compaction(line, Compaction{Summary: m, KeptFirst: from, Kept: out.count - to})
	return nil
}

// forgotten gives the messages from+1 to to that a condensation stands for, and the number of events that it names;
// from is -1 when they are no stretch.
func (h *handsRun) forgotten(args rawjson.Value) (from, to, n int) {
	place := func(id string) (before, upTo int) {
		at := int(h.at.get(id)) - 1
		if at < 0 {
			return -1, -1
		}
		return at / 2, (at + 1) / 2
	}
	if at, ok := args.Lookup("forgotten_events_start_id"); ok && at.IsNumber() {
		from, _ = place(at.Numeral())
		_, to = place(args.Get("forgotten_events_end_id").Numeral())
		if to < from {
			from = -1
		}
		return from, to, 1
	}
	ids, _ := args.Lookup("forgotten_event_ids")
	if !ids.IsArray() {
		return 0, 0, 0
	}
	els := ids.Elements()
	messages := map[int]bool{}
	from = -1
	for _, el := range els {
		before, upTo := place(cmp.Or(el.Text(), el.Numeral()))
		if before < 0 {
			return -1, 0, len(els)
		}
		if upTo > before {
			messages[upTo] = true
		}
		if from < 0 || before < from {
			from = before
		}
		to = max(to, upTo)
	}
	if len(messages) < to-from {
		from = -1
	}
	return from, to, len(els)
}

func (h *handsRun) end(out *scribe, around []byte) error {
	h.flush(out)
	switch {
	case around != nil:
		v := rawjson.Root(around)
		out.meta.ID = v.Get("instance_id").Text()
		if out.meta.Model == "" {
			out.meta.Model = v.Get("metadata", "llm_config", "model").Text()
		}
		// The events with the system prompt stay where they were.
		out.meta.Envelope = rawjson.PutArray(around, lineArray(h.head...), "history")
	case h.v1 && h.head != nil:
		out.meta.Envelope = lineArray(h.head...)
	}
	*h = handsRun{v1: h.v1}
	return nil
}

// ---- writing

func (f openHands) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	at := firstStored(all, "timestamp")
	e := out.Meta.Envelope
	run := len(e) > 0 && e[0] == '{'
	for i, x := range all {
		if x.made == nil {
			continue
		}
		if run {
			x.native = f.madeV0(*x.made, i)
		}
		if all[i].native = x.native; at != nil {
			all[i].native = rawjson.AddPair(x.native, "timestamp", at)
		}
	}
	if !run {
		return rawjson.Lines(append(envelopeLines(e), nativesOf(all)...)), nil
	}
	// One run a line, as it came, the events with the system prompt first.
	natives := nativesOf(all)
	if history, ok := rawjson.Root(e).Lookup("history"); ok && history.IsArray() {
		natives = append(envelopeLines(history.Raw()), natives...)
	}
	return rawjson.OneLine(rawjson.PutArray(e, rawjson.ArrayOf(natives), "history")), nil
}

// madeV0 writes an event of V0. Its id is below those of all events that were.
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
