package llm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"precis/pipeline"

	"github.com/sethvargo/go-retry"
)

// Bounds of one call. A connection that fails within hiccupLimit and before any answer is retried once, after
// hiccupPause. Every other retry is the caller's.
const (
	hiccupLimit = time.Second
	hiccupPause = 200 * time.Millisecond
	// maxAnswerBytes limits an answer. A summary has some hundred KB at most, and thirty times as much as server-sent
	// events.
	maxAnswerBytes = 64 << 20
)

// protocol is what differs between vendors.
type protocol interface {
	// request makes the body of an external request.
	request(c Call) ([]byte, error)
	// streaming returns the keys that enable streaming in a body without a "stream" key; "" where no key does.
	streaming(body []byte) string
	// headers returns the headers that the request needs besides those of the SDK.
	headers(body []byte) http.Header
	// post sends the body for a model and returns the response with its body unread.
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
	// protocols are those that the vendor speaks, by format; own is the format of external requests.
	protocols map[string]protocol
	own       string
}

func (c *client) Call(ctx context.Context, call Call) (Result, error) {
	p, err := c.protocolFor(call)
	if err != nil {
		return Result{}, err
	}
	return (&exchange{c, p}).call(ctx, call)
}

// protocolFor returns the protocol that a call's body is written for.
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
		return nil, pipeline.Errorf(pipeline.BadRequest, "%s: the vendor has no native compaction in format %q",
			c.vendor.Name, format)
	}
	return n.native(call.Native)
}

// exchange is one call with the protocol that it uses.
type exchange struct {
	*client
	protocol protocol
}

func (c *exchange) call(ctx context.Context, call Call) (Result, error) {
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
	defer response.Body.Close() // the body has been read

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

// headers returns those that the body needs, the metadata, and the configured ones. A configured header overrides the
// others, except for betas, which are joined.
func (c *exchange) headers(call Call, body []byte) http.Header {
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

// body returns what is sent: the caller's bytes, or a request made from System and User.
func (c *exchange) body(call Call) ([]byte, error) {
	body := call.Body
	if body == nil {
		if strings.TrimSpace(call.User) == "" {
			return nil, pipeline.Errorf(pipeline.Internal, "%s: the request has neither a body nor a user message",
				c.vendor.Name)
		}
		var err error
		if body, err = c.protocol.request(call); err != nil {
			return nil, pipeline.Errorf(pipeline.Internal, "%s: make the request: %w", c.vendor.Name, err)
		}
	}
	body, err := spliceKeys(body, "stream", c.protocol.streaming)
	if err != nil {
		return nil, pipeline.Errorf(pipeline.Internal, "%s: %w", c.vendor.Name, err)
	}
	return body, nil
}

// post sends the request, and retries once after a hiccup.
func (c *exchange) post(ctx context.Context, model string, body []byte, headers http.Header) (*http.Response, error) {
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

// transportError classifies a failure of the connection. A context that has ended explains any of them.
func (c *exchange) transportError(ctx context.Context, err error) *pipeline.Error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if errors.Is(err, errNoCredentials) {
		return pipeline.Errorf(pipeline.Auth, "%s: %w", c.vendor.Name, errNoCredentials)
	}
	return Classify(c.vendor.Name, 0, nil, nil, err)
}
