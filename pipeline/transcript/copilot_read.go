package transcript

import (
	"cmp"
	"errors"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

func (copilot) detect(s rawjson.Outline) bool {
	return s.Has("chatMessages") && s.Has("sessionId", "timeline") ||
		s.Has("data") && s.Has("type=session.start", "type=user.message", "type=assistant.message",
			"type=assistant.turn_start", "type=tool.execution_start")
}

func (copilot) open(s *jsonstream.Reader, o Options) source {
	if rawjson.OutlineOf(s.Window()).Has("chatMessages", "timeline") {
		return openArrays(s, o, Meta{Format: Copilot}, copilotChat{}, "chatMessages")
	}
	return openLines(s, o, Meta{Format: Copilot}, &copilotSession{asked: map[string]bool{}})
}

// copilotChat reads the older files.
type copilotChat struct{}

func (copilotChat) record(out *emitter, b []byte, line int) error {
	m, err := decode(copilot{}, b)
	if err == nil {
		out.message(line, m)
	}
	return err
}

func (copilotChat) end(out *emitter, around []byte) error {
	if around != nil {
		out.meta.Envelope, out.meta.ID = around, rawjson.Root(around).Get("sessionId").Text()
	}
	return nil
}

// copilotSession reads events.
type copilotSession struct {
	// asked are the calls of the assistant's last messages that have not started yet.
	asked  map[string]bool
	start  []byte // the first event
	system []byte // the event with the system prompt, the last of them
	// running is true while a compaction runs concurrently with the session; since is the message count at its start.
	running bool
	since   int
}

func (c *copilotSession) record(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	typ := v.Get("type").Text()
	data := v.Get("data")
	if typ == "" || !data.IsObject() {
		return errors.New("an event without a type or without data")
	}
	field := func(key string) string { return data.Get(key).Text() }
	if parent, ok := data.Lookup("parentToolCallId"); ok && parent.IsString() {
		out.note(line, NoteSidechain, typ, "a record of a subagent, not part of the main conversation")
		return nil
	}
	switch typ {
	case "user.message", "assistant.message":
		return c.message(out, b, data, line)
	case "tool.execution_start":
		if id := field("toolCallId"); c.asked[id] || id == "" {
			delete(c.asked, id)
			break
		}
		return c.message(out, b, data, line)
	case "tool.execution_complete", "session.binary_asset":
		return c.message(out, b, data, line)
	case "session.start", "session.resume":
		if c.start == nil {
			c.start = b
			out.meta.ID = field("sessionId")
		}
		out.meta.Model = cmp.Or(field("selectedModel"), out.meta.Model)
	case "session.model_change":
		out.meta.Model = cmp.Or(field("newModel"), out.meta.Model)
	case "system.message":
		if prompt := data.Get("content"); prompt.IsString() {
			out.meta.System, c.system = prompt.Raw(), b
			return nil
		}
	case "session.compaction_start":
		c.running, c.since = true, out.count
	case "session.compaction_complete":
		return c.compaction(out, b, data, line)
	case "session.truncation":
		out.note(line, NoteBoundary, typ, "messages were dropped without a summary and are kept")
		return nil
	case "session.shutdown":
		if model := field("currentModel"); out.begun {
			out.usage(line, &Usage{Used: data.Get("currentTokens").Count(), Model: model})
		}
	}
	out.note(line, NoteRecord, typ, "an event of the client that is not a message")
	return nil
}

func (c *copilotSession) message(out *emitter, b []byte, data rawjson.Value, line int) error {
	m, err := decode(copilot{}, b)
	if err != nil {
		return err
	}
	if m.Role == pipeline.RoleAssistant && rawjson.Root(b).Get("type").Text() == "assistant.message" {
		clear(c.asked)
		for _, id := range m.Calls() {
			c.asked[id] = true
		}
	}
	if model := data.Get("model").Text(); model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	return nil
}

func (c *copilotSession) compaction(out *emitter, b []byte, data rawjson.Value, line int) error {
	ok := data.Get("success")
	summary := data.Get("summaryContent")
	if ok.IsFalse() || !summary.IsString() || summary.IsEmpty() {
		out.note(line, NoteBoundary, "session.compaction_complete",
			"it has no summary, so it covers nothing: all messages are kept")
		return nil
	}
	m, err := decode(copilot{}, b)
	if err != nil {
		return err
	}
	x := Compaction{
		Summary: m, TokensBefore: data.Get("preCompactionTokens").Count(),
		TokensAfter: data.Get("postCompactionTokens").Count(),
	}
	// It ran concurrently with the session: the summary does not cover messages since its start.
	if c.running {
		x.Kept = out.count - c.since
	}
	c.running = false
	out.compaction(line, x)
	return nil
}

func (c *copilotSession) end(out *emitter, _ []byte) error {
	var head [][]byte
	for _, b := range [][]byte{c.start, c.system} {
		if b != nil {
			head = append(head, b)
		}
	}
	if head != nil {
		out.meta.Envelope = lineArray(head...)
	}
	return nil
}
