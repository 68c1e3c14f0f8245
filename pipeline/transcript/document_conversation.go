package transcript

import (
	"errors"
	"fmt"

	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

type docConversation struct {
	line      int
	arrayKey  string
	bare      bool // the array is the whole document
	nested    bool // the messages are in a request object inside of an entry of a log
	held      []rawMessage
	heldBytes int
	started   bool // its messages are emitted as they are read
	answered  bool // there was a message of the assistant
	given     int  // number of messages that were emitted
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

// layout returns the content of the array in the envelope: none if it was written without blanks, else two
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
			// It is the response of a log to the request before it.
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

// textMessage makes a message of a plain string, and returns the tape with an empty array in its place.
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
