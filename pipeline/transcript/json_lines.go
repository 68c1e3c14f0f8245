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
	// One value, except where a crash has joined several lines.
	for i := rawjson.SkipSpace(line, 0); i < len(line); i = rawjson.SkipSpace(line, i) {
		end, err := rawjson.Prefix(line[i:])
		if err != nil {
			return j.out.fault(number, err)
		}
		b := line[i : i+end]
		if i += end; b[0] != '{' {
			err = errors.New("expected a record, found JSON that is not an object")
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
