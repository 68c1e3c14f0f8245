package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// windowBytes is how much of a file is in memory at least, to look ahead in.
const windowBytes = 256 << 10

// gapBytes bounds the blanks between two messages whose layout is kept.
const gapBytes = 256

// errTooLarge is the reason for a value over its limit; the stream stands behind the value then.
var errTooLarge = errors.New("too large")

// A stream reads JSON from a reader piece by piece.
type stream struct {
	r        io.Reader
	buf      []byte
	pos, end int
	err      error // of the reader, io.EOF at its end
	line     int   // of buf[pos], from 1
	sc       rawjson.Scanner
	// gap is the blanks that were skipped last, empty when there are many.
	gap []byte
	// tape gets everything that is consumed while recording is on, up to tapeMax bytes.
	tape      []byte
	tapeMax   int
	recording bool
}

func newStream(r io.Reader) (*stream, error) {
	s := &stream{r: r, buf: make([]byte, windowBytes), line: 1}
	head := s.window()
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		s.pos += 3
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil, pipeline.Errorf(pipeline.BadRequest, "the transcript is UTF-16; convert it to UTF-8")
	}
	if s.err != nil && s.err != io.EOF {
		return nil, s.readError()
	}
	return s, nil
}

// window gives as much as can be seen ahead without consuming any of it, at most windowBytes.
func (s *stream) window() []byte {
	for s.end-s.pos < len(s.buf) && s.err == nil {
		s.fill()
	}
	return s.buf[s.pos:s.end]
}

// fill reads once more, making room first.
func (s *stream) fill() {
	if s.pos > 0 {
		copy(s.buf, s.buf[s.pos:s.end])
		s.end -= s.pos
		s.pos = 0
	}
	n, err := s.r.Read(s.buf[s.end:])
	s.end += n
	if err != nil {
		s.err = err
	}
}

// more makes sure that there is a byte to look at.
func (s *stream) more() bool {
	for s.pos == s.end && s.err == nil {
		s.fill()
	}
	return s.pos < s.end
}

func (s *stream) readError() error {
	if s.err == io.EOF {
		return io.EOF
	}
	return fmt.Errorf("read the transcript: %w", s.err)
}

// take consumes n bytes of the buffer.
func (s *stream) take(n int) {
	taken := s.buf[s.pos : s.pos+n]
	s.line += bytes.Count(taken, []byte{'\n'})
	if s.recording && len(s.tape) <= s.tapeMax {
		s.tape = append(s.tape, taken...)
	}
	s.pos += n
}

// peek skips blanks and gives the byte after them; io.EOF when none is left.
func (s *stream) peek() (byte, error) {
	s.gap = s.gap[:0]
	blanks := 0
	for s.more() {
		n := s.pos
		for n < s.end && rawjson.IsSpace(s.buf[n]) {
			n++
		}
		n -= s.pos
		if blanks += n; blanks <= gapBytes {
			s.gap = append(s.gap, s.buf[s.pos:s.pos+n]...)
		} else {
			s.gap = s.gap[:0]
		}
		s.take(n)
		if s.pos < s.end {
			return s.buf[s.pos], nil
		}
	}
	return 0, s.readError()
}

// value reads the next value. It is a copy that the caller may keep. A value over limit bytes is skipped and
// gives errTooLarge.
func (s *stream) value(limit int) ([]byte, error) { return s.read(limit, true) }

// skip reads over the next value, whatever its size.
func (s *stream) skip() error {
	_, err := s.read(0, false)
	return err
}

func (s *stream) read(limit int, keep bool) ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, s.endOr(err)
	}
	var out []byte
	var failed error
	s.sc.Reset()
	for {
		n, done, err := s.sc.Feed(s.buf[s.pos:s.end])
		if keep && failed == nil {
			if len(out)+n > limit {
				out, failed = nil, errTooLarge
			} else {
				out = append(out, s.buf[s.pos:s.pos+n]...)
			}
		}
		s.take(n)
		if err != nil {
			return nil, s.bad(err)
		}
		if done {
			return out, failed
		}
		if !s.more() {
			if err := s.readError(); err != io.EOF {
				return nil, err
			}
			if err := s.sc.Finish(); err != nil {
				return nil, s.bad(err)
			}
			return out, failed
		}
	}
}

// open consumes the '{' or '[' that peek has seen.
func (s *stream) open() { s.take(1) }

// nextKey gives the next key of an open object; ok is false at its end, which is consumed. first is true for
// the call after open.
func (s *stream) nextKey(first bool) (key string, ok bool, err error) {
	more, err := s.next(first, '}')
	if err != nil || !more {
		return "", false, err
	}
	c, err := s.peek()
	if err != nil {
		return "", false, s.endOr(err)
	}
	if c != '"' {
		return "", false, s.bad(fmt.Errorf("expected a key, found %q", c))
	}
	lit, err := s.value(gapBytes)
	if errors.Is(err, errTooLarge) {
		lit, err = []byte(`""`), nil // no key that is looked for is that long
	}
	if err != nil {
		return "", false, err
	}
	if c, err = s.peek(); err != nil {
		return "", false, s.endOr(err)
	}
	if c != ':' {
		return "", false, s.bad(fmt.Errorf("expected a colon after a key, found %q", c))
	}
	s.take(1)
	return rawjson.Unquote(lit), true, nil
}

// nextElement says whether the open array has another value; its end is consumed.
func (s *stream) nextElement(first bool) (bool, error) { return s.next(first, ']') }

// next moves to the next entry of what is open. Behind it s.gap holds what stands before the entry: blanks, and
// for all but the first a comma among them. At the end it holds the blanks before the closing bracket.
func (s *stream) next(first bool, closing byte) (bool, error) {
	c, err := s.peek()
	if err != nil {
		return false, s.endOr(err)
	}
	switch {
	case c == closing:
		s.take(1)
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, s.bad(fmt.Errorf("expected a comma or %q, found %q", closing, c))
	}
	before := bytes.Clone(s.gap)
	s.take(1)
	if c, err = s.peek(); err != nil {
		return false, s.endOr(err)
	}
	if c == closing {
		return false, s.bad(fmt.Errorf("expected a value after a comma, found %q", c))
	}
	s.gap = append(append(before, ','), s.gap...)
	return true, nil
}

// nextLine gives the next line without its end, valid until the next call, and its number. A line over limit
// bytes is skipped and gives errTooLarge; io.EOF at the end.
func (s *stream) nextLine(limit int) (line []byte, number int, err error) {
	number = s.line
	var long []byte // what did not fit into the buffer
	over := false
	for {
		if !s.more() {
			if err := s.readError(); err != io.EOF || len(long) == 0 && !over {
				return nil, number, err
			}
			break
		}
		piece := s.buf[s.pos:s.end]
		nl := bytes.IndexByte(piece, '\n')
		if nl >= 0 {
			piece = piece[:nl]
		}
		if len(long)+len(piece) > limit {
			long, over = nil, true
		}
		switch {
		case over:
		case nl >= 0 && long == nil:
			long = piece // whole in the buffer: no copy
		case nl < 0 && long == nil && s.end-s.pos < len(s.buf) && s.err == nil:
			s.fill() // it may still fit
			continue
		default:
			long = append(long, piece...)
		}
		if nl >= 0 {
			s.take(nl + 1)
			break
		}
		s.take(len(piece))
	}
	if over {
		return nil, number, errTooLarge
	}
	return bytes.TrimSuffix(long, []byte{'\r'}), number, nil
}

// tapeFull says that the tape did not take everything.
func (s *stream) tapeFull() bool { return len(s.tape) > s.tapeMax }

// toLine skips to the start of the next line whose first byte is c, to go on behind damage; false at the end.
func (s *stream) toLine(c byte) bool {
	for s.more() {
		nl := bytes.IndexByte(s.buf[s.pos:s.end], '\n')
		if nl < 0 {
			s.take(s.end - s.pos)
			continue
		}
		s.take(nl + 1)
		if s.more() && s.buf[s.pos] == c {
			return true
		}
	}
	return false
}

func (s *stream) bad(reason error) error { return badLine(s.line, reason) }

func (s *stream) endOr(err error) error {
	if err == io.EOF {
		return s.bad(rawjson.ErrUnexpectedEnd)
	}
	return err
}

// A damage is a fault of the file, as against one of the reader. Lenient decoders go on behind it.
type damage struct {
	line   int
	reason error
}

func (d *damage) Error() string { return fmt.Sprintf("line %d: %v", d.line, d.reason) }

func (d *damage) Unwrap() error { return d.reason }

func badLine(line int, reason error) error { return &damage{line, reason} }
