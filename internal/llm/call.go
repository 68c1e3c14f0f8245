package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sethvargo/go-retry"

	"precis/pipeline"
)

// Bounds of one call. A hiccup is a connection that fails before hiccupLimit is over and before anything was
// answered; it is tried once more after hiccupPause. Everything that takes longer to mend is the caller's.
const (
	hiccupLimit = time.Second
	hiccupPause = 200 * time.Millisecond
	// maxAnswerBytes bounds an answer; a summary is some hundred KB at the very most, and server-sent events
	// make thirty times as much of it.
	maxAnswerBytes = 64 << 20
)

// protocol is what differs from vendor to vendor.
type protocol interface {
	// request makes the body of an external request.
	request(c Call) ([]byte, error)
	// streaming gives the keys that switch streaming on in a body that has no "stream" key; "" where no key does.
	streaming(body []byte) string
	// headers gives what the request needs beside the SDK's own headers.
	headers(body []byte) http.Header
	// post sends the body for a model and gives the response with its body unread.
	post(ctx context.Context, model string, body []byte, headers http.Header) (*http.Response, error)
	// events reads a stream to its end into a.
	events(res *http.Response, a *answer) error
	// decode reads a whole answer that was not streamed.
	decode(body []byte) (*answer, error)
	// requestIDHeader names the header with the vendor's id of the request.
	requestIDHeader() string
}

type client struct {
	vendor Vendor
	// protocols are what the vendor speaks, by format; own is the one of external requests.
	protocols map[string]protocol
	own       string
}

// ask is one call on its way, with the protocol that it goes by.
type ask struct {
	*client
	protocol protocol
}

func (c *client) Call(ctx context.Context, call Call) (Result, error) {
	p, err := c.protocolFor(call)
	if err != nil {
		return Result{}, err
	}
	return (&ask{c, p}).call(ctx, call)
}

// protocolFor picks the protocol that a call's body is written for.
func (c *client) protocolFor(call Call) (protocol, error) {
	format := call.Format
	if format == "" || call.Body == nil {
		format = c.own
	}
	p, ok := c.protocols[format]
	if !ok {
		return nil, pipeline.Errorf(pipeline.BadRequest, "%s: the vendor does not take requests in format %q",
			c.vendor.Name, format)
	}
	if call.Native == "" {
		return p, nil
	}
	n, ok := p.(nativeProtocol)
	if !ok {
		return nil, pipeline.Errorf(pipeline.BadRequest, "%s: there is no native compaction in format %q",
			c.vendor.Name, format)
	}
	return n.native(call.Native)
}

func (c *ask) call(ctx context.Context, call Call) (Result, error) {
	progress := call.OnProgress
	if progress == nil {
		progress = func(int) {}
	}
	progress(0)

	body, err := c.body(call)
	if err != nil {
		return Result{}, err
	}
	res := Result{RequestBody: body, Model: call.Model}
	response, err := c.post(ctx, call.Model, body, c.headers(call, body))
	if err != nil {
		var he *httpError
		if errors.As(err, &he) {
			res.Raw, res.Status = he.body, he.status
			res.RequestID = he.header.Get(c.protocol.requestIDHeader())
			return res, Classify(c.vendor.Name, he.status, he.header, he.body, nil)
		}
		return res, c.transportError(ctx, err)
	}
	defer response.Body.Close() // nothing is lost with it

	res.Status = response.StatusCode
	res.RequestID = response.Header.Get(c.protocol.requestIDHeader())
	a, raw, err := c.read(ctx, response, progress)
	res.Raw = raw
	if a != nil {
		res.Answer, res.Usage = a.Answer, a.usage
		res.Native, res.NativeText = a.native, a.nativeText
		if a.model != "" {
			res.Model = a.model
		}
		if res.RequestID == "" {
			res.RequestID = a.id
		}
	}
	return res, err
}

// headers are those of the body, the metadata, and the configured ones. These win, but for betas: they add up.
func (c *ask) headers(call Call, body []byte) http.Header {
	h := c.protocol.headers(body)
	call.Meta.addTo(h)
	for k, v := range c.vendor.Headers {
		if had := h.Get(k); had != "" && strings.EqualFold(k, betaHeader) {
			v = had + "," + v
		}
		h.Set(k, v)
	}
	return h
}

// body is what is sent: the caller's bytes, or a request made from System and User.
func (c *ask) body(call Call) ([]byte, error) {
	body := call.Body
	if body == nil {
		if strings.TrimSpace(call.User) == "" {
			return nil, pipeline.Errorf(pipeline.Internal, "%s: the request has neither a body nor a user message",
				c.vendor.Name)
		}
		var err error
		if body, err = c.protocol.request(call); err != nil {
			return nil, pipeline.Errorf(pipeline.Internal, "%s: making the request: %w", c.vendor.Name, err)
		}
	}
	body, err := spliceKeys(body, "stream", c.protocol.streaming)
	if err != nil {
		return nil, pipeline.Errorf(pipeline.Internal, "%s: %w", c.vendor.Name, err)
	}
	return body, nil
}

// post sends the request, and once more after a hiccup.
func (c *ask) post(ctx context.Context, model string, body []byte, headers http.Header) (*http.Response, error) {
	backoff := retry.WithMaxRetries(1, retry.NewConstant(hiccupPause))
	return retry.DoValue(ctx, backoff, func(ctx context.Context) (*http.Response, error) {
		start := time.Now()
		res, err := c.protocol.post(ctx, model, body, headers)
		var he *httpError
		if err != nil && !errors.As(err, &he) && ctx.Err() == nil && time.Since(start) < hiccupLimit {
			return nil, retry.RetryableError(err)
		}
		return res, err
	})
}

// transportError tells a failure of the connection. A context that is over explains every one of them.
func (c *ask) transportError(ctx context.Context, err error) *pipeline.Error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if errors.Is(err, errNoCredentials) {
		return pipeline.Errorf(pipeline.Auth, "%s: %w", c.vendor.Name, errNoCredentials)
	}
	return Classify(c.vendor.Name, 0, nil, nil, err)
}

// read reads an answer with a good status: server-sent events, or a whole body where a server does not
// stream, or was asked not to.
func (c *ask) read(ctx context.Context, res *http.Response, progress func(int)) (*answer, []byte, error) {
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
	// A content type of its own would make the SDK choose another decoder than the one for events.
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
	return a, raw, verdict(c.vendor.Name, a)
}

func (c *ask) decodeWhole(body []byte) (*answer, error) {
	a, err := c.protocol.decode(body)
	if err != nil {
		return nil, wholeError(c.vendor.Name, body)
	}
	return a, verdict(c.vendor.Name, a)
}

// broken tells why an answer broke off.
func (c *ask) broken(ctx context.Context, rec *recorder, err error) error {
	if errors.Is(rec.err, errTooLong) {
		return pipeline.Errorf(pipeline.MalformedOutput, "%s: the answer is longer than %d MB", c.vendor.Name,
			maxAnswerBytes>>20)
	}
	if ctx.Err() == nil && err == nil {
		err = io.ErrUnexpectedEOF
	}
	return c.transportError(ctx, err)
}

// firstByte skips white space and gives the next byte without taking it.
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

// answer gathers what arrives.
type answer struct {
	pipeline.Answer
	text, reasoning strings.Builder
	chars           int
	usage           Usage
	id, model       string
	refusal         bool
	// asked says that a native compaction was asked for; native and nativeText are what came of it.
	asked      bool
	native     json.RawMessage
	nativeText string
	onText     func()
}

func (a *answer) addText(s string) { a.add(&a.text, s) }

func (a *answer) addReasoning(s string) { a.add(&a.reasoning, s) }

func (a *answer) add(b *strings.Builder, s string) {
	if s == "" {
		return
	}
	b.WriteString(s)
	a.chars += utf8.RuneCountInString(s)
	if a.onText != nil {
		a.onText()
	}
}

// finish puts the pieces together.
func (a *answer) finish() {
	a.Text, a.Reasoning = a.text.String(), a.reasoning.String()
	if a.refusal {
		a.Finish = pipeline.FinishRefusal
	}
}

// dropText forgets the text of an answer that broke off: half a summary reads like a whole one.
func (a *answer) dropText() {
	a.Text, a.Reasoning, a.Finish = "", "", pipeline.FinishNone
	a.native, a.nativeText = nil, ""
}

// streamError is an error event inside of a stream.
type streamError struct{ data []byte }

func (e *streamError) Error() string { return "the vendor sent an error in its stream" }

var errTooLong = errors.New("the answer is too long")

// recorder keeps what is read from a response, for the record.
type recorder struct {
	rc     io.ReadCloser
	raw    bytes.Buffer
	left   int
	err    error // the first error but io.EOF
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

// addTo adds the metadata as headers. Every request has them, also where the vendor has a place in its body:
// a gateway in between need not read that.
func (m Metadata) addTo(h http.Header) {
	h.Set("X-Precis-Inference-Reason", m.reason())
	for k, v := range map[string]string{
		"X-Precis-Feature": m.Feature, "X-Precis-Run": m.RunID,
		"X-Precis-Tenant": m.Tenant,
	} {
		if v != "" {
			h.Set(k, headerValue(v))
		}
	}
}

func (m Metadata) reason() string {
	if m.Reason == "" {
		return ReasonSummarization
	}
	return headerValue(m.Reason)
}

// headerValue makes any string fit for a header: other bytes than visible ASCII become "_".
func headerValue(s string) string {
	if len(s) > 256 {
		s = s[:256]
	}
	b := []byte(s)
	for i, c := range b {
		if c <= ' ' || c > '~' {
			b[i] = '_'
		}
	}
	return string(b)
}

// connections are shared by all clients, so that their connections are.
var connections = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	return t
}()

// statusTransport turns every answer but a good one into an error that carries it whole, so that it is read
// in one place whatever SDK made the request. Redirects are among them: following one would send the
// conversation, and the key, to an address that nobody configured.
type statusTransport struct{ base http.RoundTripper }

func (t statusTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.base.RoundTrip(r)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close() // nothing is lost with it
	// What could be read counts: the status alone says enough.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	return nil, &httpError{status: res.StatusCode, header: res.Header, body: body}
}

// httpError is an answer with an error status.
type httpError struct {
	status int
	header http.Header
	body   []byte
}

func (e *httpError) Error() string { return fmt.Sprintf("status %d", e.status) }
