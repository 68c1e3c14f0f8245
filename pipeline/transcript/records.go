package transcript

import (
	"errors"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
)

// Files that are a sequence of records: one JSON value per line, or the entries of arrays inside of JSON documents.
// Memory is bounded by the largest record, and for documents by the object around the records.

// A recordReader reads the records of a file of one format.
type recordReader interface {
	// record reads one record: valid JSON, which it may keep. An error describes what is wrong with the record.
	record(out *emitter, b []byte, line int) error
	// end is called when all records of a conversation have been read. around is the object around them, with an
	// empty array in their place; nil if there is none, or if it was damaged. Errors in the file go through
	// emitter.fault.
	end(out *emitter, around []byte) error
}

// An emitter emits the items of one conversation after the other.
type emitter struct {
	// meta has the metadata of the conversation so far.
	meta Meta
	// count is the number of messages so far.
	count   int
	notes   notes
	emit    func(Item)
	begun   bool
	given   int  // conversations so far
	fresh   Meta // the initial metadata of every conversation of the file
	lenient bool
	back    takenBack
}

func newEmitter(m Meta, o Options) emitter { return emitter{meta: m, fresh: m, lenient: o.Lenient} }

// fault returns an error for damage of the file, or emits a note and returns nil if the decoder is lenient.
func (s *emitter) fault(line int, reason error) error {
	if broken := (*jsonstream.Damage)(nil); errors.As(reason, &broken) {
		return reason // it names the line of a record that was held back
	}
	if !s.lenient {
		return jsonstream.At(line, reason)
	}
	s.emit(damagedNote(&jsonstream.Damage{Line: line, Reason: reason}))
	return nil
}

func (s *emitter) begin(line int) {
	if s.begun {
		return
	}
	s.begun = true
	s.given++
	m := s.meta
	s.emit(Item{Line: line, Start: &m})
}

func (s *emitter) message(line int, m pipeline.Message) {
	s.begin(line)
	// The summaries of a file are trusted, because the owner of the file provides all of it.
	if m.Role == pipeline.RoleUser && m.Kind == pipeline.KindOrdinary && layout.LooksLikeSummary(m) {
		m.Kind = pipeline.KindSummary
	}
	s.count++
	s.put(Item{Line: line, Message: &m}, len(m.Native))
}

// usage emits a figure, if there is one.
func (s *emitter) usage(line int, u *Usage) {
	if u == nil || u.Used <= 0 {
		return
	}
	s.begin(line)
	if u.Model != "" {
		s.meta.Model = u.Model
	}
	s.put(Item{Line: line, Usage: u}, 0)
}

func (s *emitter) compaction(line int, c Compaction) {
	s.begin(line)
	c.Summary.Kind = pipeline.KindSummary
	s.put(Item{Line: line, Compaction: &c}, len(c.Summary.Native))
}

func (s *emitter) note(line int, code NoteCode, what, reason string) {
	s.notes.add(Note{Code: code, What: what, Reason: reason}, line)
}

func (s *emitter) close(line int) {
	s.release()
	if s.begun {
		m := s.meta
		s.emit(Item{Line: line, End: &m})
	}
	s.begun, s.count, s.meta = false, 0, s.fresh
	s.back = takenBack{hold: s.back.hold}
}

// messageLimit bounds a single message or line, in bytes.
func (o Options) messageLimit() int {
	if o.MaxMessageBytes > 0 {
		return o.MaxMessageBytes
	}
	return DefaultMaxMessageBytes
}
