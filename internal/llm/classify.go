package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"precis/pipeline"
)

// Classify returns the kind of failure that a vendor's answer is. vendor is its name or its type. status is 0 when no
// answer arrived; cause, or body in its place, then says why. Classify never returns nil.
//
// The status decides where it can mean only one thing, then the vendor's own codes, wherever they are in the body, then
// the text. Exclusions come first: a rate limit in tokens is not an overflow, and neither is Go's "context deadline
// exceeded".
//
// The error's Message names the kind, the status, the vendor's code and the figures, and has an excerpt of the vendor's
// words for faults that a person has to mend. It never contains a key or text of the conversation.
func Classify(vendor string, status int, header http.Header, body []byte, cause error) *pipeline.Error {
	if status == 0 && len(body) == 0 {
		if e := fromCause(vendor, cause); e != nil {
			return e
		}
	}
	f := readFacts(body)
	f.vendor = vendor
	if t := header.Get("X-Amzn-Errortype"); t != "" {
		// Bedrock sends the name of the error in a header, with an address after a colon.
		t, _, _ = strings.Cut(t, ":")
		f.addCode(t)
	}
	f.status = status
	if f.status == 0 || (f.status >= 200 && f.status < 300) {
		f.status = f.innerStatus // an error in an answer with a good status has its own status
	}

	kind := f.kind()
	e := &pipeline.Error{Kind: kind, Status: status}
	if kind == pipeline.InputTokensExceeded {
		e.ActualTokens, e.LimitTokens = f.figures()
	}
	e.RetryAfter = retryAfter(header, f)
	e.Message = f.message(e)
	if status == 0 {
		e.Cause = plainCause(cause)
	}
	return e
}

// kind returns that of the first rule that applies.
func (f *facts) kind() pipeline.ErrorKind {
	for _, r := range rules {
		if r.when(f) {
			return r.kind
		}
	}
	return byStatus(f.status)
}

// fromCause classifies an error of the connection by its type, else by its words; nil without a cause.
func fromCause(vendor string, cause error) *pipeline.Error {
	if cause == nil {
		return nil
	}
	kind, what := pipeline.ErrorKind(""), ""
	var netErr net.Error
	var dnsErr *net.DNSError
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		kind, what = pipeline.Timeout, "no complete answer before the deadline"
	case errors.Is(cause, context.Canceled):
		kind, what = pipeline.Cancelled, "the call was cancelled"
	case errors.As(cause, &netErr) && netErr.Timeout():
		kind, what = pipeline.Timeout, "the connection timed out"
	case errors.As(cause, &dnsErr):
		kind, what = pipeline.Network, "the host name does not resolve, check the vendor's base URL"
	case errors.Is(cause, syscall.ECONNREFUSED):
		kind, what = pipeline.Network, "connection refused, check the vendor's base URL and that it is up"
	case errors.Is(cause, io.ErrUnexpectedEOF), errors.Is(cause, io.EOF), errors.Is(cause, syscall.ECONNRESET),
		errors.Is(cause, syscall.EPIPE):
		kind, what = pipeline.Network, "the connection broke off before the answer was complete"
	}
	if kind == "" {
		f := readFacts([]byte(plainCause(cause).Error()))
		kind, what = f.kind(), "no answer arrived"
		if kind == pipeline.ServerError {
			kind = pipeline.Network // it happened on the client's side
		}
	}
	return &pipeline.Error{Kind: kind, Message: fmt.Sprintf("%s: %s", vendor, what), Cause: plainCause(cause)}
}

// plainCause removes the address from an error of net/http: it may contain a key as a query parameter.
func plainCause(cause error) error {
	var urlErr *url.Error
	if errors.As(cause, &urlErr) {
		cause = urlErr.Err
	}
	if cause == nil {
		return nil
	}
	return cause
}
