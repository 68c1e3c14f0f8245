package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// detect looks for the keys that only records of Claude Code have.
func (claudeCode) detect(s rawjson.Outline) bool {
	return s.Has("parentUuid", "isSidechain") ||
		s.Has("leafUuid") && s.Has("type=summary", "type=last-prompt") ||
		s.Has("type=file-history-snapshot") && s.Has("messageId") ||
		s.Has("sessionId") && s.Has("type=queue-operation", "type=mode", "type=permission-mode", "type=custom-title",
			"type=ai-title")
}

// claudeSession reads a session file.
type claudeSession struct {
	s          *jsonstream.Reader
	o          Options
	format     format // claudeCode or claudeStream
	main, side thread
	// aside receives the records that are not messages; it may be nil.
	aside func(b []byte, r record)
	// sideItems is the conversation of subagents. It is kept until a record of the main conversation appears; in a
	// file without one, it is the conversation.
	sideItems []Item
	sideBytes int
	sawMain   bool
	sideOpen  bool // the subagents' conversation is being emitted
	hold      int  // bounds the queues and sideItems: holdBytes, except in tests
	notes     notes
	seen      recentIDs
	ended     bool
	chain     claudeChain
}

// A thread is the main conversation or that of the subagents.
type thread struct {
	meta    Meta
	queue   []*claudeMessage
	bytes   int
	count   int64 // messages so far, those in the queue included
	started bool
	last    []byte // its last message
	// boundary is a compaction whose summary has not been read yet.
	boundary     *Compaction
	boundaryLine int
}

// A claudeMessage is a message that is being collected.
type claudeMessage struct {
	id      string // message.id, of an assistant message
	natives [][]byte
	message pipeline.Message // as its first record has it
	line    int
	usage   *Usage
}

func (claudeCode) open(s *jsonstream.Reader, o Options) source {
	return &claudeSession{s: s, o: o, format: claudeCode{}, hold: holdBytes}
}

func (c *claudeSession) limit() int {
	if c.o.MaxMessageBytes > 0 {
		return c.o.MaxMessageBytes
	}
	return DefaultMaxMessageBytes
}

func (c *claudeSession) step(emit func(Item)) error {
	if c.ended {
		if c.notes.flush(emit) {
			return nil
		}
		return io.EOF
	}
	if c.chain.draining {
		return c.drain(emit)
	}
	line, number, err := c.s.NextLine(c.limit())
	switch {
	case err == io.EOF:
		return c.release(emit)
	case errors.Is(err, jsonstream.ErrTooLarge):
		err = jsonstream.At(number, fmt.Errorf("a line of more than %d bytes; the limit can be raised", c.limit()))
	case err == nil:
		err = c.line(emit, line, number)
	}
	var broken *jsonstream.Damage
	if err = c.fault(emit, err); err == nil || !errors.As(err, &broken) {
		return err
	}
	// What comes before the damage is complete.
	c.chain.failed = err
	return c.release(emit)
}

// line reads the records of a line.
func (c *claudeSession) line(emit func(Item), line []byte, lineNo int) error {
	return eachValue(line, c.o.Lenient, func(b []byte) error {
		v := rawjson.Root(b)
		if !v.IsObject() {
			reason := errors.New("expected a record, found JSON that is not an object")
			return c.fault(emit, jsonstream.At(lineNo, reason))
		}
		return c.fault(emit, c.take(emit, b, lineNo))
	}, func(reason error) error { return c.fault(emit, jsonstream.At(lineNo, reason)) })
}

// fault returns an error, or emits a note in its place if the decoder is lenient and the file is damaged.
func (c *claudeSession) fault(emit func(Item), err error) error {
	broken := (*jsonstream.Damage)(nil)
	if !c.o.Lenient || !errors.As(err, &broken) {
		return err
	}
	emit(damagedNote(broken))
	return nil
}

func (c *claudeSession) record(emit func(Item), b []byte, r record, lineNo int) error {
	t := &c.main
	if r.sidechain {
		t = &c.side
	}
	if r.typ == "" {
		return jsonstream.At(lineNo, errors.New("a record without a type"))
	}
	if id, ok := r.uuid.Str(); ok {
		if !c.seen.add(id, t.place(r)) {
			c.notes.add(Note{Code: NoteDuplicate, What: r.typ, Reason: "a record with this uuid came before"}, lineNo)
			return nil
		}
	}
	_, queued := r.queuedPrompt()
	_, attached := r.attachedFile()
	switch {
	case r.typ == "system" && r.subtype.Text() == "compact_boundary":
		return c.boundary(emit, t, r, lineNo)
	case r.typ != "user" && r.typ != "assistant" && !queued && !attached:
		what := r.typ
		if r.typ == "system" {
			what += "/" + r.subtype.Text()
		} else if r.typ == "attachment" && r.attachment.IsObject() {
			what += "/" + r.attachment.Get("type").Text()
		}
		if c.aside != nil {
			c.aside(b, r)
		}
		c.notes.add(Note{Code: NoteRecord, What: what, Reason: "a record of the client, no message"}, lineNo)
		return nil
	case r.transcriptOnly && !r.summary:
		c.notes.add(Note{
			Code: NoteRecord, What: r.typ + "/transcript-only",
			Reason: "displayed to the user only, never sent to the model",
		}, lineNo)
		return nil
	}
	if !r.sidechain && !c.sawMain {
		if c.sideOpen {
			return jsonstream.At(
				lineNo, fmt.Errorf("a record of the main conversation after more than %d bytes of subagents",
					c.hold))
		}
		// The file has a main conversation, so the records of subagents are left out.
		c.sawMain = true
		for _, it := range c.sideItems {
			c.sidechainNote(it.Line)
		}
		for _, m := range c.side.queue {
			c.sidechainNote(m.line)
		}
		c.sideItems, c.side = nil, thread{}
	}
	if r.sidechain && c.sawMain {
		c.sidechainNote(lineNo)
		return nil
	}
	return c.message(emit, t, r, lineNo)
}

func (c *claudeSession) sidechainNote(line int) {
	c.notes.add(Note{
		Code: NoteSidechain, What: "record",
		Reason: "a record of a subagent, not part of the main conversation",
	},
		line)
}

// boundary reads the boundary record of a compaction; the summary is the next record.
func (c *claudeSession) boundary(emit func(Item), t *thread, r record, lineNo int) error {
	if err := c.flush(emit, t); err != nil {
		return err
	}
	c.orphanBoundary(t)
	t.boundary, t.boundaryLine = &Compaction{}, lineNo
	if !r.compact.IsObject() {
		return nil
	}
	at := t.boundary
	var messages, segment rawjson.Value
	for key, field := range r.compact.Fields() {
		switch string(key) {
		case "trigger":
			at.Trigger = field.Value.Text()
		case "preTokens", "pre_tokens":
			at.TokensBefore = field.Value.Count()
		case "postTokens", "post_tokens":
			at.TokensAfter = field.Value.Count()
		case "preservedSegment", "preserved_segment":
			segment = field.Value
		case "preservedMessages", "preserved_messages":
			messages = field.Value
		}
	}
	c.preserved(t, at, messages, segment)
	return nil
}

// preserved reads what a compaction kept: the messages that it names, else those from the head of a segment on. Any
// record of a message names the message.
func (c *claudeSession) preserved(t *thread, at *Compaction, messages, segment rawjson.Value) {
	numbers := map[int]bool{}
	for _, key := range []string{"allUuids", "all_uuids", "uuids"} {
		for _, id := range textsOf(messages.Get(key)) {
			if n := c.seen.get(id); n > 0 && n <= t.count {
				numbers[int(n)] = true
			}
		}
	}
	if len(numbers) == 0 {
		head := segment.Get("headUuid").Text()
		if head == "" {
			head = segment.Get("head_uuid").Text()
		}
		if n := c.seen.get(head); n > 0 && n <= t.count {
			at.Kept = int(t.count - n + 1)
		}
		return
	}
	at.Kept = 0
	for numbers[int(t.count)-at.Kept] {
		delete(numbers, int(t.count)-at.Kept)
		at.Kept++
	}
	at.Carried = slices.Sorted(maps.Keys(numbers))
}

// textsOf returns the strings of an array.
func textsOf(v rawjson.Value) []string {
	var all []string
	if v.IsArray() {
		for _, el := range v.Elements() {
			all = append(all, el.Text())
		}
	}
	return all
}

func (c *claudeSession) orphanBoundary(t *thread) {
	if t.boundary != nil {
		c.notes.add(Note{
			Code: NoteBoundary, What: "compact_boundary",
			Reason: "it has no summary, so it covers nothing: all messages are kept",
		}, t.boundaryLine)
		t.boundary = nil
	}
}

// message reads a record that is a message or a piece of one.
func (c *claudeSession) message(emit func(Item), t *thread, r record, lineNo int) error {
	var id, model, used rawjson.Value
	if r.typ == "assistant" && r.message.IsObject() {
		r.message.Read(rawjson.Want{{"id", &id}, {"model", &model}, {"usage", &used}})
	}
	if r.typ == "assistant" && (r.apiError || model.Text() == "<synthetic>") {
		c.notes.add(Note{Code: NoteSynthetic, What: "assistant", Reason: "made by the client, no model said it"},
			lineNo)
		return nil
	}
	native := r.at.Raw()
	if session := r.session.Text(); session != "" {
		t.meta.ID = session
	}
	if r.summary {
		return c.summary(emit, t, native, lineNo)
	}
	decoded, err := decode(c.format, native)
	if err != nil {
		return jsonstream.At(lineNo, err)
	}
	if c.format.name() == ClaudeStream && t.boundary != nil && layout.LooksLikeSummary(decoded) {
		return c.summary(emit, t, native, lineNo)
	}
	c.orphanBoundary(t)
	m := &claudeMessage{natives: [][]byte{native}, message: decoded, line: lineNo}
	if r.typ == "assistant" {
		m.id = id.Text()
		m.usage = anthropicAPI{}.usage(used, model.Text())
		if name := model.Text(); name != "" {
			t.meta.Model = name
		}
		if open := t.open(); open != nil && open.id == m.id && m.id != "" {
			open.natives = append(open.natives, native)
			// Earlier records may have a count from the middle of the stream.
			if m.usage != nil && (open.usage == nil || m.usage.Output >= open.usage.Output) {
				open.usage = m.usage
			}
			t.bytes += len(native)
			return c.bound(emit, t)
		}
		if err := c.flush(emit, t); err != nil {
			return err
		}
	}
	// All messages are complete: no record of an earlier message can follow.
	t.count++
	t.queue = append(t.queue, m)
	t.bytes += len(native)
	if t.open() == nil {
		return c.flush(emit, t)
	}
	return c.bound(emit, t)
}

// place returns the number of the message to which a record belongs or that comes next.
func (t *thread) place(r record) int64 {
	if open := t.open(); open != nil && r.typ == "assistant" && r.message.IsObject() &&
		r.message.Get("id").Text() == open.id {
		return t.count - int64(len(t.queue)) + 1
	}
	return t.count + 1
}

// open returns the assistant message at the head of the queue, to which more records may belong.
func (t *thread) open() *claudeMessage {
	if len(t.queue) > 0 && t.queue[0].id != "" {
		return t.queue[0]
	}
	return nil
}

// bound flushes the queue when too much is held back.
func (c *claudeSession) bound(emit func(Item), t *thread) error {
	if t.bytes > c.hold {
		return c.flush(emit, t)
	}
	return nil
}

// flush emits the messages in the queue of a thread.
func (c *claudeSession) flush(emit func(Item), t *thread) error {
	queue := t.queue
	t.queue, t.bytes = nil, 0
	for _, q := range queue {
		m := q.message
		if len(q.natives) > 1 {
			// Each record has been read on its own already.
			var err error
			if m, err = decode(c.format, bytes.Join(q.natives, []byte{'\n'})); err != nil {
				return jsonstream.At(q.line, err)
			}
		}
		t.last = m.Native
		c.give(emit, t, Item{Line: q.line, Message: &m}, len(m.Native))
		if q.usage != nil {
			c.give(emit, t, Item{Line: q.line, Usage: q.usage}, 0)
		}
	}
	return nil
}

func (c *claudeSession) summary(emit func(Item), t *thread, native []byte, lineNo int) error {
	if err := c.flush(emit, t); err != nil {
		return err
	}
	m, err := decode(c.format, native)
	if err != nil {
		return jsonstream.At(lineNo, err)
	}
	found := t.boundary
	t.boundary = nil
	if found == nil {
		found = &Compaction{} // older versions wrote no boundary
	}
	m.Kind = pipeline.KindSummary
	found.Summary = m
	t.last = native
	c.give(emit, t, Item{Line: lineNo, Compaction: found}, len(native))
	return nil
}

// give emits an item of a thread; those of subagents wait until it is known whether the file has a main conversation.
func (c *claudeSession) give(emit func(Item), t *thread, it Item, size int) {
	if t == &c.side && !c.sideOpen {
		c.sideItems = append(c.sideItems, it)
		if c.sideBytes += size; c.sideBytes > c.hold {
			c.openSide(emit)
		}
		return
	}
	c.start(emit, t, it.Line)
	emit(it)
}

func (c *claudeSession) start(emit func(Item), t *thread, line int) {
	if t.started {
		return
	}
	t.started = true
	m := t.meta
	m.Format, m.Vendor, m.Sidechain = c.format.name(), "anthropic", t == &c.side
	emit(Item{Line: line, Start: &m})
}

// openSide emits the conversation of subagents as the conversation of the file.
func (c *claudeSession) openSide(emit func(Item)) {
	c.sideOpen = true
	items := c.sideItems
	c.sideItems = nil
	for _, it := range items {
		c.give(emit, &c.side, it, 0)
	}
}

func (c *claudeSession) finish(emit func(Item)) error {
	t := &c.main
	if !c.sawMain {
		t = &c.side
	}
	if err := c.flush(emit, t); err != nil {
		return err
	}
	c.orphanBoundary(t)
	if t == &c.side && len(c.sideItems) > 0 {
		c.openSide(emit)
	}
	if t.started {
		m := t.meta
		m.Format, m.Vendor, m.Sidechain = c.format.name(), "anthropic", t == &c.side
		if c.format.name() == ClaudeCode {
			m.Envelope = sessionFields(t.last)
		}
		emit(Item{Line: c.s.Line, End: &m})
	}
	return nil
}

// sessionKeys are the keys that every record of a session repeats.
var sessionKeys = []string{
	"isSidechain", "userType", "entrypoint", "cwd", "sessionId", "session_id", "version", "gitBranch", "slug",
	"agentId", "timestamp",
}

// sessionFields makes an object of the fields that the last record of a message repeats.
func sessionFields(native []byte) []byte {
	last := rawjson.Root(native)
	for i := last.End(); ; {
		if i = rawjson.SkipSpace(native, i); i >= len(native) {
			break
		}
		last = rawjson.At(native, i)
		i = last.End()
	}
	out, _ := last.KeepKeys(sessionKeys...)
	return bytes.Clone(out)
}
