package transcript

import (
	"io"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// A delivery is a conversation that is being emitted, or the held messages of one that continues.
type delivery struct {
	c        *docConversation
	meta     Meta
	source   string
	held     []rawMessage
	response []byte
	end      bool
}

// sourceUnknown is the source of a wrapper whose object has not been read to its end.
const sourceUnknown = "?"

// early returns the wrapper, if the key of the messages alone determines it.
func (d *documents) early(c *docConversation) string {
	if c.bare {
		return ""
	}
	return d.wrapper(nil, rawjson.Value{}, c.arrayKey)
}

// meta returns the metadata of a conversation; tape is the object around its messages, nil if it is incomplete.
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

// finish emits the held messages, then the end.
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

// give starts to emit a complete conversation, or the rest of one that has started.
func (d *documents) give(c *docConversation, m Meta, response []byte) {
	if m.Continued {
		d.notes.add(Note{
			Code: NoteMissing, What: "history",
			Reason: "the request continues a conversation that the vendor stores: the earlier messages are not in " +
				"the file",
		}, c.line)
	}
	d.out = append(d.out, delivery{c: c, meta: m, source: m.Source, held: c.held, response: response, end: true})
	c.held, c.heldBytes = nil, 0
}

// deliver emits the next piece of the conversation that is being emitted.
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
		d.notes.add(Note{Code: NoteKeys, What: key, Reason: "it does not belong to the message for the API"}, raw.line)
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
	// The summaries of a file are trusted, because the owner of the file provides all of it.
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
