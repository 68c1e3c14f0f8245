package transcript

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"precis/pipeline/transcript/jsonstream"
)

type jsonArrays struct {
	s *jsonstream.Reader
	o Options
	r recordReader
	// paths are the paths of the records in a document: "messages", "values.messages"; "" for a document that is the
	// array itself.
	paths []string
	out   emitter
	stack []arrayFrame
	// line is the first line of the document, before the number of conversations that were emitted before it.
	line, before int
	found        string
	ended        bool
}

type arrayFrame struct {
	path    string
	records bool // the array, as opposed to an object on the path to it
	first   bool
}

func openArrays(s *jsonstream.Reader, o Options, m Meta, r recordReader, paths ...string) source {
	return &jsonArrays{s: s, o: o, r: r, paths: paths, out: newEmitter(m, o)}
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
	// The messages read so far are valid; the rest of the conversation is lost.
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
			return a.s.Bad(fmt.Errorf("the object has two arrays of records, %q and %q", a.found, path))
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
		err = a.s.Bad(fmt.Errorf("the keys beside the records have more than %d bytes", a.s.TapeMax))
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
		err = errors.New("expected a record, found JSON that is not an object")
	default:
		err = a.r.record(&a.out, b, line)
	}
	if err == nil {
		return nil
	}
	return a.out.fault(line, err)
}

// conclude ends a document that was read completely.
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
