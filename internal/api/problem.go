package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/service"
)

// Problem is a problem document, with what only the server needs to know of it.
type Problem struct {
	wire.Problem

	retryAfter time.Duration
	cause      error
}

func problem(code wire.Code, format string, args ...any) *Problem {
	p := &Problem{Problem: wire.Problem{
		Code: code, Status: statusOf(code), Detail: fmt.Sprintf(format, args...),
	}}
	return p.complete()
}

// shorten bounds the answer, whatever it quotes of the request: it lists at most contract.MaxErrors fields, and cuts
// every text.
func (p *Problem) shorten() {
	if more := len(p.Errors) - contract.MaxErrors; more > 0 {
		p.Errors = p.Errors[:contract.MaxErrors]
		p.MoreErrors += more
	}
	p.Detail = cut(p.Detail)
	for i, e := range p.Errors {
		p.Errors[i] = wire.FieldError{Location: cut(e.Location), Message: cut(e.Message)}
	}
}

// cut returns at most contract.MaxErrorText bytes of a text.
func cut(text string) string {
	if len(text) <= contract.MaxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:contract.MaxErrorText-len("…")], "") + "…"
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

// Error returns the code and the detail.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// Unwrap returns the error for the log.
func (p *Problem) Unwrap() error { return p.cause }

// write answers outside of huma.
func (p *Problem) write(w http.ResponseWriter, r *http.Request) {
	p.shorten()
	if q := requestOf(r.Context()); q != nil {
		p.RequestID = q.id
		q.note(p)
	}
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = jsonFormat.Marshal(w, p) // fails only if the client has disconnected
}

// problemOf returns the problem document of any error.
func problemOf(ctx context.Context, err error) *Problem {
	var p *Problem
	var ours *service.Error
	q := requestOf(ctx)
	switch {
	case errors.As(err, &p):
	case errors.As(service.ErrorOf(err), &ours):
		p = problem(ours.Code, "%s", ours.Detail)
		if ours.Field != "" {
			p.at(location(ours.Field))
		}
		p.cause = ours.Cause
	case errors.Is(err, context.DeadlineExceeded):
		p = problem(codeTimeout, "the request took longer than the server allows "+
			"(http.request_timeout_seconds); it may still take effect")
	case errors.Is(err, context.Canceled):
		p = problem(service.CodeUnavailable, "the request was canceled")
	default:
		p = problem(service.CodeInternal, "")
	}
	switch {
	case p.cause != nil:
	case p.Code == service.CodeInternal, p.Code == service.CodeUnavailable:
		p.cause = err
	}
	if p.Code == service.CodeInternal {
		// Internal errors are only in the log.
		p.Detail = "an internal error of precis: its log has the reason under the request's id"
	}
	if p.Code == service.CodeUnavailable && p.retryAfter == 0 {
		p.after(time.Second)
	}
	if q != nil {
		p.RequestID = q.id
		q.note(p)
	}
	p.shorten()
	return p
}

// location returns the location in the request of a field that the service names.
func location(field string) string {
	if where, _, ok := strings.Cut(field, "."); ok &&
		(where == "query" || where == "path" || where == "body" || where == "header") {
		return field
	}
	return "body." + field
}
