package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

// holdBytes bounds the messages of one conversation that are held back until its whole request has been read, because
// the keys that show the kind of the file may follow the messages. It is more than a vendor takes in one request
// (Anthropic 32 MB, OpenAI 50 MB), so that only files that were never sent exceed it; their messages are emitted as
// they are read.
const holdBytes = 64 << 20

// logBytes bounds the requests that are held back from a log in which each request repeats the one before.
const logBytes = 128 << 20

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
	last       *docConversation // its response may come next
	clock      int
	hold, logs int // holdBytes and logBytes, except in tests
	// out is a conversation that has been read and is being emitted, message by message.
	out   []delivery
	ended bool
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
	// The messages read so far are valid; the rest of the conversation is lost.
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
			return d.s.Bad(fmt.Errorf("the object has two arrays of messages, %q and %q", d.conv.arrayKey, key))
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
		// It repeats the messages of every step and is not kept.
		d.s.Recording = false
		err = d.s.Skip()
		d.s.Recording = true
		d.s.Tape = append(d.s.Tape, "null"...)
	default:
		err = d.s.Skip()
	}
	if err == nil && d.s.TapeFull() {
		err = d.s.Bad(fmt.Errorf("the keys beside the messages have more than %d bytes", d.s.TapeMax))
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
