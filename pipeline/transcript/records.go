package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// Files that are a row of records: a JSON value a line, or the entries of arrays inside of JSON documents. Memory
// is bounded by the largest record, and for documents by what stands around the records.

// A recordReader is a format's way with the records of a file.
type recordReader interface {
	// record takes one record: sound JSON, which it may keep. An error says what is wrong with the record.
	record(out *scribe, b []byte, line int) error
	// end is told that all records of a conversation have come. around is the object around them, with an empty
	// array in their place; nil where there is none, or where it was damaged. A fault goes through scribe.fault.
	end(out *scribe, around []byte) error
}

// A scribe gives out the items of one conversation after the other.
type scribe struct {
	// meta is what is known of the conversation so far.
	meta Meta
	// count is the number of its messages so far.
	count   int
	notes   notes
	emit    func(Item)
	begun   bool
	given   int  // conversations so far
	fresh   Meta // what every conversation of the file begins with
	lenient bool
}

func newScribe(m Meta, o Options) scribe { return scribe{meta: m, fresh: m, lenient: o.Lenient} }

// fault is what a fault of the file comes to: an error, or a note when they are to be skipped.
func (s *scribe) fault(line int, reason error) error {
	if broken := (*jsonstream.Damage)(nil); errors.As(reason, &broken) {
		return reason // it names the line of a record that was held back
	}
	if !s.lenient {
		return jsonstream.At(line, reason)
	}
	s.emit(damagedNote(&jsonstream.Damage{Line: line, Reason: reason}))
	return nil
}

func (s *scribe) begin(line int) {
	if s.begun {
		return
	}
	s.begun = true
	s.given++
	m := s.meta
	s.emit(Item{Line: line, Start: &m})
}

func (s *scribe) message(line int, m pipeline.Message) {
	s.begin(line)
	// A file's own summaries are to be trusted: it is the whole of what its owner has.
	if m.Role == pipeline.RoleUser && m.Kind == pipeline.KindOrdinary && layout.LooksLikeSummary(m) {
		m.Kind = pipeline.KindSummary
	}
	s.count++
	s.emit(Item{Line: line, Message: &m})
}

// usage gives out a figure, if there is one.
func (s *scribe) usage(line int, u *Usage) {
	if u == nil || u.Used <= 0 {
		return
	}
	s.begin(line)
	if u.Model != "" {
		s.meta.Model = u.Model
	}
	s.emit(Item{Line: line, Usage: u})
}

func (s *scribe) compaction(line int, c Compaction) {
	s.begin(line)
	c.Summary.Kind = pipeline.KindSummary
	s.emit(Item{Line: line, Compaction: &c})
}

func (s *scribe) note(line int, code NoteCode, what, reason string) {
	s.notes.add(Note{Code: code, What: what, Reason: reason}, line)
}

func (s *scribe) close(line int) {
	if s.begun {
		m := s.meta
		s.emit(Item{Line: line, End: &m})
	}
	s.begun, s.count, s.meta = false, 0, s.fresh
}

// messageLimit bounds a single message or line, in bytes.
func (o Options) messageLimit() int {
	if o.MaxMessageBytes > 0 {
		return o.MaxMessageBytes
	}
	return DefaultMaxMessageBytes
}

// ---- a value a line

type jsonLines struct {
	s     *jsonstream.Reader
	o     Options
	r     recordReader
	out   scribe
	ended bool
}

func openLines(s *jsonstream.Reader, o Options, m Meta, r recordReader) source {
	return &jsonLines{s: s, o: o, r: r, out: newScribe(m, o)}
}

func (j *jsonLines) step(emit func(Item)) error {
	j.out.emit = emit
	if j.ended {
		if j.out.notes.flush(emit) {
			return nil
		}
		return io.EOF
	}
	line, number, err := j.s.NextLine(j.o.messageLimit())
	switch {
	case err == io.EOF:
		j.ended = true
		err = j.r.end(&j.out, nil)
		j.out.close(max(j.s.Line, 1))
		return err
	case errors.Is(err, jsonstream.ErrTooLarge):
		return j.out.fault(number, fmt.Errorf("a line of more than %d bytes; the limit can be raised",
			j.o.messageLimit()))
	case err != nil:
		return err
	}
	// One value, but for lines that a crash ran together.
	for i := rawjson.SkipSpace(line, 0); i < len(line); i = rawjson.SkipSpace(line, i) {
		end, err := rawjson.Prefix(line[i:])
		if err != nil {
			return j.out.fault(number, err)
		}
		b := line[i : i+end]
		if i += end; b[0] != '{' {
			err = errors.New("expected a record, found JSON that is no object")
		} else {
			err = j.r.record(&j.out, bytes.Clone(b), number)
		}
		if err != nil {
			if err := j.out.fault(number, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// ---- arrays inside of documents

type jsonArrays struct {
	s *jsonstream.Reader
	o Options
	r recordReader
	// paths are where in a document its records are: "messages", "values.messages"; "" for a document that is
	// the array itself.
	paths []string
	out   scribe
	stack []arrayFrame
	// line is where the document begins, before how many conversations were given out until then.
	line, before int
	found        string
	ended        bool
}

type arrayFrame struct {
	path    string
	records bool // the array, as against an object on the way to it
	first   bool
}

func openArrays(s *jsonstream.Reader, o Options, m Meta, r recordReader, paths ...string) source {
	return &jsonArrays{s: s, o: o, r: r, paths: paths, out: newScribe(m, o)}
}

// noArray marks a document in which no array of records was found yet.
const noArray = "\x00"

func (a *jsonArrays) step(emit func(Item)) error {
	a.out.emit = emit
	if a.ended {
		if a.out.notes.flush(emit) {
			return nil
		}
		return io.EOF
	}
	err := a.advance()
	var broken *jsonstream.Damage
	if !errors.As(err, &broken) || !a.o.Lenient {
		return err
	}
	// What was read of the conversation so far is good; the rest of it is lost.
	a.s.Recording = false
	emit(damagedNote(broken))
	if a.out.begun {
		if err := a.r.end(&a.out, nil); err != nil {
			return err
		}
		a.out.close(a.s.Line)
	}
	a.stack = a.stack[:0]
	if !a.s.ToLine('{') {
		a.ended = true
	}
	return nil
}

func (a *jsonArrays) advance() error {
	if len(a.stack) == 0 {
		return a.document()
	}
	f := &a.stack[len(a.stack)-1]
	first := f.first
	f.first = false
	if f.records {
		return a.element(first)
	}
	return a.key(f.path, first)
}

// document begins with the next document of the file.
func (a *jsonArrays) document() error {
	c, err := a.s.Peek()
	if err == io.EOF {
		a.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	a.line, a.before, a.found = a.s.Line, a.out.given, noArray
	bare := slices.Contains(a.paths, "")
	switch {
	case c == '{':
		a.s.Tape, a.s.TapeMax, a.s.Recording = nil, a.o.messageLimit(), true
		a.s.Open()
		a.stack = append(a.stack, arrayFrame{first: true})
	case c == '[' && bare:
		a.found = ""
		a.s.Open()
		a.stack = append(a.stack, arrayFrame{records: true, first: true})
	case bare:
		return a.s.Bad(fmt.Errorf("expected an object or an array, found %q", c))
	default:
		return a.s.Bad(fmt.Errorf("expected an object, found %q", c))
	}
	return nil
}

// key reads one key of an object, or its end.
func (a *jsonArrays) key(path string, first bool) error {
	key, more, err := a.s.NextKey(first)
	if err != nil {
		return err
	}
	if !more {
		a.stack = a.stack[:len(a.stack)-1]
		if len(a.stack) == 0 {
			return a.conclude()
		}
		return nil
	}
	c, err := a.s.Peek()
	if err != nil {
		return a.s.EndOr(err)
	}
	if path != "" {
		path += "."
	}
	path += key
	switch {
	case c == '[' && slices.Contains(a.paths, path):
		if a.found != noArray {
			return a.s.Bad(fmt.Errorf("it has two arrays of records, %q and %q", a.found, path))
		}
		a.found = path
		a.s.Open()
		a.s.Recording = false
		a.stack = append(a.stack, arrayFrame{path: path, records: true, first: true})
		return nil
	case c == '{' && slices.ContainsFunc(a.paths, func(p string) bool { return strings.HasPrefix(p, path+".") }):
		a.s.Open()
		a.stack = append(a.stack, arrayFrame{path: path, first: true})
		return nil
	}
	if err = a.s.Skip(); err == nil && a.s.TapeFull() {
		err = a.s.Bad(fmt.Errorf("what stands beside the records is over %d bytes", a.s.TapeMax))
	}
	return err
}

// element reads one record, or the end of the array.
func (a *jsonArrays) element(first bool) error {
	more, err := a.s.NextElement(first)
	if err != nil {
		return err
	}
	if !more {
		a.stack = a.stack[:len(a.stack)-1]
		if len(a.stack) == 0 {
			return a.conclude()
		}
		a.s.Tape, a.s.Recording = append(a.s.Tape, ']'), true
		return nil
	}
	line := a.s.Line
	b, err := a.s.Value(a.o.messageLimit())
	switch {
	case errors.Is(err, jsonstream.ErrTooLarge):
		err = fmt.Errorf("a message of more than %d bytes; the limit can be raised", a.o.messageLimit())
	case err != nil:
		return err
	case b[0] != '{':
		err = errors.New("expected a record, found JSON that is no object")
	default:
		err = a.r.record(&a.out, b, line)
	}
	if err == nil {
		return nil
	}
	return a.out.fault(line, err)
}

// conclude ends a document that was read whole.
func (a *jsonArrays) conclude() error {
	a.s.Recording = false
	around := a.s.Tape
	a.s.Tape = nil
	switch a.found {
	case noArray:
		return jsonstream.At(a.line, fmt.Errorf("the object has no array of records under %s", quoted(a.paths)))
	case "":
		around = nil
	}
	if err := a.r.end(&a.out, around); err != nil {
		return err
	}
	if a.out.given == a.before {
		a.out.begin(a.line)
	}
	a.out.close(max(a.s.Line, 1))
	return nil
}

func quoted(names []string) string {
	var all []string
	for _, n := range names {
		if n != "" {
			all = append(all, fmt.Sprintf("%q", n))
		}
	}
	return strings.Join(all, " or ")
}

// ---- writing

// An entry is one message of a context on its way into a file.
type entry struct {
	native []byte // sound JSON
	made   *pipeline.Made
}

// entries encodes the context in a format, less what leaves nothing.
func (o Output) entries(f format) ([]entry, error) {
	out := make([]entry, 0, len(o.Items))
	for i, it := range o.Items {
		b, err := Codec{f}.EncodeItem(it)
		if err == nil && b != nil {
			err = check(f, b)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b != nil {
			out = append(out, entry{b, it.Made})
		}
	}
	return out, nil
}

func nativesOf(all []entry) [][]byte {
	out := make([][]byte, len(all))
	for i, e := range all {
		out[i] = e.native
	}
	return out
}

// firstStored gives the value at a path of the first stored message that has it, JSON, for what is made to be placed
// right before that message: no clock is read.
func firstStored(all []entry, path ...string) []byte {
	for _, e := range all {
		if e.made != nil {
			continue
		}
		if v, ok := rawjson.Root(e.native).Lookup(path...); ok {
			return v.Raw()
		}
	}
	return nil
}
