package transcript

import (
	"crypto/sha256"

	"precis/pipeline/transcript/rawjson"
)

// keep holds back a request of a log in place of an earlier one of the same conversation.
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
			return // a retry from an earlier point; the longer request is the conversation
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

// follow prepends the messages of the request that c continues to those of c, and reports whether there is one.
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
			c.tape = request.With(withReferenceOf(request, old, cut))
			c.outer = rawjson.Root(c.tape)
		}
		c.held = append(before, c.held...)
		c.heldBytes += old.heldBytes
		c.group = old.group
		return true
	}
	return false
}

// withReferenceOf returns the request at v as one that also has the messages of old: it has the reference of old, or
// none.
func withReferenceOf(v rawjson.Value, old *docConversation, key string) []byte {
	if earlier, ok := old.outer.Lookup("request", key); ok && earlier.IsString() {
		at := v.Get(key)
		return rawjson.Apply(v.Raw(), rawjson.Splice{
			Start: at.Start() - v.Start(), End: at.End() - v.Start(),
			Text: earlier.Raw(),
		})
	}
	out, _ := v.DropKeys(func(k string, _ rawjson.Value) bool { return k == key })
	return out
}

// answers returns the messages of the recorded response.
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

// beginning returns what all requests of one conversation share: the messages up to the first of the user.
func (c *docConversation) beginning() [32]byte {
	h := sha256.New()
	for _, m := range c.held {
		sum := rawjson.Fingerprint(m.native)
		h.Write(sum[:])
		if role := rawjson.Root(m.native).Get("role"); role.Text() == "user" {
			break
		}
	}
	return [32]byte(h.Sum(nil))
}

// trim emits the conversation that was not continued for the longest time if too much is held back.
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
