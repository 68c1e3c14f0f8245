package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"precis/pipeline"
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

type openHandsCodec struct{}

func (openHandsCodec) Format() Format { return OpenHands }

func (openHandsCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(OpenHands, native, decodeOpenHands)
}

func decodeOpenHands(native []byte) (pipeline.Message, error) {
	l, err := openHandsLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	e := readHandsEvent(native, root(native))
	m.ID = e.id
	switch {
	case e.action == "condensation", e.kind == "Condensation", e.kind == "CondensationSummaryEvent":
		m.Kind = pipeline.KindSummary
	case e.observation == "recall":
		m.Kind = pipeline.KindReminder
	case e.action == "run" && m.Role == pipeline.RoleUser:
		m.Kind = pipeline.KindSynthetic
	}
	return m, nil
}

func (openHandsCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := whole(m.Native); err != nil {
		return nil, parseError(OpenHands, "%v", err)
	}
	l, err := openHandsLayout(m.Native)
	if err != nil {
		return nil, err
	}
	out, err := l.edit(edits, func(n node, text string) ([]byte, error) {
		if kind(l.native, n.value) == '"' {
			return quote(text), nil
		}
		return anthropicInput(n, text)
	})
	if err != nil || out == nil {
		return nil, err
	}
	uncalled := false // the last edit of a part counts
	for _, e := range edits {
		if l.nodes[e.Part].part.Kind == pipeline.PartToolCall {
			uncalled = e.Op == pipeline.EditDrop
		}
	}
	if !uncalled {
		return out, nil
	}
	return saidOnly(out)
}

// saidOnly makes a message out of an action whose call is dropped: the words that stood with it.
func saidOnly(native []byte) ([]byte, error) {
	l, err := openHandsLayout(native)
	if err != nil {
		return nil, err
	}
	b, v := native, root(native)
	e := readHandsEvent(b, v)
	kept, _ := keepKeys(b, v, "id", "timestamp")
	if e.kind != "" {
		in, _ := keepKeys(b, v, "reasoning_content", "thinking_blocks")
		said := []byte("[]")
		if thought, ok := get(b, v, "thought"); ok {
			said = thought.of(b)
		}
		in = addPair(addPair(in, "role", []byte(`"assistant"`)), "content", said)
		return addPair(addPair(addPair(kept, "source", []byte(`"agent"`)), "llm_message", in), "kind",
			[]byte(`"MessageEvent"`)), nil
	}
	said := []byte(`""`)
	for _, n := range l.nodes {
		if n.part.Kind == pipeline.PartText {
			said = n.value.of(b)
		}
	}
	args := append(append([]byte(`{"content":`), said...), `,"image_urls":null,"wait_for_response":true}`...)
	return addPair(addPair(addPair(kept, "source", []byte(`"agent"`)), "action", []byte(`"message"`)), "args", args),
		nil
}

// Make writes an event of V1. WriteFile writes those of a V0 run in its form.
func (openHandsCodec) Make(m pipeline.Made) ([]byte, error) {
	id := quote(madeUUID("openhands", string(m.Role), string(m.Kind), m.CallID, m.Text))
	switch {
	case m.Role == pipeline.RoleTool && m.IsError:
		return fmt.Appendf(
			nil, `{"id":%s,"source":"agent","error":%s,"tool_name":%s,"tool_call_id":%s,"kind":"AgentErrorEvent"}`,
			id, quote(m.Text), quote(m.Name), quote(m.CallID)), nil
	case m.Role == pipeline.RoleTool:
		return fmt.Appendf(nil, `{"id":%s,"source":"environment","tool_name":%s,"tool_call_id":%s,"observation":{`+
			`"content":[%s],"is_error":false},"kind":"ObservationEvent"}`,
			id, quote(m.Name), quote(m.CallID), textBlock(m.Text)), nil
	case m.Role != pipeline.RoleUser:
		return nil, pipeline.Errorf(pipeline.Internal,
			"what role %s says in an event of OpenHands a model wrote: none can be made", m.Role)
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	if m.Kind == pipeline.KindSummary {
		return fmt.Appendf(nil, `{"id":%s,"source":"environment","forgotten_event_ids":[],"summary":%s,`+
			`"summary_offset":0,"llm_response_id":"","kind":"Condensation"}`, id, quote(m.Text)), nil
	}
	return fmt.Appendf(
		nil, `{"id":%s,"source":"user","llm_message":{"role":"user","content":[%s]},"kind":"MessageEvent"}`, id,
		textBlock(m.Text)), nil
}

// handsEvent is what an event says of itself.
type handsEvent struct {
	id, source, action, observation, kind string
	cause                                 string
	args, meta                            span // of an action; the record of the call
}

func readHandsEvent(b []byte, v span) handsEvent {
	e := handsEvent{}
	for key, f := range fields(b, v) {
		switch string(key) {
		case "id":
			e.id = cmp.Or(text(b, f.value), numeral(b, f.value))
		case "cause":
			e.cause = cmp.Or(text(b, f.value), numeral(b, f.value))
		case "source":
			e.source = text(b, f.value)
		case "action":
			e.action = text(b, f.value) // an object in V1
		case "observation":
			e.observation = text(b, f.value)
		case "kind":
			e.kind = text(b, f.value)
		case "args":
			e.args = f.value
		case "tool_call_metadata":
			e.meta = f.value
		}
	}
	return e
}

// openHandsLayout reads an event that is for the model, sound JSON.
func openHandsLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(OpenHands, "it is no object")
	}
	e := readHandsEvent(b, v)
	switch {
	case e.kind != "":
		return l, l.handsV1(e, v)
	case e.action != "":
		return l, l.handsAction(e, v)
	case e.observation != "":
		l.handsObservation(e, v)
		return l, nil
	}
	return nil, parseError(OpenHands, "it is neither an action nor an observation")
}

// optional gives a text of its own where there is one.
func (l *layout) optional(v span) []node {
	if kind(l.native, v) != '"' || v.end-v.start == 2 {
		return nil
	}
	return []node{l.literalNode(v)}
}

// ---- V0

// handsAction reads {"action":…,"args":{…}}, or in the oldest files the fields of args beside action.
func (l *layout) handsAction(e handsEvent, v span) error {
	b := l.native
	args := e.args
	if kind(b, args) != '{' {
		args = v
	}
	at := map[string]span{}
	for key, f := range fields(b, args) {
		at[string(key)] = f.value
	}
	l.role = "assistant"
	switch {
	case e.action == "message":
		// The oldest files do not say who spoke: the agent does when it waits for an answer.
		if e.source != "agent" && (e.source != "" || kind(b, at["wait_for_response"]) != 't') {
			l.role = "user"
		}
		l.nodes = l.optional(at["content"])
		for _, key := range []string{"image_urls", "images_urls"} {
			l.handsImages(at[key])
		}
		return nil
	case e.action == "condensation":
		l.role = "user"
		if l.nodes = l.optional(at["summary"]); l.nodes == nil {
			return parseError(OpenHands, "a condensation has no summary")
		}
		return nil
	case e.source == "user":
		l.role = "user"
		l.nodes = l.optional(at["command"])
		return nil
	}
	if kind(b, e.meta) == '{' {
		l.handsRecorded(e, at)
		return nil
	}
	l.nodes = l.optional(at["thought"])
	n := node{list: -1, part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: e.action, Name: e.action, CallID: e.id,
	}}
	// The input is the action's own fields. Nothing can be put in the place of them together.
	own, _ := dropKeys(b, args, func(key string, _ span) bool {
		return key == "thought" || key == "action" || key == "id" || key == "timestamp" || key == "source" ||
			key == "message"
	})
	n.part.Input, n.fixed = string(own), true
	l.nodes = append(l.nodes, n)
	return nil
}

func (l *layout) handsImages(v span) {
	b := l.native
	if kind(b, v) != '[' {
		return
	}
	els := elements(b, v)
	row := l.addList(newList(els))
	for i, el := range els {
		if kind(b, el) != '"' {
			continue
		}
		n := node{
			list: row, index: i, block: true, fixed: true,
			part: pipeline.Part{Kind: pipeline.PartImage, Type: "image_url", Raw: el.of(b)},
		}
		fromAddress(&n.part, text(b, el))
		l.nodes = append(l.nodes, n)
	}
}

// handsRecorded reads an action that has the model's response with it: what the model said and called are there.
func (l *layout) handsRecorded(e handsEvent, at map[string]span) {
	b := l.native
	n := node{list: -1, vacant: `""`, part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: e.action,
		CallID: text(b, first(get(b, e.meta, "tool_call_id"))), Name: text(b, first(get(b, e.meta, "function_name"))),
	}}
	message, said := l.handsResponse(e.meta)
	calls, _ := get(b, message, "tool_calls")
	index := 0
	if kind(b, calls) == '[' {
		for i, el := range elements(b, calls) {
			if text(b, first(get(b, el, "id"))) != n.part.CallID {
				continue
			}
			index = i
			if in, ok := dig(b, el, "function", "arguments"); ok {
				n.value, n.part.Input, n.part.Raw = in, inputText(b, in), el.of(b)
			}
			break
		}
	}
	if n.value.empty() { // a response that was not kept
		own, _ := dropKeys(b, e.args, func(key string, _ span) bool { return key == "thought" })
		n.part.Input, n.fixed = string(own), true
	}
	thought := at["thought"]
	switch {
	case index > 0: // the words stand with the first call of a response
	case said != nil:
		first := said[0]
		if kind(b, thought) == '"' && thought.end-thought.start > 2 {
			first.twins = []node{{list: -1, value: thought, vacant: `""`}}
		}
		l.nodes = append(l.nodes, first)
	case message.empty():
		l.nodes = append(l.nodes, l.optional(thought)...)
	}
	l.nodes = append(l.nodes, n)
}

// handsResponse finds the message of a recorded response, and its text.
func (l *layout) handsResponse(meta span) (message span, said []node) {
	b := l.native
	choices, ok := dig(b, meta, "model_response", "choices")
	if !ok || kind(b, choices) != '[' {
		return span{}, nil
	}
	els := elements(b, choices)
	if len(els) == 0 {
		return span{}, nil
	}
	if message, ok = get(b, els[0], "message"); !ok || kind(b, message) != '{' {
		return span{}, nil
	}
	content, _ := get(b, message, "content")
	return message, l.optional(content)
}

// handsObservation reads {"observation":…,"content":…}.
func (l *layout) handsObservation(e handsEvent, v span) {
	b := l.native
	content, _ := get(b, v, "content")
	if e.observation == "recall" {
		l.role = "user"
		l.handsRecall(v)
		return
	}
	n := node{list: -1, value: content, insert: v.end - 1, content: l.optional(content), part: pipeline.Part{
		Kind: pipeline.PartToolResult, Type: e.observation, CallID: e.cause, IsError: e.observation == "error",
	}}
	if kind(b, e.meta) == '{' {
		n.part.CallID, n.part.Name = text(b, first(get(b, e.meta, "tool_call_id"))),
			text(b, first(get(b, e.meta, "function_name")))
	}
	l.role = "tool"
	l.nodes = []node{n}
}

// handsRecall reads what OpenHands adds to the user's words: what it knows of the repository, and knowledge that a
// word of theirs called up.
func (l *layout) handsRecall(v span) {
	b := l.native
	extras, _ := get(b, v, "extras")
	for _, key := range []string{"repo_instructions", "additional_agent_instructions"} {
		at, _ := get(b, extras, key)
		l.nodes = append(l.nodes, l.optional(at)...)
	}
	list, _ := get(b, extras, "microagent_knowledge")
	if kind(b, list) != '[' {
		return
	}
	for _, el := range elements(b, list) {
		at, _ := get(b, el, "content")
		l.nodes = append(l.nodes, l.optional(at)...)
	}
}

// ---- V1

func (l *layout) handsV1(e handsEvent, v span) error {
	b := l.native
	at := map[string]span{}
	for key, f := range fields(b, v) {
		at[string(key)] = f.value
	}
	field := func(key string) string { return text(b, at[key]) }
	switch e.kind {
	case "MessageEvent":
		return l.handsMessage(at)
	case "ActionEvent":
		l.role = "assistant"
		l.handsReasoning(at["reasoning_content"], at["thinking_blocks"])
		nodes, err := l.handsContent(at["thought"])
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, nodes...)
		n := node{
			list: -1, vacant: `"{}"`,
			part: pipeline.Part{
				Kind: pipeline.PartToolCall, Type: "function", CallID: field("tool_call_id"),
				Name: field("tool_name"),
			},
		}
		if in, ok := get(b, at["tool_call"], "arguments"); ok {
			n.value, n.part.Input = in, inputText(b, in)
		} else if in, ok := dig(b, at["tool_call"], "function", "arguments"); ok {
			n.value, n.part.Input = in, inputText(b, in)
		} else {
			n.part.Input, n.fixed = string(at["action"].of(b)), true
		}
		l.nodes = append(l.nodes, n)
	case "ObservationEvent":
		l.role = "tool"
		content, _ := get(b, at["observation"], "content")
		if content.empty() {
			content, _ = get(b, at["observation"], "output")
		}
		failed, _ := get(b, at["observation"], "is_error")
		n := node{list: -1, value: content, part: pipeline.Part{
			Kind: pipeline.PartToolResult, CallID: field("tool_call_id"), Name: field("tool_name"),
			IsError: kind(b, failed) == 't',
		}}
		if kind(b, at["observation"]) == '{' {
			n.insert = at["observation"].end - 1
		}
		if kind(b, content) == '[' {
			n.as = func(text string) ([]byte, error) {
				return append(append([]byte{'['}, textBlock(text)...), ']'),
					nil
			}
		}
		nodes, err := l.handsContent(content)
		if err != nil {
			return err
		}
		n.content = nodes
		l.nodes = []node{n}
	case "AgentErrorEvent", "UserRejectObservation":
		l.role = "tool"
		said := at["error"]
		if e.kind == "UserRejectObservation" {
			said = at["rejection_reason"]
		}
		l.nodes = []node{{
			list: -1, value: said, insert: v.end - 1, key: "error", content: l.optional(said),
			part: pipeline.Part{
				Kind: pipeline.PartToolResult, CallID: field("tool_call_id"), Name: field("tool_name"), IsError: true,
			},
		}}
	case "Condensation", "CondensationSummaryEvent":
		l.role = "user"
		if l.nodes = l.optional(at["summary"]); l.nodes == nil {
			return parseError(OpenHands, "a condensation has no summary")
		}
	default:
		return parseError(OpenHands, "an event of kind %q is no message", e.kind)
	}
	return nil
}

func (l *layout) handsReasoning(said, blocks span) {
	b := l.native
	if nodes := l.optional(said); nodes != nil {
		nodes[0].part.Kind = pipeline.PartReasoning
		if kind(b, blocks) == '[' { // the same, as the vendor wants it back
			nodes[0].twins = []node{{list: -1, value: blocks, vacant: "[]"}}
		}
		l.nodes = append(l.nodes, nodes...)
	}
}

func (l *layout) handsMessage(at map[string]span) error {
	b := l.native
	in := map[string]span{}
	if kind(b, at["llm_message"]) == '{' {
		for key, f := range fields(b, at["llm_message"]) {
			in[string(key)] = f.value
		}
	}
	switch l.role = text(b, in["role"]); l.role {
	case "user", "assistant", "system", "tool":
	default:
		return parseError(OpenHands, "its llm_message has no role of a chat message")
	}
	l.handsReasoning(in["reasoning_content"], in["thinking_blocks"])
	for _, v := range []span{in["content"], at["extended_content"]} {
		nodes, err := l.handsContent(v)
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, nodes...)
	}
	return nil
}

// handsContent reads an array of text and image contents, or a string.
func (l *layout) handsContent(v span) ([]node, error) {
	b := l.native
	switch kind(b, v) {
	case 0, 'n':
		return nil, nil
	case '"':
		return l.optional(v), nil
	case '[':
	default:
		return nil, parseError(OpenHands, "a content is neither a string nor an array")
	}
	els := elements(b, v)
	row := l.addList(newList(els))
	var nodes []node
	for i, el := range els {
		if kind(b, el) != '{' {
			return nil, parseError(OpenHands, "an entry of a content is no object")
		}
		n := node{
			list: row, index: i, block: true,
			part: pipeline.Part{Kind: pipeline.PartOpaque, Type: text(b, first(get(b, el, "type"))), Raw: el.of(b)},
		}
		said, _ := get(b, el, "text")
		switch {
		case n.part.Type == "text" && kind(b, said) == '"':
			n.part.Kind, n.part.Text, n.value = pipeline.PartText, text(b, said), said
		case n.part.Type == "image":
			n.part.Kind = pipeline.PartImage
			fromAddress(&n.part, openHandsCodec{}.address(n.part))
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// address reads {"image_urls":[…]}, or an address of its own.
func (openHandsCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	v := root(b)
	if s, ok := str(b, v); ok {
		return s
	}
	if list, ok := get(b, v, "image_urls"); ok && kind(b, list) == '[' {
		if els := elements(b, list); len(els) > 0 {
			return text(b, els[0])
		}
	}
	return ""
}

// ---- files

func detectOpenHands(s sketched) bool {
	if s.has("history[].action", "history[].observation") && !s.has("history[].role", "trajectory") {
		return true
	}
	return s.has("kind") && s.has("source") && s.has("timestamp") && s.has("id") &&
		s.has("llm_message", "tool_call", "observation", "system_prompt", "key", "forgotten_event_ids", "action_id")
}

func openOpenHands(s *stream, o Options) source {
	m := Meta{Format: OpenHands}
	if sk := sketch(s.window()); sk.has("history", "instance_id", "instruction", "test_result") {
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
	e := readHandsEvent(b, root(b))
	before := out.count
	err := h.event(out, b, e, line)
	if e.id != "" {
		h.at.add(e.id, int64(before+out.count)+1)
	}
	return err
}

func (h *handsRun) event(out *scribe, b []byte, e handsEvent, line int) error {
	v := root(b)
	switch {
	case e.kind == "" && e.action == "" && e.observation == "":
		return errors.New("an event without a kind, an action or an observation")
	case e.action == "system":
		h.system(out, b, e.args, "content")
		return nil
	case e.kind == "SystemPromptEvent":
		at, _ := get(b, v, "system_prompt")
		if kind(b, at) == '{' {
			h.system(out, b, at, "text")
		}
		if tools, ok := get(b, v, "tools"); ok && kind(b, tools) == '[' && len(elements(b, tools)) > 0 {
			if _, isFunction := get(b, elements(b, tools)[0], "function"); isFunction {
				out.meta.Tools = tools.of(b)
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
	m, err := decodeOpenHands(b)
	if err != nil {
		return err
	}
	if m.Role != pipeline.RoleAssistant {
		h.flush(out)
	}
	out.message(line, m)
	h.flush(out)
	out.usage(line, h.recordedUsage(b, e))
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
		m, err := decodeOpenHands(b)
		return err == nil && len(m.Parts) == 0
	}
	return false
}

// system takes the system prompt, which stands beside the messages.
func (h *handsRun) system(out *scribe, b []byte, v span, key string) {
	if prompt, ok := get(b, v, key); ok && kind(b, prompt) == '"' {
		out.meta.System = prompt.of(b)
	}
	if tools, ok := get(b, v, "tools"); ok && kind(b, tools) == '[' {
		out.meta.Tools = tools.of(b)
	}
	h.head = append(h.head, b)
}

// state takes the figures of the last request, which come before the event that the request led to.
func (h *handsRun) state(out *scribe, b []byte, line int) {
	v := root(b)
	h.flush(out)
	all, _ := dig(b, v, "value", "usage_to_metrics")
	if kind(b, all) == '{' {
		for key, f := range fields(b, all) {
			used, ok := get(b, f.value, "accumulated_token_usage")
			if string(key) == "condenser" || !ok || h.counted != nil {
				continue
			}
			h.counted, h.line = &Usage{
				Used: number(b, first(get(b, used, "per_turn_token"))), Model: text(b, first(get(b, used, "model"))),
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
func (h *handsRun) recordedUsage(b []byte, e handsEvent) *Usage {
	if e.action == "" || kind(b, e.meta) != '{' {
		return nil
	}
	response, ok := get(b, e.meta, "model_response")
	if !ok || kind(b, response) != '{' {
		return nil
	}
	return openAIUsage(b, response)
}

// condensation takes a summary. Only one that stands for a stretch without gaps is a compaction: what it left out in
// the middle of others stays as it is.
func (h *handsRun) condensation(out *scribe, b []byte, e handsEvent, line int) error {
	const what = "condensation"
	args := e.args
	if e.kind != "" {
		args = root(b)
	}
	m, err := decodeOpenHands(b)
	if err != nil {
		out.note(line, NoteBoundary, what, "it has no summary: what it forgets is kept here")
		return nil
	}
	from, to, n := h.forgotten(b, args)
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
func (h *handsRun) forgotten(b []byte, args span) (from, to, n int) {
	place := func(id string) (before, upTo int) {
		at := int(h.at.get(id)) - 1
		if at < 0 {
			return -1, -1
		}
		return at / 2, (at + 1) / 2
	}
	if at, ok := get(b, args, "forgotten_events_start_id"); ok && kind(b, at) == '0' {
		from, _ = place(numeral(b, at))
		_, to = place(numeral(b, first(get(b, args, "forgotten_events_end_id"))))
		if to < from {
			from = -1
		}
		return from, to, 1
	}
	ids, _ := get(b, args, "forgotten_event_ids")
	if kind(b, ids) != '[' {
		return 0, 0, 0
	}
	els := elements(b, ids)
	messages := map[int]bool{}
	from = -1
	for _, el := range els {
		before, upTo := place(cmp.Or(text(b, el), numeral(b, el)))
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
		v := root(around)
		out.meta.ID = text(around, first(get(around, v, "instance_id")))
		if out.meta.Model == "" {
			out.meta.Model = text(around, first(dig(around, v, "metadata", "llm_config", "model")))
		}
		// The events with the system prompt stay where they were.
		out.meta.Envelope = putArray(around, lineArray(h.head...), "history")
	case h.v1 && h.head != nil:
		out.meta.Envelope = lineArray(h.head...)
	}
	*h = handsRun{v1: h.v1}
	return nil
}

// ---- writing

func writeOpenHands(out Output) ([]byte, error) {
	all, err := entriesOf(openHandsCodec{}, out.Items)
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
			x.native = handsMadeV0(*x.made, i)
		}
		if all[i].native = x.native; at != nil {
			all[i].native = addPair(x.native, "timestamp", at)
		}
	}
	if !run {
		return linesOf(append(envelopeLines(e), nativesOf(all)...)), nil
	}
	// One run a line, as it came, the events with the system prompt first.
	natives := nativesOf(all)
	if history, ok := get(e, root(e), "history"); ok && kind(e, history) == '[' {
		natives = append(envelopeLines(history.of(e)), natives...)
	}
	return oneLine(putArray(e, arrayOf(natives), "history")), nil
}

// handsMadeV0 writes an event of V0. Its id is below those of all events that were.
func handsMadeV0(m pipeline.Made, n int) []byte {
	id := strconv.Itoa(-1 - n)
	switch {
	case m.Role == pipeline.RoleTool:
		observation := "run"
		if m.IsError {
			observation = "error"
		}
		return fmt.Appendf(nil, `{"id":%s,"source":"environment","observation":"%s","content":%s,`+
			`"tool_call_metadata":{"function_name":%s,"tool_call_id":%s}}`,
			id, observation, quote(m.Text), quote(m.Name), quote(m.CallID))
	case m.Kind == pipeline.KindSummary:
		return fmt.Appendf(nil, `{"id":%s,"source":"agent","action":"condensation","args":{"forgotten_event_ids":[`+
			`],"summary":%s,"summary_offset":0}}`, id, quote(m.Text))
	}
	return fmt.Appendf(nil, `{"id":%s,"source":"user","action":"message","args":{"content":%s,"image_urls":null}}`, id,
		quote(m.Text))
}
