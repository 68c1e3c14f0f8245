package transcript

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// holdBytes is how much of one conversation's messages is held back until the whole of its request has been
// read: the keys that say what kind of file this is may stand behind them. It is more than a vendor takes in
// one request (Anthropic 32 MB, OpenAI 50 MB), so that only files that were never sent anywhere go over it;
// their messages are given out as they come.
const holdBytes = 64 << 20

// logBytes bounds the requests that are held back of a log of requests, where each repeats the one before.
const logBytes = 128 << 20

// A dialect is what differs between the formats whose files are JSON documents with arrays of messages.
type dialect struct {
	format format
	// arrays are the keys of the array of messages, outer those of one that only the outermost object has; none:
	// "messages", and "history" and "traj".
	arrays, outer []string
	// response is the one of outer whose object is a response itself, with usage of its own.
	response string
	// wrapper names the kind of file from the object around the messages; arrayKey is the key of their array.
	wrapper func(b []byte, outer rawjson.Value, arrayKey string) string
	// clean makes a message of a file into one that the API takes; answered says that the assistant has spoken.
	clean func(source string, native []byte, answered bool) cleaned
	// envelope makes the request object of a wrapped conversation; m has what is known of it.
	envelope func(b []byte, outer rawjson.Value, m *Meta)
	// request reads the facts of a request object into m.
	request func(b []byte, v rawjson.Value, m *Meta)
	// answer reads a recorded response: its messages as the next request would hold them, and its usage.
	answer func(response []byte) (natives [][]byte, usage *Usage)
	// bare says whether an array at the top is one of messages, nil: when they have roles.
	bare func(rawjson.Outline) bool
	// text gives the place of messages that are a plain string, and the message that it stands for; nil: there
	// are none.
	text func(b []byte, v rawjson.Value) (at rawjson.Value, message []byte)
	// summary gives the summary that a message holds of those before it, for formats that have such; answered
	// says that the assistant has spoken.
	summary func(m pipeline.Message, answered bool) (pipeline.Message, bool)
	// follows says that a request of a log goes on from an earlier one with that response, without repeating its
	// messages; cut is the key by which it refers to it. Nil: none does.
	follows func(request []byte, v rawjson.Value, messages []rawMessage, response []byte) (cut string, ok bool)
}

// cleaned is a message of a file, made fit for its API.
type cleaned struct {
	native []byte
	kind   pipeline.Kind
	usage  *Usage
	cut    []string // keys that were cut out
	skip   string   // why it is no message of the API; empty: it is
	role   string   // for skip
}

// rawMessage is a message as it stands in the file.
type rawMessage struct {
	native []byte
	line   int
	answer bool // a recorded response: it is clean, and usage is its own
	usage  *Usage
}

// documents reads files of JSON documents: one request, several, or the wrappers around them.
type documents struct {
	dialect
	s     *jsonstream.Reader
	o     Options
	stack []docFrame
	conv  *docConversation
	notes notes
	// the requests of a log, by conversation, in the order of their first appearance
	log        []*docConversation
	logBytes   int
	last       *docConversation // the one whose response may come next
	clock      int
	hold, logs int // holdBytes and logBytes, but in tests
	// out is what has been read and is being given out, message by message.
	out   []delivery
	ended bool
}

// A delivery is a conversation on its way out, or what was held back of one that goes on.
type delivery struct {
	c        *docConversation
	meta     Meta
	source   string
	held     []rawMessage
	response []byte
	end      bool
}

type docFrame struct {
	kind  frameKind
	first bool
}

type frameKind uint8

const (
	frameList     frameKind = iota // an array of objects with conversations in them
	frameObject                    // the outermost object of a conversation
	frameRequest                   // the request object inside of it
	frameMessages                  // the array of messages
)

type docConversation struct {
	line      int
	arrayKey  string
	bare      bool // the array stands on its own
	nested    bool // the messages stand in a request object inside of an entry of a log
	held      []rawMessage
	heldBytes int
	started   bool // given out as it comes
	answered  bool // the assistant has spoken
	given     int  // messages that were given out
	open, sep []byte
	count     int
	// for a log
	source   string
	tape     []byte
	outer    rawjson.Value
	response []byte
	group    [32]byte
	touched  int
}

func openDocuments(s *jsonstream.Reader, o Options, d dialect) source {
	if d.arrays == nil {
		d.arrays, d.outer = []string{"messages"}, []string{"history", "traj"}
	}
	if d.bare == nil {
		d.bare = func(s rawjson.Outline) bool { return s.Has("[].role") }
	}
	return &documents{dialect: d, s: s, o: o, hold: holdBytes, logs: logBytes}
}

func (d *documents) step(emit func(Item)) error {
	if len(d.out) > 0 {
		return d.deliver(emit)
	}
	if d.ended {
		return d.finish(emit)
	}
	err := d.advance(emit)
	var broken *jsonstream.Damage
	if !errors.As(err, &broken) || !d.o.Lenient {
		return err
	}
	// What was read of the conversation so far is good; the rest of it is lost.
	d.s.Recording = false
	emit(damagedNote(broken))
	if c := d.conv; c != nil && !c.nested && (c.started || len(c.held) > 0) {
		d.give(c, d.meta(c, nil), nil)
	}
	d.conv, d.stack = nil, d.stack[:0]
	if !d.s.ToLine('{') {
		d.ended = true
	}
	return nil
}

func (d *documents) advance(emit func(Item)) error {
	if len(d.stack) == 0 {
		return d.top()
	}
	f := &d.stack[len(d.stack)-1]
	first := f.first
	f.first = false
	switch f.kind {
	case frameList:
		more, err := d.s.NextElement(first)
		if err != nil {
			return err
		}
		if !more {
			d.pop()
			return nil
		}
		c, err := d.s.Peek()
		if err != nil {
			return d.s.EndOr(err)
		}
		if c != '{' {
			return d.s.Bad(fmt.Errorf("expected an object with messages, found %q", c))
		}
		d.begin(false)
		return nil
	case frameMessages:
		return d.message(emit, first)
	default:
		return d.key(f.kind, first)
	}
}

// top begins with the next document of the file.
func (d *documents) top() error {
	c, err := d.s.Peek()
	if err == io.EOF {
		d.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	switch c {
	case '{':
		d.begin(false)
	case '[':
		if d.bare(rawjson.OutlineOf(d.s.Window())) {
			d.begin(true)
		} else {
			d.s.Open()
			d.push(frameList)
		}
	default:
		return d.s.Bad(fmt.Errorf("expected a request object or an array, found %q", c))
	}
	return nil
}

func (d *documents) push(k frameKind) { d.stack = append(d.stack, docFrame{k, true}) }

func (d *documents) pop() { d.stack = d.stack[:len(d.stack)-1] }

func (d *documents) begin(bare bool) {
	d.conv = &docConversation{line: d.s.Line, bare: bare}
	if bare {
		d.s.Open()
		d.push(frameMessages)
		return
	}
	d.s.Tape, d.s.TapeMax, d.s.Recording = nil, d.limit(), true
	d.s.Open()
	d.push(frameObject)
}

func (d *documents) limit() int {
	if d.o.MaxMessageBytes > 0 {
		return d.o.MaxMessageBytes
	}
	return DefaultMaxMessageBytes
}

// key reads one key of a conversation's object, or its end.
func (d *documents) key(in frameKind, first bool) error {
	key, more, err := d.s.NextKey(first)
	if err != nil {
		return err
	}
	if !more {
		d.pop()
		if in == frameRequest {
			return nil
		}
		return d.conclude()
	}
	c, err := d.s.Peek()
	if err != nil {
		return d.s.EndOr(err)
	}
	isOuter := in == frameObject && slices.Contains(d.outer, key) && (key != d.response || d.conv.arrayKey == "")
	switch {
	case c == '[' && (isOuter || slices.Contains(d.arrays, key)):
		if d.conv.arrayKey != "" {
			return d.s.Bad(fmt.Errorf("it has two arrays of messages, %q and %q", d.conv.arrayKey, key))
		}
		d.conv.arrayKey = key
		d.s.Open()
		d.s.Recording = false
		d.push(frameMessages)
		return nil
	case c == '{' && in == frameObject && (key == "request" || key == "request_params"):
		d.conv.nested = true
		d.s.Open()
		d.push(frameRequest)
		return nil
	case c == '[' && in == frameObject && key == "trajectory":
		// Repeats the messages of every step: not kept.
		d.s.Recording = false
		err = d.s.Skip()
		d.s.Recording = true
		d.s.Tape = append(d.s.Tape, "null"...)
	default:
		err = d.s.Skip()
	}
	if err == nil && d.s.TapeFull() {
		err = d.s.Bad(fmt.Errorf("what stands beside the messages is over %d bytes", d.s.TapeMax))
	}
	return err
}

// message reads one message of the array, or its end.
func (d *documents) message(emit func(Item), first bool) error {
	c := d.conv
	more, err := d.s.NextElement(first)
	if err != nil {
		return err
	}
	if !more {
		if !c.bare {
			d.s.Tape = append(d.s.Tape, c.layout(d.s.Gap)...)
			d.s.Tape = append(d.s.Tape, ']')
			d.s.Recording = true
		}
		d.pop()
		if c.bare {
			return d.conclude()
		}
		return nil
	}
	switch c.count {
	case 0:
		c.open = bytes.Clone(d.s.Gap)
	case 1:
		c.sep = bytes.Clone(d.s.Gap)
	}
	c.count++
	line := d.s.Line
	native, err := d.s.Value(d.limit())
	if errors.Is(err, jsonstream.ErrTooLarge) {
		err = jsonstream.At(line, fmt.Errorf("a message of more than %d bytes; the limit can be raised", d.limit()))
		if d.o.Lenient {
			var broken *jsonstream.Damage
			errors.As(err, &broken)
			emit(damagedNote(broken))
			return nil
		}
	}
	if err != nil {
		return err
	}
	raw := rawMessage{native: native, line: line}
	if c.started {
		return d.emitMessage(emit, c, raw, d.early(c))
	}
	c.held = append(c.held, raw)
	c.heldBytes += len(native)
	if c.heldBytes <= d.hold {
		return nil
	}
	if c.nested {
		return jsonstream.At(line, fmt.Errorf("one request of a log has messages of more than %d bytes", d.hold))
	}
	d.out = append(d.out, delivery{c: c, meta: d.meta(c, nil), source: d.early(c), held: c.held})
	c.held, c.heldBytes = nil, 0
	return nil
}

// layout is what the envelope keeps of the array: nothing when it was written without blanks, else two
// placeholders with the blanks around them.
func (c *docConversation) layout(closing []byte) []byte {
	sep := c.sep
	if sep == nil {
		sep = []byte(`,`)
		if len(c.open) > 0 {
			sep = append(sep, c.open...)
		}
	}
	if len(c.open) == 0 && len(closing) == 0 && len(sep) == 1 || c.count == 0 {
		return nil
	}
	var out []byte
	return fmt.Appendf(out, "%s0%s0%s", c.open, sep, closing)
}

// sourceUnknown stands for a wrapper whose object has not been read to its end.
const sourceUnknown = "?"

// early names the wrapper as far as the key of the messages alone shows it.
func (d *documents) early(c *docConversation) string {
	if c.bare {
		return ""
	}
	return d.wrapper(nil, rawjson.Value{}, c.arrayKey)
}

// meta puts together what is known of a conversation; tape is the object around its messages, nil when it is
// not whole.
func (d *documents) meta(c *docConversation, tape []byte) Meta {
	m := Meta{Format: d.format.name()}
	if tape == nil {
		if m.Source = d.early(c); m.Source == sourceUnknown {
			m.Source = ""
		}
		return m
	}
	outer := rawjson.Root(tape)
	m.Source = d.wrapper(tape, outer, c.arrayKey)
	if m.Source == "" {
		m.Envelope = tape
		d.request(tape, outer, &m)
	} else {
		d.envelope(tape, outer, &m)
	}
	return m
}

// conclude ends a conversation whose object has been read.
func (d *documents) conclude() error {
	c := d.conv
	d.conv = nil
	d.s.Recording = false
	tape := d.s.Tape
	d.s.Tape = nil
	if c.bare {
		d.give(c, Meta{Format: d.format.name()}, nil)
		return nil
	}
	if c.arrayKey == "" && d.text != nil {
		tape = d.textMessage(c, tape)
	}
	outer := rawjson.Root(tape)
	response := rawjson.Value{}
	if v, ok := outer.Lookup("response"); ok && v.IsObject() {
		response = v
	}
	if c.arrayKey == "" {
		if c.nested {
			d.notes.add(Note{Code: NoteRecord, What: "request", Reason: "a recorded request without messages"}, c.line)
			return nil
		}
		if !response.IsMissing() {
			// A log's answer to the request before it.
			if d.last != nil {
				d.last.response = response.Raw()
				d.last = nil
			}
			return nil
		}
		return jsonstream.At(c.line, errors.New("the object has no array of messages"))
	}
	if c.nested {
		d.keep(c, tape, response.Raw())
		return nil
	}
	m := d.meta(c, tape)
	switch {
	case c.arrayKey == d.response:
		response = outer
	case m.Source == "":
		response = rawjson.Value{} // a key of the request
	}
	d.give(c, m, response.Raw())
	return nil
}

// textMessage makes a message of what is a plain string, and gives the tape with an empty array in its place.
func (d *documents) textMessage(c *docConversation, tape []byte) []byte {
	request := rawjson.Root(tape)
	if c.nested {
		for _, key := range []string{"request", "request_params"} {
			if v, ok := request.Lookup(key); ok && v.IsObject() {
				request = v
				break
			}
		}
	}
	at, message := d.text(tape, request)
	if message == nil {
		return tape
	}
	c.arrayKey = d.arrays[0]
	c.held = []rawMessage{{native: message, line: c.line}}
	c.heldBytes = len(message)
	return at.With([]byte("[]"))
}

// keep holds a request of a log back, in place of an earlier one of the same conversation.
func (d *documents) keep(c *docConversation, tape, response []byte) {
	c.tape, c.outer = tape, rawjson.Root(tape)
	c.source = d.wrapper(tape, c.outer, c.arrayKey)
	if len(response) > 0 {
		c.response = response
	}
	if d.follows == nil || !d.follow(c) {
		c.group = c.beginning()
	}
	d.clock++
	c.touched = d.clock
	d.last = nil
	for i, old := range d.log {
		if old.group != c.group {
			continue
		}
		d.notes.add(Note{Code: NoteRequest, What: c.source, Reason: "the last request of the conversation contains it"},
			c.line)
		if c.source == sourceLiteLLM && len(c.held) < len(old.held) {
			old.touched = d.clock
			return // a retry from further back; the longer one is the conversation
		}
		d.logBytes += c.heldBytes - old.heldBytes
		d.log[i], d.last = c, c
		d.trim()
		return
	}
	d.log = append(d.log, c)
	d.last = c
	d.logBytes += c.heldBytes
	d.trim()
}

// follow puts the messages of the request that c goes on from before its own, and says whether there is one.
func (d *documents) follow(c *docConversation) bool {
	request, ok := c.outer.Lookup("request")
	if !ok {
		return false
	}
	for i := len(d.log) - 1; i >= 0; i-- {
		old := d.log[i]
		if len(old.response) == 0 {
			continue
		}
		cut, ok := d.follows(c.tape, request, c.held, old.response)
		if !ok {
			continue
		}
		before := old.held[:len(old.held):len(old.held)]
		if cut != "" {
			before = append(before, d.answers(old)...)
			c.tape = request.With(goesOnFrom(request, old, cut))
			c.outer = rawjson.Root(c.tape)
		}
		c.held = append(before, c.held...)
		c.heldBytes += old.heldBytes
		c.group = old.group
		return true
	}
	return false
}

// goesOnFrom gives the request at v as one that holds the messages of old as well: it refers to what that referred to,
// or to nothing.
func goesOnFrom(v rawjson.Value, old *docConversation, key string) []byte {
	if earlier, ok := old.outer.Lookup("request", key); ok && earlier.IsString() {
		at, _ := v.Lookup(key)
		return rawjson.Apply(v.Raw(), rawjson.Splice{
			Start: at.Start() - v.Start(), End: at.End() - v.Start(),
			Text: earlier.Raw(),
		})
	}
	out, _ := v.DropKeys(func(k string, _ rawjson.Value) bool { return k == key })
	return out
}

// answers gives the messages of the recorded response.
func (d *documents) answers(c *docConversation) []rawMessage {
	natives, usage := d.answer(c.response)
	out := make([]rawMessage, len(natives))
	for i, native := range natives {
		out[i] = rawMessage{native: native, line: c.line, answer: true}
	}
	if len(out) > 0 {
		out[len(out)-1].usage = usage
	}
	return out
}

// beginning is the same for all requests of one conversation: the messages up to the first of the user.
func (c *docConversation) beginning() [32]byte {
	h := sha256.New()
	for _, m := range c.held {
		sum := rawjson.Fingerprint(m.native)
		h.Write(sum[:])
		if role, _ := rawjson.Root(m.native).Lookup("role"); role.Text() == "user" {
			break
		}
	}
	return [32]byte(h.Sum(nil))
}

// trim gives out the conversation that was not continued for the longest time when too much is held back.
func (d *documents) trim() {
	for d.logBytes > d.logs && len(d.log) > 1 {
		oldest := 0
		for i, c := range d.log {
			if c.touched < d.log[oldest].touched {
				oldest = i
			}
		}
		d.release(oldest)
	}
}

func (d *documents) release(i int) {
	c := d.log[i]
	d.log = append(d.log[:i], d.log[i+1:]...)
	d.logBytes -= c.heldBytes
	d.give(c, d.meta(c, c.tape), c.response)
}

// finish gives out what is held back, then the end.
func (d *documents) finish(emit func(Item)) error {
	if len(d.log) > 0 {
		d.release(0)
		return nil
	}
	if d.notes.flush(emit) {
		return nil
	}
	return io.EOF
}

// give puts a whole conversation on its way out, or the rest of one that has started.
func (d *documents) give(c *docConversation, m Meta, response []byte) {
	if m.Continued {
		d.notes.add(Note{
			Code: NoteMissing, What: "history",
			Reason: "the request goes on from a conversation that the vendor keeps: what came before is not in the " +
				"file",
		}, c.line)
	}
	d.out = append(d.out, delivery{c: c, meta: m, source: m.Source, held: c.held, response: response, end: true})
	c.held, c.heldBytes = nil, 0
}

// deliver gives out the next piece of what is on its way.
func (d *documents) deliver(emit func(Item)) error {
	o := &d.out[0]
	c := o.c
	if o.end && len(o.response) > 0 {
		natives, usage := d.answer(o.response)
		if usage != nil && usage.Model != "" {
			o.meta.Model = usage.Model
		}
		for _, native := range natives {
			o.held = append(o.held, rawMessage{native: native, line: c.line, answer: true})
		}
		if n := len(o.held); usage != nil && n > 0 {
			o.held[n-1].usage = usage
		}
		o.response = nil
	}
	if !c.started {
		c.started = true
		m := o.meta
		emit(Item{Line: c.line, Start: &m})
		return nil
	}
	if len(o.held) > 0 {
		raw := o.held[0]
		o.held[0] = rawMessage{}
		o.held = o.held[1:]
		return d.emitMessage(emit, c, raw, o.source)
	}
	if o.end {
		m := o.meta
		emit(Item{Line: c.line, End: &m})
	}
	d.out = d.out[1:]
	return nil
}

// emitMessage decodes a message of the file.
func (d *documents) emitMessage(emit func(Item), c *docConversation, raw rawMessage, source string) error {
	cl := cleaned{native: raw.native, usage: raw.usage}
	if !raw.answer && rawjson.Root(raw.native).IsObject() {
		if cl = d.clean(source, raw.native, c.answered); cl.usage == nil {
			cl.usage = raw.usage
		}
	}
	if cl.skip != "" {
		d.notes.add(Note{Code: NoteMessage, What: cl.role, Reason: cl.skip}, raw.line)
		return nil
	}
	for _, key := range cl.cut {
		d.notes.add(Note{Code: NoteKeys, What: key, Reason: "it is no part of the message for the API"}, raw.line)
	}
	m, err := decode(d.format, cl.native)
	if err != nil {
		broken := &jsonstream.Damage{Line: raw.line, Reason: err}
		if d.o.Lenient {
			emit(damagedNote(broken))
			return nil
		}
		return broken
	}
	if cl.kind != "" {
		m.Kind = cl.kind
	}
	// A file's own summaries are to be trusted: it is the whole of what its owner has.
	if m.Role == pipeline.RoleUser && m.Kind == pipeline.KindOrdinary && layout.LooksLikeSummary(m) {
		m.Kind = pipeline.KindSummary
	}
	emit(Item{Line: raw.line, Message: &m})
	if d.summary != nil && c.given > 0 {
		if summary, ok := d.summary(m, c.answered); ok {
			emit(Item{Line: raw.line, Compaction: &Compaction{Summary: summary, Kept: 1, InMessages: true}})
		}
	}
	c.given++
	c.answered = c.answered || m.Role == pipeline.RoleAssistant
	if cl.usage != nil {
		emit(Item{Line: raw.line, Usage: cl.usage})
	}
	return nil
}
