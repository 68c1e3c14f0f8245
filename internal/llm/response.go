package llm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"precis/pipeline"
)

// read reads an answer with a good status: server-sent events, or a whole body from a server that does not stream or
// was asked not to.
func (c *exchange) read(ctx context.Context, res *http.Response, progress func(int)) (*answer, []byte, error) {
	a := &answer{}
	rec := &recorder{rc: res.Body, left: maxAnswerBytes, onRead: func() { progress(a.chars) }}
	buffered := bufio.NewReader(rec)
	first, err := firstByte(buffered)
	switch {
	case err == io.EOF:
		return nil, rec.seen(), pipeline.Errorf(pipeline.EmptyOutput, "%s: the answer has no body", c.vendor.Name)
	case err != nil:
		return nil, rec.seen(), c.broken(ctx, rec, err)
	case first == '{' || first == '[' || first == '<':
		whole, err := io.ReadAll(buffered)
		if err != nil {
			return nil, rec.seen(), c.broken(ctx, rec, err)
		}
		a, err := c.decodeWhole(whole)
		return a, rec.seen(), err
	}

	res.Body = struct {
		io.Reader
		io.Closer
	}{buffered, rec}
	// With any other content type the SDK would not choose its decoder for events.
	res.Header.Set("Content-Type", "text/event-stream")
	a.onText = func() { progress(a.chars) }
	err = c.protocol.events(res, a)
	a.finish()
	raw := rec.seen()
	var vendorErr *streamError
	switch {
	case errors.As(err, &vendorErr):
		a.dropText()
		return a, raw, Classify(c.vendor.Name, res.StatusCode, res.Header, vendorErr.data, nil)
	case a.Finish == pipeline.FinishNone && (ctx.Err() != nil || rec.err != nil):
		a.dropText()
		return a, raw, c.broken(ctx, rec, rec.err)
	case err != nil && rec.err == nil:
		a.dropText()
		return a, raw, pipeline.Errorf(pipeline.MalformedOutput, "%s: the stream holds an event that is not valid JSON",
			c.vendor.Name)
	}
	return a, raw, checkAnswer(c.vendor.Name, a)
}

func (c *exchange) decodeWhole(body []byte) (*answer, error) {
	a, err := c.protocol.decode(body)
	if err != nil {
		return nil, wholeError(c.vendor.Name, body)
	}
	return a, checkAnswer(c.vendor.Name, a)
}

// broken returns why an answer broke off.
func (c *exchange) broken(ctx context.Context, rec *recorder, err error) error {
	if errors.Is(rec.err, errTooLong) {
		return pipeline.Errorf(pipeline.MalformedOutput, "%s: the answer is longer than %d MB", c.vendor.Name,
			maxAnswerBytes>>20)
	}
	if ctx.Err() == nil && err == nil {
		err = io.ErrUnexpectedEOF
	}
	return c.transportError(ctx, err)
}

// firstByte skips white space and returns the next byte without consuming it.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n\ufeff", rune(b)) {
			return b, r.UnreadByte()
		}
	}
}

// recorder keeps what is read from a response, for the record.
type recorder struct {
	rc     io.ReadCloser
	raw    bytes.Buffer
	left   int
	err    error // the first error that is not io.EOF
	onRead func()
}

func (r *recorder) Read(p []byte) (int, error) {
	if r.left <= 0 {
		r.err = errTooLong
		return 0, errTooLong
	}
	n, err := r.rc.Read(p[:min(len(p), r.left)])
	r.left -= n
	r.raw.Write(p[:n])
	if n > 0 {
		r.onRead()
	}
	if err != nil && err != io.EOF && r.err == nil {
		r.err = err
	}
	return n, err
}

func (r *recorder) Close() error { return r.rc.Close() }

func (r *recorder) seen() []byte { return r.raw.Bytes() }

var errTooLong = errors.New("the answer is too long")

// streamError is an error event in a stream.
type streamError struct{ data []byte }

func (e *streamError) Error() string { return "the vendor sent an error in its stream" }
