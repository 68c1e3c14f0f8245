package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

type jsonLines struct {
	s     *jsonstream.Reader
	o     Options
	r     recordReader
	out   emitter
	ended bool
}

func openLines(s *jsonstream.Reader, o Options, m Meta, r recordReader) source {
	return &jsonLines{s: s, o: o, r: r, out: newEmitter(m, o)}
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
	return eachValue(line, j.o.Lenient, func(b []byte) error {
		err := errors.New("expected a record, found JSON that is not an object")
		if b[0] == '{' {
			err = j.r.record(&j.out, bytes.Clone(b), number)
		}
		if err != nil {
			return j.out.fault(number, err)
		}
		return nil
	}, func(reason error) error { return j.out.fault(number, reason) })
}

// eachValue calls value with each JSON value of a line: one, except where a crash has joined several lines. At damage
// it calls damaged with what is wrong, and continues behind it if the decoder is lenient.
func eachValue(line []byte, lenient bool, value func([]byte) error, damaged func(error) error) error {
	for i := rawjson.SkipSpace(line, 0); i < len(line); i = rawjson.SkipSpace(line, i) {
		end, err := rawjson.Prefix(line[i:])
		if err == nil {
			if err := value(line[i : i+end]); err != nil {
				return err
			}
			i += end
			continue
		}
		if !lenient {
			return damaged(err)
		}
		next := resynchronize(line, i)
		if err := damaged(lost(err, line[i:next])); err != nil {
			return err
		}
		i = next
	}
	return nil
}

// lost describes bytes that are skipped.
func lost(err error, skipped []byte) error {
	what := fmt.Sprintf("%d bytes are lost", len(skipped))
	if n := bytes.Count(skipped, []byte{0}); n > 0 {
		what += fmt.Sprintf(", %d of them NUL", n)
	}
	return fmt.Errorf("%w: %s", err, what)
}

// resynchronize returns the offset of the next record of a line behind damage at from, the end of the line if there is
// none. Objects inside of a torn record are not taken for records: a record is followed by another one, by further
// damage in the form of NUL bytes, or by nothing.
func resynchronize(line []byte, from int) int {
	budget := 8*len(line) + 64<<10 // bounds the work for a line full of torn beginnings
	for at := from + 1; at < len(line) && budget > 0; at++ {
		next := bytes.IndexByte(line[at:], '{')
		if next < 0 {
			break
		}
		at += next
		n, err := rawjson.Prefix(line[at:])
		budget -= n
		if err != nil {
			continue
		}
		v := rawjson.At(line, at)
		behind := rawjson.SkipSpace(line, at+n)
		if (behind == len(line) || line[behind] == '{' || line[behind] == 0) &&
			!(v.Get("type").IsMissing() && v.Get("role").IsMissing()) {
			return at
		}
	}
	return len(line)
}
