package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.temporal.io/api/serviceerror"

	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/store"
)

// Problem is a problem document, with what only the server needs to know of it.
type Problem struct {
	wire.Problem

	retryAfter time.Duration
	cause      error
}

// The codes that the API has beside those of the service.
const (
	codeUnauthorized     service.Code = "unauthorized"
	codeRateLimited      service.Code = "rate_limited"
	codeTimeout          service.Code = "timeout"
	codeMethodNotAllowed service.Code = "method_not_allowed"
	codeMediaType        service.Code = "unsupported_media_type"
	codeNotAcceptable    service.Code = "not_acceptable"
	codeKeyReused        service.Code = "idempotency_key_reused"
	codeKeyBusy          service.Code = "idempotency_key_busy"
	codeKeyLost          service.Code = "idempotency_answer_lost"
)

// codes are all there are, with their status and what they mean: for the status line, and for the documentation.
var codes = []struct {
	code   service.Code
	status int
	about  string
}{
	{service.CodeInvalid, http.StatusUnprocessableEntity, "The request cannot be right, whatever the state; " +
		"`errors` names the fields at fault. The status is 400 when the body is no JSON."},
	{codeUnauthorized, http.StatusUnauthorized, "No API key was given, or none that works."},
	{
		service.CodeForbidden, http.StatusForbidden,
		"The key may not do this; or there are no keys and the request comes from another site than this machine's own.",
	},
	{service.CodeNotFound, http.StatusNotFound, "There is no such thing, or it is another tenant's."},
	{
		codeMethodNotAllowed, http.StatusMethodNotAllowed,
		"The path is there, the method is not; the header `Allow` has those that are.",
	},
	{codeNotAcceptable, http.StatusNotAcceptable, "`Accept` asks for something other than JSON."},
	{
		service.CodeReplyOpen, http.StatusConflict,
		"The agent's model is generating: end the reply, or wait for its lease to expire.",
	},
	{
		service.CodeReplyEnded, http.StatusConflict,
		"The reply has been ended before; what came with this end would be stored twice.",
	},
	{service.CodeRunActive, http.StatusConflict, "A compaction of the conversation has not ended."},
	{service.CodeStale, http.StatusConflict, "What the caller believes of the conversation is not what it holds."},
	{service.CodeNothingToUndo, http.StatusConflict, "No compaction counts: the context is the full history already."},
	{
		service.CodeConflict, http.StatusConflict,
		"What is there contradicts what was asked, in the way that `detail` tells.",
	},
	{codeKeyBusy, http.StatusConflict, "A request with this idempotency key is under way: try again in a moment."},
	{codeKeyLost, http.StatusConflict, "The earlier request with this idempotency key took effect and its answer " +
		"was lost: read what is there before you send it again, with another key."},
	{
		service.CodeTooLarge, http.StatusRequestEntityTooLarge,
		"The body, or one message in it, is larger than what is taken.",
	},
	{codeMediaType, http.StatusUnsupportedMediaType, "The body is not declared as `application/json`."},
	{
		codeKeyReused, http.StatusUnprocessableEntity,
		"The idempotency key was used with another request less than a day ago.",
	},
	{codeRateLimited, http.StatusTooManyRequests, "The tenant has sent too many requests, or has too many open; " +
		"the header `Retry-After` says how many seconds to wait."},
	{
		service.CodeInternal, http.StatusInternalServerError,
		"A fault of precis. The log has the reason under the request's id.",
	},
	{
		service.CodeUnavailable, http.StatusServiceUnavailable,
		"The database or Temporal cannot be reached, or the server is stopping: the same request may pass later.",
	},
	{
		codeTimeout, http.StatusGatewayTimeout,
		"The request took longer than the server works on one. What it began may still take effect.",
	},
}

func statusOf(code service.Code) int {
	for _, c := range codes {
		if c.code == code {
			return c.status
		}
	}
	return http.StatusInternalServerError
}

func codeOf(status int) service.Code {
	switch status {
	case http.StatusBadRequest:
		return service.CodeInvalid
	case http.StatusRequestTimeout:
		return codeTimeout
	}
	for _, c := range codes {
		if c.status == status {
			return c.code
		}
	}
	if status < http.StatusInternalServerError {
		return service.CodeInvalid
	}
	return service.CodeInternal
}

func problem(code service.Code, format string, args ...any) *Problem {
	p := &Problem{Problem: wire.Problem{
		Code: code, Status: statusOf(code), Detail: fmt.Sprintf(format, args...),
	}}
	return p.complete()
}

func (p *Problem) complete() *Problem {
	p.Title = http.StatusText(p.Status)
	p.Type = "/docs#" + string(p.Code)
	return p
}

func (p *Problem) at(location string) *Problem {
	p.Errors = append(p.Errors, wire.FieldError{Location: location, Message: p.Detail})
	return p
}

func (p *Problem) after(wait time.Duration) *Problem {
	p.retryAfter = wait
	return p
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// Unwrap gives what the log is to know.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus is for huma.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders is for huma.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int((p.retryAfter+time.Second-1)/time.Second))))
	}
	if p.Code == codeUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="precis"`)
	}
	return h
}

// ContentType is for huma.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// write answers outside of huma.
func (p *Problem) write(w http.ResponseWriter, r *http.Request) {
	if q := requestOf(r.Context()); q != nil {
		p.RequestID = q.id
		q.note(p)
	}
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = jsonFormat.Marshal(w, p) // a client that is gone
}

// problemOf turns any error into a Problem.
func problemOf(ctx context.Context, err error) *Problem {
	var p *Problem
	var ours *service.Error
	var unavailable *serviceerror.Unavailable
	q := requestOf(ctx)
	switch {
	case errors.As(err, &p):
	case errors.As(err, &ours):
		p = problem(ours.Code, "%s", ours.Detail)
		if ours.Field != "" {
			p.at(location(ours.Field))
		}
		p.cause = ours.Cause
	case errors.Is(err, context.DeadlineExceeded):
		p = problem(codeTimeout, "the request took longer than the server works on one "+
			"(http.request_timeout_seconds); what it began may still take effect")
	case errors.Is(err, context.Canceled):
		p = problem(service.CodeUnavailable, "the request was given up")
	case store.Unavailable(err):
		p = problem(service.CodeUnavailable, "the database cannot be reached: try again")
	case errors.As(err, &unavailable):
		p = problem(service.CodeUnavailable, "Temporal cannot be reached: try again")
	case errors.Is(err, store.ErrNotFound):
		p = problem(service.CodeNotFound, "%s", strings.TrimPrefix(err.Error(), "store: "))
	default:
		p = problem(service.CodeInternal, "")
	}
	switch {
	case p.cause != nil:
	case p.Code == service.CodeInternal, p.Code == service.CodeUnavailable:
		p.cause = err
	}
	if p.Code == service.CodeInternal {
		// What is inside stays inside: the log has it.
		p.Detail = "a fault of precis; its log tells more under the request's id"
	}
	if p.Code == service.CodeUnavailable && p.retryAfter == 0 {
		p.after(time.Second)
	}
	if q != nil {
		p.RequestID = q.id
		q.note(p)
	}
	return p
}

// location is where in a request a service's field stands.
func location(field string) string {
	if where, _, ok := strings.Cut(field, "."); ok &&
		(where == "query" || where == "path" || where == "body" || where == "header") {
		return field
	}
	return "body." + field
}

// Huma makes its own failures into problems by these: they are the library's way to have another form of error.
func init() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		var c context.Context = context.Background()
		if ctx != nil {
			c = ctx.Context()
		}
		return humaProblem(c, status, msg, errs)
	}
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return humaProblem(context.Background(), status, msg, errs)
	}
}

func humaProblem(ctx context.Context, status int, msg string, errs []error) *Problem {
	p := &Problem{Problem: wire.Problem{Code: codeOf(status), Status: status, Detail: msg}}
	for _, err := range errs {
		var detailed huma.ErrorDetailer
		if errors.As(err, &detailed) {
			d := detailed.ErrorDetail()
			p.Errors = append(p.Errors, wire.FieldError{Location: d.Location, Message: d.Message})
		}
	}
	if len(p.Errors) > 0 {
		p.Detail = p.Errors[0].Location + ": " + p.Errors[0].Message
		if more := len(p.Errors) - 1; more > 0 {
			p.Detail += fmt.Sprintf(" (and %d more, see errors)", more)
		}
	}
	if status == http.StatusInternalServerError {
		p.cause = errors.Join(append([]error{errors.New(msg)}, errs...)...)
	}
	return problemOf(ctx, p.complete())
}
