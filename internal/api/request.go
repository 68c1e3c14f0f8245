package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"precis/internal/service"
	"precis/internal/store/access"
)

// requestIDHeader has the id of a request. An id that the client sends is kept.
const requestIDHeader = "X-Request-Id"

// request is what the middleware knows about a request.
type request struct {
	server *Server
	id     string
	// route is the pattern that matched, "" for none.
	route  string
	tenant string
	// trusted keys may report the agent's own compactions.
	trusted bool
	// key is the id of the API key, "" if there are no keys, and scope what it may do.
	key   string
	scope access.Scope
	// client ends when the client has disconnected, also where the request's own context does not. nil: it is the
	// request's context.
	client context.Context
	// trace is the id of the request's trace, "": none.
	trace string
	// body is the whole body, from when readBody has read it until it is decoded.
	body []byte
	// reserved is what the body holds of the budget of bodies, nil: nothing.
	reserved *reservation
	// problem is the answer of a failed request, nil: the request succeeded.
	problem *Problem
}

type requestKey struct{}

// requestOf returns the request of a context, nil outside of a request.
func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

func (q *request) note(p *Problem) { q.problem = p }

// entry gives a request its id, logs how it ended, and answers a panic with a problem document.
func (s *Server) entry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{server: s, id: requestID(r)}
		w.Header().Set(requestIDHeader, q.id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		answer := &answer{ResponseWriter: w, control: http.NewResponseController(w)}
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, q))
		began := time.Now()
		defer func() { q.reserved.release() }()
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				s.log.Error("a request panicked", "request_id", q.id, "route", q.route, "panic", fmt.Sprint(p), "stack",
					string(debug.Stack()))
				if answer.status != 0 {
					panic(http.ErrAbortHandler) // the answer has begun
				}
				problemOf(r.Context(), problem(service.CodeInternal, "")).write(answer, r)
			}
			s.logRequest(r, q, answer, time.Since(began))
		}()
		next.ServeHTTP(answer, r)
	})
}

func requestID(r *http.Request) string {
	id := r.Header.Get(requestIDHeader)
	plain := func(c rune) bool { return c > ' ' && c < 0x7f && c != '"' && c != '\\' }
	if id != "" && len(id) <= 128 && strings.IndexFunc(id, func(c rune) bool { return !plain(c) }) < 0 {
		return id
	}
	return rand.Text()
}

// logRequest logs a request: internal errors at level error, successful health checks and scrapes at level debug.
// well not at all.
func (s *Server) logRequest(r *http.Request, q *request, a *answer, took time.Duration) {
	level := slog.LevelInfo
	if q.tenant == "" && a.status < http.StatusBadRequest {
		level = slog.LevelDebug
	}
	attrs := []any{
		"request_id", q.id, "method", r.Method, "route", q.route, "status", a.status, "ms", took.Milliseconds(),
		"bytes", a.bytes,
	}
	if q.tenant != "" {
		attrs = append(attrs, "tenant", q.tenant)
	}
	if q.trace != "" {
		attrs = append(attrs, "trace_id", q.trace)
	}
	if q.problem != nil {
		attrs = append(attrs, "code", q.problem.Code)
		if q.problem.cause != nil {
			attrs = append(attrs, "error", q.problem.cause)
		}
		switch {
		case q.problem.Code == service.CodeInternal:
			level = slog.LevelError
		case q.problem.Status >= http.StatusInternalServerError:
			level = slog.LevelWarn
		}
	}
	s.log.Log(r.Context(), level, "request", attrs...)
}
