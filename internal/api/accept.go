package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.opentelemetry.io/otel/trace"
)

// begin records the operation of a request, and refuses a request that does not accept JSON.
func (s *Server) begin(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	q := requestOf(r.Context())
	q.route = ctx.Operation().Path
	if span := trace.SpanContextFromContext(r.Context()); span.IsValid() {
		q.trace = span.TraceID().String()
	}
	if accept := r.Header.Get("Accept"); !acceptable(accept, ctx.Operation()) {
		problem(codeNotAcceptable, "answers are application/json, but Accept is %q", accept).write(w, r)
		return
	}
	next(ctx)
}

// acceptable reports whether an Accept header allows JSON: it lists JSON, a wildcard, or nothing.
func acceptable(accept string, op *huma.Operation) bool {
	if accept == "" || traitsOf(op).stream {
		return true
	}
	for part := range strings.SplitSeq(accept, ",") {
		media, _, _ := strings.Cut(part, ";")
		switch media = strings.ToLower(strings.TrimSpace(media)); {
		case media == "*/*", media == "application/*", media == "application/json", strings.HasSuffix(media, "+json"):
			return true
		}
	}
	return false
}

// with returns ctx with another request and writer.
func with(ctx huma.Context, r *http.Request, w http.ResponseWriter) huma.Context {
	return humago.NewContext(ctx.Operation(), r, w)
}
