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

// Rollout files of Codex: a record a line, {"timestamp","type","payload"}. What goes to the model are the payloads of
// response_item records, which are items of the Responses API; the native of a message is such a line. Of the rest,
// event_msg records say what the person typed and what the server counted, and session_meta and turn_context hold
// what stands beside the messages.
//
// A compacted record has the whole new context. Its messages are mostly ones that were there before, and its summary
// is one that OpenAI alone can read, or in older files a text. What is new in it becomes a message of the
// conversation, as the response_item that it would be.
//
// Written as a file it is a session that Codex can resume: the records at its head, a compacted record with the
// summary and what stands before and beside it, then the lines of the messages as they were.

type codex struct{}

func (codex) name() Format { return Codex }

func (codex) message(l *layout.Layout) pipeline.Message { return responses.Message(l) }

func (codex) read(l *layout.Layout) error {
	payload, ok := rawjson.Root(l.Native).Lookup("payload")
	if !ok {
		return l.Errorf("it is no record with a payload")
	}
	return responses.Read(l, payload)
}

// Make writes a record without its time: WriteFile gives it the one of the record that it stands beside.
func (f codex) Make(m pipeline.Made) ([]byte, error) {
	b, err := responses.Made(m)
	if err != nil {
		return nil, err
	}
	return f.item(nil, b), nil
}

func (codex) address(p pipeline.Part) string { return responses.Address(p) }

// item writes a response_item record; time is JSON, nil for none.
func (f codex) item(time, payload []byte) []byte { return f.record(time, "response_item", payload) }

func (codex) record(time []byte, typ string, payload []byte) []byte {
	b := []byte(`{`)
	if time != nil {
		b = fmt.Appendf(b, `"timestamp":%s,`, time)
	}
	return fmt.Appendf(b, `"type":%s,"payload":%s}`, rawjson.Quote(typ), payload)
}

// apiMessage gives the item of a record as Codex sends it: without its id, since the vendor does not store it, without
// what Codex keeps for itself, and without values that are null. An item that has nothing left for the vendor to read
// gives nil.
func (f codex) apiMessage(native []byte) ([]byte, error) {
	v, ok := rawjson.Root(native).Lookup("payload")
	if !ok || !v.IsObject() {
		return nil, layout.Errorf(string(Codex), "it is no record with a payload")
	}
	b, _ := v.DropKeys(func(key string, value rawjson.Value) bool {
		return key == "id" || value.IsNull() || strings.HasPrefix(key, "internal_")
	})
	at := rawjson.Root(b)
	switch at.Get("type").Text() {
	case "reasoning":
		if at.Get("encrypted_content").IsMissing() {
			return nil, nil
		}
	case "agent_message":
		return f.agentMessage(at), nil
	}
	return b, nil
}

// agentMessage makes what another agent said into a message of role user, which is what the model is given.
func (codex) agentMessage(v rawjson.Value) []byte {
	content, _ := v.Lookup("content")
	var parts [][]byte
	switch content.Kind() {
	case rawjson.Array:
		for _, el := range content.Elements() {
			if el.Get("type").Text() == "input_text" {
				parts = append(parts, el.Raw())
			}
		}
	case rawjson.String:
		parts = [][]byte{responses.TextPart("input_text", content.Raw())}
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"type":"message","role":"user","content":[%s]}`, rawjson.Join(parts))
}

func (codex) detect(s rawjson.Outline) bool {
	return s.Has("payload") && s.Has("type=session_meta", "type=response_item", "type=event_msg", "type=turn_context",
		"type=compacted", "type=world_state")
}

func (codex) open(s *jsonstream.Reader, o Options) source {
	return openLines(s, o, Meta{Format: Codex, Vendor: "openai"}, &codexRollout{seen: map[[16]byte]int{}})
}

// codexRollout reads the records of a rollout.
type codexRollout struct {
	// held are the messages behind the last of the assistant, until the server's figure for that one has come.
	held      []heldMessage
	heldBytes int
	counting  bool // the assistant has spoken since the last figure
	// seen has the place of each message, by its words.
	seen map[[16]byte]int
	// used is the last figure, and boundary a compaction that the figure after it has still to come for.
	used         int
	boundary     *Compaction
	boundaryLine int
	model        string
	meta, turn   []byte // the records that the envelope is made of
}

type heldMessage struct {
	m    pipeline.Message
	line int
}

// maxSeen bounds how many messages a compaction can refer to.
const maxSeen = 1 << 18

func (c *codexRollout) record(out *scribe, b []byte, line int) error {
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
		out.note(line, NoteRecord, typ, "a record of Codex, no message")
	default:
		out.note(line, NoteRecord, typ, "a record of Codex, no message")
	}
	return nil
}

func (c *codexRollout) session(out *scribe, b []byte, payload rawjson.Value, line int) {
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

// message takes the next message. Those of the assistant go out at once.
func (c *codexRollout) message(out *scribe, m pipeline.Message, line int) {
	if m.Role == pipeline.RoleAssistant {
		c.flush(out)
		c.give(out, m, line)
		c.counting = true
		return
	}
	c.held = append(c.held, heldMessage{m, line})
	// One of the user's waits for the event that says that a person typed it.
	if c.heldBytes += len(m.Native); c.heldBytes > holdBytes || !c.counting && m.Role != pipeline.RoleUser {
		c.flush(out)
	}
}

func (c *codexRollout) flush(out *scribe) {
	held := c.held
	c.held, c.heldBytes = nil, 0
	for _, h := range held {
		c.give(out, h.m, h.line)
	}
}

func (c *codexRollout) give(out *scribe, m pipeline.Message, line int) {
	c.passBoundary(out)
	out.message(line, m)
	if len(c.seen) < maxSeen {
		c.seen[wordsOf(m)] = out.count
	}
}

// wordsOf names a message by what it says.
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

func (c *codexRollout) event(out *scribe, payload rawjson.Value, line int) {
	typ := payload.Get("type").Text()
	switch typ {
	case "user_message":
		c.typed(payload.Get("message").Text())
		return
	case "token_count":
		c.count(out, payload.Get("info"), line)
		return
	case "task_started":
		if n := payload.Get("model_context_window").Count(); n > 0 {
			out.meta.Window = n
		}
	}
	out.note(line, NoteRecord, "event_msg/"+typ, "a record of Codex, no message")
}

// typed says that a person typed a text: the message that waits with it is theirs, whatever it looks like.
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

// count takes the server's figures. They are of the request that the assistant's last message answered.
func (c *codexRollout) count(out *scribe, info rawjson.Value, line int) {
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

// compacted takes a compaction.
func (c *codexRollout) compacted(out *scribe, v, payload rawjson.Value, line int) error {
	c.flush(out)
	c.passBoundary(out)
	var time []byte
	if at, ok := v.Lookup("timestamp"); ok {
		time = at.Raw()
	}
	said := payload.Get("message").Text()
	found := Compaction{TokensBefore: c.used}
	before := out.count
	history, _ := payload.Lookup("replacement_history")
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
					// What it stands for is not in the file: it is the beginning of the conversation.
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
		out.note(line, NoteBoundary, "compacted", "it has no summary, so it covers nothing")
	}
	return nil
}

func rendered(m pipeline.Message) string { return strings.TrimSpace(pipeline.RenderMessage(m)) }

func (c *codexRollout) passBoundary(out *scribe) {
	if b := c.boundary; b != nil {
		c.boundary = nil
		out.compaction(c.boundaryLine, *b)
	}
}

func (c *codexRollout) end(out *scribe, _ []byte) error {
	c.flush(out)
	c.passBoundary(out)
	out.meta.Envelope = codex{}.envelope(c.meta, c.turn)
	return nil
}

// envelope makes an object of the records that a session begins with.
func (codex) envelope(meta, turn []byte) []byte {
	b := []byte(`{`)
	for _, x := range []struct {
		key    string
		record []byte
	}{{"session_meta", meta}, {"turn_context", turn}} {
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

// write writes a rollout.
func (f codex) write(out Output) ([]byte, error) {
	var lines [][]byte
	e := out.Meta.Envelope
	var time []byte // of the record before, as JSON
	if len(e) > 0 && rawjson.Check(e) == nil {
		for _, key := range []string{"session_meta", "turn_context"} {
			if v, ok := rawjson.Root(e).Lookup(key); ok && v.IsObject() {
				lines = append(lines, v.Raw())
				time = timeOf(v, time)
			}
		}
	}
	entries := make([][]byte, len(out.Items))
	last := -1 // the last entry that was made and stands at the head
	head, timed := true, false
	for i, it := range out.Items {
		b, err := Codec{codex{}}.EncodeItem(it)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b != nil {
			if err := rawjson.Check(b); err != nil {
				return nil, fmt.Errorf("entry %d of the context: %w", i, err)
			}
		}
		entries[i] = b
		switch {
		case it.Made != nil && it.Made.Role != pipeline.RoleTool && head:
			last = i
		case it.Message != nil && it.Message.Role != pipeline.RoleSystem && it.Message.Kind == pipeline.KindOrdinary:
			head = false
		}
		// What is made has the time of the first message that is kept, else that of the session: no clock is read.
		if !timed && it.Message != nil && b != nil {
			if at, ok := rawjson.Root(b).Lookup("timestamp"); ok {
				time, timed = at.Raw(), true
			}
		}
	}
	if last >= 0 {
		lines = append(lines, f.compacted(time, out.Items[:last+1], entries[:last+1]))
	}
	for i := last + 1; i < len(entries); i++ {
		b := entries[i]
		if b == nil {
			continue
		}
		if time = timeOf(rawjson.Root(b), time); out.Items[i].Made != nil {
			payload, _ := rawjson.Root(b).Lookup("payload")
			b = f.item(time, payload.Raw())
		}
		lines = append(lines, b)
	}
	return rawjson.Lines(lines), nil
}

func timeOf(v rawjson.Value, or []byte) []byte {
	if at, ok := v.Lookup("timestamp"); ok {
		return at.Raw()
	}
	return or
}

// compacted writes the record of a compaction, with the whole context up to and including what was made.
func (f codex) compacted(time []byte, items []pipeline.ContextItem, entries [][]byte) []byte {
	summary := ""
	var history [][]byte
	for i, it := range items {
		if entries[i] == nil {
			continue
		}
		if it.Made != nil && it.Made.Kind == pipeline.KindSummary {
			summary = it.Made.Text
		}
		payload, _ := rawjson.Root(entries[i]).Lookup("payload")
		history = append(history, payload.Raw())
	}
	payload := fmt.Appendf(nil, `{"message":%s,"replacement_history":[%s]}`, rawjson.Quote(summary),
		rawjson.Join(history))
	return f.record(time, "compacted", payload)
}
