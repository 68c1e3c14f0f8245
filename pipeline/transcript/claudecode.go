package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// Session files of Claude Code: one JSON record a line. A message of the API is one or more records: all that
// have one message.id. Its native is those lines, joined by line breaks.

// claudeRecords reads the record lines that a message of Claude Code is, in its files and in its streams.
type claudeRecords struct{}

type claudeCode struct{ claudeRecords }

func (claudeCode) name() Format { return ClaudeCode }

func (claudeRecords) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	r := readRecord(l.Lists[0].Siblings[0])
	m.ID = r.uuid.Text()
	if m.Role == pipeline.RoleUser {
		m.Kind = r.userKind(m)
	}
	return m
}

// Make writes a record with what a record must have, and nothing that depends on a place in a session: its uuid
// is made of its content. WriteFile gives it the rest.
func (claudeCode) Make(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleAssistant {
		return nil, pipeline.Errorf(pipeline.Internal,
			"an assistant record of Claude Code is an answer of the API: none can be made")
	}
	role, block, err := anthropic.Made(m)
	if err != nil {
		return nil, err
	}
	b := []byte(`{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user","message":{` +
		`"role":"user","content":`)
	if m.Role == pipeline.RoleTool {
		b = fmt.Appendf(b, "[%s]", block)
	} else {
		b = append(b, rawjson.Quote(m.Text)...)
	}
	b = append(b, "}"...)
	switch {
	case m.Kind == pipeline.KindSummary:
		b = append(b, `,"isVisibleInTranscriptOnly":true,"isCompactSummary":true`...)
	case m.Role == pipeline.RoleUser && m.Kind != pipeline.KindOrdinary:
		b = append(b, `,"isMeta":true`...)
	}
	return fmt.Appendf(b, `,"uuid":%s}`, rawjson.Quote(madeUUID(role, string(m.Kind), m.CallID, m.Text))), nil
}

// madeUUID names a record after what is in it, so that the same record has the same name at every run.
func madeUUID(of ...string) string {
	h := sha256.New()
	for _, s := range of {
		fmt.Fprintf(h, "%d:%s,", len(s), s)
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80 // version 8, RFC 9562: made by a rule of one's own
	b[8] = b[8]&0x3f | 0x80
	x := hex.EncodeToString(b)
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// A record is one line: where the values are that matter here.
type record struct {
	at                                         rawjson.Value
	typ                                        string
	subtype, uuid, parent, message, attachment rawjson.Value
	session, compact, origin                   rawjson.Value
	sidechain, meta, summary, apiError         bool
	transcriptOnly                             bool
}

func readRecord(v rawjson.Value) record {
	r := record{at: v}
	for key, field := range v.Fields() {
		switch string(key) {
		case "type":
			r.typ = field.Value.Text()
		case "subtype":
			r.subtype = field.Value
		case "uuid":
			r.uuid = field.Value
		case "parentUuid":
			r.parent = field.Value
		case "message":
			r.message = field.Value
		case "attachment":
			r.attachment = field.Value
		case "sessionId":
			r.session = field.Value
		case "session_id":
			if r.session.IsMissing() {
				r.session = field.Value
			}
		case "parent_tool_use_id": // a subagent's, in a stream
			r.sidechain = r.sidechain || field.Value.IsString()
		case "compactMetadata", "compact_metadata":
			r.compact = field.Value
		case "origin":
			r.origin = field.Value
		case "isSidechain":
			r.sidechain = field.Value.IsTrue()
		case "isMeta", "isSynthetic":
			r.meta = r.meta || field.Value.IsTrue()
		case "isCompactSummary":
			r.summary = field.Value.IsTrue()
		case "isApiErrorMessage":
			r.apiError = field.Value.IsTrue()
		case "isVisibleInTranscriptOnly":
			r.transcriptOnly = field.Value.IsTrue()
		}
	}
	return r
}

// queuedPrompt is what a person typed while the agent was at work: Claude Code writes it as an attachment only.
func (r record) queuedPrompt() (rawjson.Value, bool) {
	if r.typ != "attachment" || !r.attachment.IsObject() ||
		r.attachment.Get("type").Text() != "queued_command" ||
		r.attachment.Get("commandMode").Text() == "task-notification" {
		return rawjson.Value{}, false
	}
	prompt, _ := r.attachment.Lookup("prompt")
	switch prompt.Kind() {
	case rawjson.String:
		return prompt, !strings.HasPrefix(prompt.Text(), "<task-notification>")
	case rawjson.Array:
		return prompt, true
	}
	return rawjson.Value{}, false
}

func (claudeRecords) check(native []byte) error { return rawjson.CheckLines(native) }

// read reads the record lines of one message, sound JSON.
func (claudeRecords) read(l *layout.Layout) error {
	var recs []record
	lines := layout.NewList(nil)
	for i := rawjson.SkipSpace(l.Native, 0); i < len(l.Native); i = rawjson.SkipSpace(l.Native, i) {
		v := rawjson.At(l.Native, i)
		if !v.IsObject() {
			return l.Errorf("a record is no object")
		}
		recs = append(recs, readRecord(v))
		lines.Siblings = append(lines.Siblings, v)
		i = v.End()
	}
	if len(recs) == 0 {
		return l.Errorf("it is empty")
	}
	l.AddList(lines)
	for i, r := range recs {
		if prompt, ok := r.queuedPrompt(); ok {
			l.Role = "user"
			if prompt.IsArray() {
				nodes, err := anthropic.ReadBlocks(l, prompt, layout.List{Parent: 0, ParentIndex: i})
				if err != nil {
					return err
				}
				l.Nodes = append(l.Nodes, nodes...)
				continue
			}
			l.Nodes = append(l.Nodes, layout.Node{
				Part: pipeline.Part{Kind: pipeline.PartText, Text: prompt.Text(), Raw: prompt.Raw()},
				List: 0, Index: i, Value: prompt, Block: true,
			})
			continue
		}
		if r.typ != "user" && r.typ != "assistant" {
			return l.Errorf("a record of type %q is no message", r.typ)
		}
		if !r.message.IsObject() {
			return l.Errorf("a %s record has no message", r.typ)
		}
		if err := anthropic.Read(l, r.message, 0, i); err != nil {
			return err
		}
		if l.Role != r.typ {
			return l.Errorf("a %s record has a message of another role", r.typ)
		}
	}
	return nil
}

// userKind says who said a user message that holds more than results.
func (r record) userKind(m pipeline.Message) pipeline.Kind {
	switch {
	case r.summary:
		return pipeline.KindSummary
	case r.meta:
		return pipeline.KindReminder
	case r.origin.IsObject() && r.origin.Get("kind").Text() == "task-notification":
		return pipeline.KindSynthetic
	}
	return m.Kind
}

// detect knows the keys that only its records have.
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
	// aside is shown the records that are no messages, nil: nobody is.
	aside func(b []byte, r record)
	// sideItems is the conversation of subagents for as long as no record of the main one came: then it is the
	// conversation.
	sideItems []Item
	sideBytes int
	sawMain   bool
	sideOpen  bool // the subagents' conversation is being given out
	hold      int  // holdBytes, but in tests: bounds what waits in a queue or for what file this is
	notes     notes
	seen      recentIDs
	ended     bool
}

// A thread is the main conversation or that of the subagents.
type thread struct {
	meta    Meta
	queue   []*claudeMessage
	bytes   int
	count   int64 // messages so far, those in the queue included
	started bool
	last    []byte // its last message
	// boundary is a compaction whose summary has not come yet.
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
	line, number, err := c.s.NextLine(c.limit())
	switch {
	case err == io.EOF:
		c.ended = true
		return c.finish(emit)
	case errors.Is(err, jsonstream.ErrTooLarge):
		err = jsonstream.At(number, fmt.Errorf("a line of more than %d bytes; the limit can be raised", c.limit()))
	case err == nil:
		err = c.line(emit, line, number)
	}
	var broken *jsonstream.Damage
	if errors.As(err, &broken) && c.o.Lenient {
		emit(damagedNote(broken))
		return nil
	}
	return err
}

// line reads the records of a line: one, but for lines that a crash ran together.
func (c *claudeSession) line(emit func(Item), line []byte, lineNo int) error {
	for i := rawjson.SkipSpace(line, 0); i < len(line); i = rawjson.SkipSpace(line, i) {
		if _, err := rawjson.Prefix(line[i:]); err != nil {
			return jsonstream.At(lineNo, err)
		}
		v := rawjson.At(line, i)
		i = v.End()
		if !v.IsObject() {
			return jsonstream.At(lineNo, errors.New("expected a record, found JSON that is no object"))
		}
		if err := c.record(emit, line, readRecord(v), lineNo); err != nil {
			return err
		}
	}
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
		if !c.seen.add(id, t.count+1) {
			c.notes.add(Note{Code: NoteDuplicate, What: r.typ, Reason: "a record with this uuid came before"}, lineNo)
			return nil
		}
	}
	_, queued := r.queuedPrompt()
	switch {
	case r.typ == "system" && r.subtype.Text() == "compact_boundary":
		return c.boundary(emit, t, r, lineNo)
	case r.typ != "user" && r.typ != "assistant" && !queued:
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
			Reason: "shown to the person only, never sent to the model",
		}, lineNo)
		return nil
	}
	if !r.sidechain && !c.sawMain {
		if c.sideOpen {
			return jsonstream.At(
				lineNo, fmt.Errorf("a record of the main conversation after more than %d bytes of subagents",
					c.hold))
		}
		// The file has a main conversation: what came of subagents is none of it.
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
	c.notes.add(Note{Code: NoteSidechain, What: "record", Reason: "a subagent's, no part of the main conversation"},
		line)
}

// boundary takes a compaction's boundary record; its summary comes next.
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
	for key, field := range r.compact.Fields() {
		switch string(key) {
		case "trigger":
			at.Trigger = field.Value.Text()
		case "preTokens", "pre_tokens":
			at.TokensBefore = field.Value.Count()
		case "postTokens", "post_tokens":
			at.TokensAfter = field.Value.Count()
		case "preservedSegment":
			head := field.Value.Get("headUuid").Text()
			if n := c.seen.get(head); n > 0 && n <= t.count {
				at.Kept = int(t.count - n + 1)
			}
		}
	}
	return nil
}

func (c *claudeSession) orphanBoundary(t *thread) {
	if t.boundary != nil {
		c.notes.add(Note{
			Code: NoteBoundary, What: "compact_boundary",
			Reason: "no summary follows it, so it covers nothing",
		}, t.boundaryLine)
		t.boundary = nil
	}
}

// message takes a record that is a message or a piece of one.
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
	native := bytes.Clone(r.at.Raw())
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
	// Nothing stands open: no record of an earlier message can follow.
	t.count++
	t.queue = append(t.queue, m)
	t.bytes += len(native)
	if t.open() == nil {
		return c.flush(emit, t)
	}
	return c.bound(emit, t)
}

// open is the assistant message at the head of the queue, which more records may belong to.
func (t *thread) open() *claudeMessage {
	if len(t.queue) > 0 && t.queue[0].id != "" {
		return t.queue[0]
	}
	return nil
}

// bound ends the wait for further records when too much is held back.
func (c *claudeSession) bound(emit func(Item), t *thread) error {
	if t.bytes > c.hold {
		return c.flush(emit, t)
	}
	return nil
}

// flush gives out what is in the queue of a thread.
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

// give gives an item of a thread out; those of subagents wait until it is known what file this is.
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

// openSide gives out the conversation of subagents as the file's own.
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

// sessionKeys are what every record of a session repeats.
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

// recentIDs remembers the last uuids and a number for each, in bounded memory: an older one is forgotten only
// after half a million newer ones.
type recentIDs struct{ young, old map[[16]byte]int64 }

const recentIDsHalf = 1 << 19

// add remembers an id; false when it is known.
func (r *recentIDs) add(id string, n int64) bool {
	k := idKey(id)
	if r.young[k] != 0 || r.old[k] != 0 {
		return false
	}
	if r.young == nil || len(r.young) >= recentIDsHalf {
		r.old, r.young = r.young, map[[16]byte]int64{}
	}
	r.young[k] = n
	return true
}

func (r *recentIDs) get(id string) int64 {
	k := idKey(id)
	return max(r.young[k], r.old[k])
}

func idKey(id string) (k [16]byte) {
	if x := strings.ReplaceAll(id, "-", ""); len(id) == 36 && len(x) == 32 && strings.ToLower(x) == x {
		if _, err := hex.Decode(k[:], []byte(x)); err == nil {
			return k
		}
	}
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}
