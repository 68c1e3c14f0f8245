package transcript

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/responses"
)

func (codex) detect(s rawjson.Outline) bool {
	return s.Has("payload") && s.Has("type=session_meta", "type=response_item", "type=event_msg", "type=turn_context",
		"type=compacted", "type=world_state")
}

func (codex) open(s *jsonstream.Reader, o Options) source {
	return openLines(s, o, Meta{Format: Codex, Vendor: "openai"}, &codexRollout{seen: map[[16]byte]int{}})
}

// codexRollout reads the records of a rollout.
type codexRollout struct {
	// held are the messages behind the last of the assistant, until the server's figure for that one is read.
	held      []heldMessage
	heldBytes int
	counting  bool // there was a message of the assistant since the last figure
	// seen has the place of each message, by its text.
	seen map[[16]byte]int
	// used is the last figure, and boundary a compaction until the figure after it is read.
	used         int
	boundary     *Compaction
	boundaryLine int
	model        string
	// the records of the envelope: the first session_meta, and the last world_state and turn_context
	meta, world, turn []byte
	// turns has the mark of each message of the user.
	turns []int
}

type heldMessage struct {
	m    pipeline.Message
	line int
}

// maxSeen bounds how many messages a compaction can refer to.
const maxSeen = 1 << 18

func (c *codexRollout) record(out *emitter, b []byte, line int) error {
	out.back.hold = holdBytes
	v := rawjson.Root(b)
	typ := v.Get("type").Text()
	payload, ok := v.Lookup("payload")
	if !ok || typ == "" {
		return errors.New("a record without a type or a payload")
	}
	switch typ {
	case "response_item":
		m, err := decode(codex{}, b)
		if err != nil {
			return err
		}
		c.message(out, m, line)
	case "event_msg":
		c.event(out, payload, line)
	case "compacted":
		return c.compacted(out, v, payload, line)
	case "session_meta":
		c.session(out, b, payload, line)
	case "turn_context":
		if model := payload.Get("model").Text(); model != "" {
			c.model, out.meta.Model = model, model
		}
		c.turn = b
		out.note(line, NoteRecord, typ, "a record of Codex that is not a message")
	case "world_state":
		c.world = b
		out.note(line, NoteRecord, typ, "a record of Codex that is not a message")
	default:
		out.note(line, NoteRecord, typ, "a record of Codex that is not a message")
	}
	return nil
}

func (c *codexRollout) session(out *emitter, b []byte, payload rawjson.Value, line int) {
	if c.meta != nil {
		out.note(line, NoteRecord, "session_meta", "the session was resumed")
		return
	}
	c.meta = b
	for key, field := range payload.Fields() {
		switch string(key) {
		case "id":
			out.meta.ID = field.Value.Text()
		case "model_provider":
			if s := field.Value.Text(); s != "" {
				out.meta.Vendor = s
			}
		case "instructions":
			if field.Value.IsString() {
				out.meta.System = field.Value.Raw()
			}
		case "base_instructions":
			if s, ok := field.Value.Lookup("text"); ok && s.IsString() {
				out.meta.System = s.Raw()
			}
		}
	}
}

// message reads the next message. Messages of the assistant are emitted at once.
func (c *codexRollout) message(out *emitter, m pipeline.Message, line int) {
	if m.Role == pipeline.RoleAssistant {
		c.flush(out)
		c.give(out, m, line)
		c.counting = true
		return
	}
	c.held = append(c.held, heldMessage{m, line})
	// A message of role user is held until an event shows whether the user typed it.
	if c.heldBytes += len(m.Native); c.heldBytes > holdBytes || !c.counting && m.Role != pipeline.RoleUser {
		c.flush(out)
	}
}

func (c *codexRollout) flush(out *emitter) {
	held := c.held
	c.held, c.heldBytes = nil, 0
	for _, h := range held {
		c.give(out, h.m, h.line)
	}
}

func (c *codexRollout) give(out *emitter, m pipeline.Message, line int) {
	c.passBoundary(out)
	if m.Genuine() {
		c.turns = append(c.turns, out.mark())
	}
	out.message(line, m)
	if len(c.seen) < maxSeen {
		c.seen[wordsOf(m)] = out.count
	}
}

// wordsOf returns a key for a message that depends on its content only.
func wordsOf(m pipeline.Message) [16]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", m.Role)
	var write func([]pipeline.Part)
	write = func(parts []pipeline.Part) {
		for _, p := range parts {
			raw := p.Raw
			if p.Kind == pipeline.PartText {
				raw = nil
			}
			fmt.Fprintf(h, "%s %q %q %d:%s%d:%s%d(", p.Kind, p.Type, p.CallID, len(p.Text), p.Text, len(raw), raw,
				len(p.Content))
			write(p.Content)
		}
	}
	write(m.Parts)
	return [16]byte(h.Sum(nil))
}

func (c *codexRollout) event(out *emitter, payload rawjson.Value, line int) {
	typ := payload.Get("type").Text()
	switch typ {
	case "user_message":
		c.typed(payload.Get("message").Text())
		return
	case "token_count":
		c.count(out, payload.Get("info"), line)
		return
	case "thread_rolled_back":
		c.rollBack(out, payload.Get("num_turns").Count(), line)
		return
	case "task_started":
		if n := payload.Get("model_context_window").Count(); n > 0 {
			out.meta.Window = n
		}
	}
	out.note(line, NoteRecord, "event_msg/"+typ, "a record of Codex that is not a message")
}

// typed marks the held message with the text as genuine, because the user typed it.
func (c *codexRollout) typed(s string) {
	n := len(c.held) - 1
	if n < 0 || c.held[n].m.Role != pipeline.RoleUser {
		return
	}
	for _, p := range c.held[n].m.Parts {
		if p.Kind == pipeline.PartText && s != "" && strings.Contains(p.Text, s) {
			c.held[n].m.Kind = pipeline.KindOrdinary
		}
	}
}

// rollBack takes back the last turns of the user, with everything in them.
func (c *codexRollout) rollBack(out *emitter, turns, line int) {
	c.flush(out)
	c.passBoundary(out)
	turns = min(turns, len(c.turns))
	if turns == 0 {
		out.note(line, NoteRecord, "event_msg/thread_rolled_back", "a rollback of no turn that is in the file")
		return
	}
	first := len(c.turns) - turns
	out.takeBack(c.turns[first], line, "rolled back",
		"the user rolled the turn back: it is not part of the conversation")
	c.turns = c.turns[:first]
	for words, at := range c.seen {
		if at > out.count {
			delete(c.seen, words)
		}
	}
	c.counting = false
}

// count reads the server's figures for the request that led to the assistant's last message.
func (c *codexRollout) count(out *emitter, info rawjson.Value, line int) {
	if !info.IsObject() {
		return
	}
	if n := info.Get("model_context_window").Count(); n > 0 {
		out.meta.Window = n
	}
	last, ok := info.Lookup("last_token_usage")
	if !ok || !last.IsObject() {
		return
	}
	u := Usage{Model: c.model}
	input := 0
	for key, field := range last.Fields() {
		switch string(key) {
		case "input_tokens":
			input = field.Value.Count()
		case "cached_input_tokens":
			u.CacheRead = field.Value.Count()
		case "cache_write_input_tokens":
			u.CacheCreation = field.Value.Count()
		case "output_tokens":
			u.Output = field.Value.Count()
		case "total_tokens":
			u.Used = field.Value.Count()
		}
	}
	u.Input = max(input-u.CacheRead-u.CacheCreation, 0)
	switch {
	case c.boundary != nil: // Codex's own estimate of the new context
		c.boundary.TokensAfter = u.Used
		c.passBoundary(out)
	case c.counting:
		c.used, c.counting = u.Used, false
		out.usage(line, &u)
		c.flush(out)
	}
}

// compacted reads a compaction.
func (c *codexRollout) compacted(out *emitter, v, payload rawjson.Value, line int) error {
	c.flush(out)
	c.passBoundary(out)
	var time []byte
	if at, ok := v.Lookup("timestamp"); ok {
		time = at.Raw()
	}
	said := payload.Get("message").Text()
	found := Compaction{TokensBefore: c.used}
	before := out.count
	history := payload.Get("replacement_history")
	readable := false
	var opaque *pipeline.Message
	if history.IsArray() {
		for _, el := range history.Elements() {
			m, err := decode(codex{}, codex{}.item(time, el.Raw()))
			if err != nil {
				return err
			}
			switch at, known := c.seen[wordsOf(m)]; {
			case m.Role == pipeline.RoleUser && (said != "" && rendered(m) == said || layout.LooksLikeSummary(m)):
				found.Summary, readable = m, true
				if before == 0 {
					// The messages that it covers are not in the file: it begins the conversation.
					m.Kind = pipeline.KindSummary
					c.give(out, m, line)
				}
			case known && at <= before:
				found.Carried = append(found.Carried, at)
			default:
				if responses.IsCompaction(el) {
					opaque = &m
				}
				c.give(out, m, line)
				found.Kept++
			}
		}
	}
	if !readable && said != "" {
		made, err := responses.Made(pipeline.Made{Role: pipeline.RoleUser, Text: said})
		if err != nil {
			return err
		}
		m, err := decode(codex{}, codex{}.item(time, made))
		if err != nil {
			return err
		}
		if found.Summary, readable = m, true; before == 0 {
			m.Kind = pipeline.KindSummary
			c.give(out, m, line)
		}
	}
	slices.Sort(found.Carried)
	found.Carried = slices.Compact(found.Carried)
	c.counting = false
	switch {
	case before == 0:
	case readable, opaque != nil:
		if !readable {
			found.Summary, found.InMessages = *opaque, true
		}
		c.boundary, c.boundaryLine = &found, line
	default:
		out.note(line, NoteBoundary, "compacted", "it has no summary, so it covers nothing: all messages are kept")
	}
	return nil
}

func rendered(m pipeline.Message) string { return strings.TrimSpace(pipeline.RenderMessage(m)) }

func (c *codexRollout) passBoundary(out *emitter) {
	if b := c.boundary; b != nil {
		c.boundary = nil
		out.compaction(c.boundaryLine, *b)
	}
}

func (c *codexRollout) end(out *emitter, _ []byte) error {
	c.flush(out)
	c.passBoundary(out)
	out.meta.Envelope = codex{}.envelope(c.meta, c.world, c.turn)
	return nil
}

// envelope makes an object of the records around the messages of a session.
func (codex) envelope(meta, world, turn []byte) []byte {
	b := []byte(`{`)
	for _, x := range []struct {
		key    string
		record []byte
	}{{"session_meta", meta}, {"world_state", world}, {"turn_context", turn}} {
		if x.record == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ","...)
		}
		b = fmt.Appendf(b, "%s:%s", rawjson.Quote(x.key), x.record)
	}
	return append(b, "}"...)
}
