// Package jsonstream reads JSON documents and lines of JSON from an io.Reader piece by piece, in memory that does not
// grow with the input. It tracks the line and the blanks between values, and records everything read on request.
package jsonstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"precis/pipeline/transcript/rawjson"
)

// windowBytes is the minimum size of the buffer, for lookahead.
const windowBytes = 256 << 10

// gapBytes bounds the blanks between two messages whose layout is kept.
const gapBytes = 256

// ErrTooLarge is the error for a value over its limit. The stream continues behind the value.
var ErrTooLarge = errors.New("too large")

// ErrUTF16 is the error for text in UTF-16.
var ErrUTF16 = errors.New("the text is UTF-16")

// A Reader reads JSON from an io.Reader piece by piece.
type Reader struct {
	r        io.Reader
	buf      []byte
	pos, end int
	err      error // of the reader, io.EOF at its end
	Line     int   // of buf[pos], from 1
	sc       rawjson.Scanner
	// gap has the blanks that were skipped last. It is empty if they are longer than gapBytes.
	Gap []byte
	// tape has everything that was consumed while recording is on, up to tapeMax bytes.
	Tape      []byte
	TapeMax   int
	Recording bool
}

func New(r io.Reader) (*Reader, error) {
	s := &Reader{r: r, buf: make([]byte, windowBytes), Line: 1}
	head := s.Window()
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		s.pos += 3
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil, ErrUTF16
	}
	if s.err != nil && s.err != io.EOF {
		return nil, s.readError()
	}
	return s, nil
}

// Window returns the next bytes without consuming them, at most windowBytes.
func (s *Reader) Window() []byte {
	for s.end-s.pos < len(s.buf) && s.err == nil {
		s.fill()
	}
	return s.buf[s.pos:s.end]
}

// fill makes room in the buffer and reads once.
func (s *Reader) fill() {
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

// more ensures that the buffer has an unread byte.
func (s *Reader) more() bool {
	for s.pos == s.end && s.err == nil {
		s.fill()
	}
	return s.pos < s.end
}

func (s *Reader) readError() error {
	if s.err == io.EOF {
		return io.EOF
	}
	return fmt.Errorf("read the transcript: %w", s.err)
}

// take consumes n bytes of the buffer.
func (s *Reader) take(n int) {
	taken := s.buf[s.pos : s.pos+n]
	s.Line += bytes.Count(taken, []byte{'\n'})
	if s.Recording && len(s.Tape) <= s.TapeMax {
		s.Tape = append(s.Tape, taken...)
	}
	s.pos += n
}

// Peek skips blanks and returns the byte after them, or io.EOF at the end.
func (s *Reader) Peek() (byte, error) {
	s.Gap = s.Gap[:0]
	blanks := 0
	for s.more() {
		n := s.pos
		for n < s.end && rawjson.IsSpace(s.buf[n]) {
			n++
		}
		n -= s.pos
		if blanks += n; blanks <= gapBytes {
			s.Gap = append(s.Gap, s.buf[s.pos:s.pos+n]...)
		} else {
			s.Gap = s.Gap[:0]
		}
		s.take(n)
		if s.pos < s.end {
			return s.buf[s.pos], nil
		}
	}
	return 0, s.readError()
}

// Value reads the next value and returns a copy that the caller may keep. A value over limit bytes is skipped with
// ErrTooLarge.
func (s *Reader) Value(limit int) ([]byte, error) { return s.read(limit, true) }

// Skip skips the next value. It may have any size.
func (s *Reader) Skip() error {
	_, err := s.read(0, false)
	return err
}

func (s *Reader) read(limit int, keep bool) ([]byte, error) {
	if _, err := s.Peek(); err != nil {
		return nil, s.EndOr(err)
	}
	var out []byte
	var failed error
	s.sc.Reset()
	for {
		n, done, err := s.sc.Feed(s.buf[s.pos:s.end])
		if keep && failed == nil {
			if len(out)+n > limit {
				out, failed = nil, ErrTooLarge
			} else {
				out = append(out, s.buf[s.pos:s.pos+n]...)
			}
		}
		s.take(n)
		if err != nil {
			return nil, s.Bad(err)
		}
		if done {
			return out, failed
		}
		if !s.more() {
			if err := s.readError(); err != io.EOF {
				return nil, err
			}
			if err := s.sc.Finish(); err != nil {
				return nil, s.Bad(err)
			}
			return out, failed
		}
	}
}

// Open consumes the '{' or '[' that peek has seen.
func (s *Reader) Open() { s.take(1) }

// NextKey returns the next key of an open object; ok is false at its end, which is consumed. first is true for
// the call after open.
func (s *Reader) NextKey(first bool) (key string, ok bool, err error) {
	more, err := s.next(first, '}')
	if err != nil || !more {
		return "", false, err
	}
	c, err := s.Peek()
	if err != nil {
		return "", false, s.EndOr(err)
	}
	if c != '"' {
		return "", false, s.Bad(fmt.Errorf("expected a key, found %q", c))
	}
	lit, err := s.Value(gapBytes)
	if errors.Is(err, ErrTooLarge) {
		lit, err = []byte(`""`), nil // a key that long is not one that a format uses
	}
	if err != nil {
		return "", false, err
	}
	if c, err = s.Peek(); err != nil {
		return "", false, s.EndOr(err)
	}
	if c != ':' {
		return "", false, s.Bad(fmt.Errorf("expected a colon after a key, found %q", c))
	}
	s.take(1)
	return rawjson.Unquote(lit), true, nil
}

// NextElement reports whether the open array has another value. It consumes the end of the array.
func (s *Reader) NextElement(first bool) (bool, error) { return s.next(first, ']') }

// next moves to the next entry of the open array or object. It sets s.gap to the text before the entry: blanks, with
// a comma among them for all except the first. At the end it sets s.gap to the blanks before the closing bracket.
func (s *Reader) next(first bool, closing byte) (bool, error) {
	c, err := s.Peek()
	if err != nil {
		return false, s.EndOr(err)
	}
	switch {
	case c == closing:
		s.take(1)
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, s.Bad(fmt.Errorf("expected a comma or %q, found %q", closing, c))
	}
	before := bytes.Clone(s.Gap)
	s.take(1)
	if c, err = s.Peek(); err != nil {
		return false, s.EndOr(err)
	}
	if c == closing {
		return false, s.Bad(fmt.Errorf("expected a value after a comma, found %q", c))
	}
	s.Gap = append(append(before, ','), s.Gap...)
	return true, nil
}

// NextLine returns the next line without its end, valid until the next call, and its number. A line over limit
// bytes is skipped with ErrTooLarge. At the end it returns io.EOF.
func (s *Reader) NextLine(limit int) (line []byte, number int, err error) {
	number = s.Line
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
		return nil, number, ErrTooLarge
	}
	return bytes.TrimSuffix(long, []byte{'\r'}), number, nil
}

// TapeFull reports whether the tape lacks some of the consumed bytes.
func (s *Reader) TapeFull() bool { return len(s.Tape) > s.TapeMax }

// ToLine skips to the start of the next line whose first byte is c, to continue behind damage. It returns false if
// there is none.
func (s *Reader) ToLine(c byte) bool {
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

func (s *Reader) Bad(reason error) error { return At(s.Line, reason) }

func (s *Reader) EndOr(err error) error {
	if err == io.EOF {
		return s.Bad(rawjson.ErrUnexpectedEnd)
	}
	return err
}

// A Damage is an error in the file, as opposed to an error of the reader. Lenient decoders continue behind it.
type Damage struct {
	Line   int
	Reason error
}

func (d *Damage) Error() string { return fmt.Sprintf("line %d: %v", d.Line, d.Reason) }

func (d *Damage) Unwrap() error { return d.Reason }

func At(line int, reason error) error { return &Damage{line, reason} }
