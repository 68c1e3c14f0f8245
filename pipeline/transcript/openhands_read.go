package transcript

import (
	"cmp"
	"errors"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

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
	// at is the place of each event: twice the number of messages before it, plus one if it is a message itself, plus
	// one because recentIDs cannot store 0.
	at recentIDs
	// counted is the usage of the next message of the agent.
	counted *Usage
	line    int
}

func (h *handsRun) record(out *emitter, b []byte, line int) error {
	e := openHands{}.event(rawjson.Root(b))
	before := out.count
	err := h.event(out, b, e, line)
	if e.id != "" {
		h.at.add(e.id, int64(before+out.count)+1)
	}
	return err
}

func (h *handsRun) event(out *emitter, b []byte, e handsEvent, line int) error {
	v := rawjson.Root(b)
	switch {
	case e.kind == "" && e.action == "" && e.observation == "":
		return errors.New("an event without a kind, an action or an observation")
	case e.action == "system":
		h.system(out, b, e.args, "content")
		return nil
	case e.kind == "SystemPromptEvent":
		at := v.Get("system_prompt")
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
		out.note(line, NoteRecord, cmp.Or(e.kind, e.action, e.observation),
			"an event of the program that is not a message")
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

// bookkeeping reports whether an event is not for the model.
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

// system reads the system prompt, which is not one of the messages.
func (h *handsRun) system(out *emitter, b []byte, v rawjson.Value, key string) {
	if prompt, ok := v.Lookup(key); ok && prompt.IsString() {
		out.meta.System = prompt.Raw()
	}
	if tools, ok := v.Lookup("tools"); ok && tools.IsArray() {
		out.meta.Tools = tools.Raw()
	}
	h.head = append(h.head, b)
}

// state reads the figures of the last request, which precede the event of its response.
func (h *handsRun) state(out *emitter, b []byte, line int) {
	v := rawjson.Root(b)
	h.flush(out)
	all := v.Get("value", "usage_to_metrics")
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
	out.note(line, NoteRecord, "ConversationStateUpdateEvent", "an event of the program that is not a message")
}

// flush emits a figure that was held until the message that it covers.
func (h *handsRun) flush(out *emitter) {
	if h.counted != nil && out.count > 0 {
		out.usage(h.line, h.counted)
	}
	h.counted = nil
}

// recordedUsage returns the usage of the response with an action of V0, once for each response.
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

// condensation reads a summary. It is a compaction only if it covers consecutive messages: a gap in the middle would
// hide messages that the model saw.
func (h *handsRun) condensation(out *emitter, b []byte, e handsEvent, line int) error {
	const what = "condensation"
	args := e.args
	if e.kind != "" {
		args = rawjson.Root(b)
	}
	m, err := decode(openHands{}, b)
	if err != nil {
		out.note(line, NoteBoundary, what, "it has no summary: the messages that it removes are kept")
		return nil
	}
	from, to, n := h.forgotten(args)
	switch {
	case n == 0: // the messages that it covers are not in the file
		out.compaction(line, Compaction{Summary: m, Kept: out.count})
		return nil
	case from < 0:
		out.note(line, NoteBoundary, what,
			"it removes events that are missing or not consecutive: they are kept")
		return nil
	}
	out.compaction(line, Compaction{Summary: m, KeptFirst: from, Kept: out.count - to})
	return nil
}

// forgotten returns the range of messages that a condensation covers, from+1 to to, and the number of events that it
// names; from is -1 if they are not consecutive.
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
	ids := args.Get("forgotten_event_ids")
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

func (h *handsRun) end(out *emitter, around []byte) error {
	h.flush(out)
	switch {
	case around != nil:
		v := rawjson.Root(around)
		out.meta.ID = v.Get("instance_id").Text()
		if out.meta.Model == "" {
			out.meta.Model = v.Get("metadata", "llm_config", "model").Text()
		}
		// The events with the system prompt keep their place.
		out.meta.Envelope = rawjson.PutArray(around, lineArray(h.head...), "history")
	case h.v1 && h.head != nil:
		out.meta.Envelope = lineArray(h.head...)
	}
	*h = handsRun{v1: h.v1}
	return nil
}
