package api

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.opentelemetry.io/otel/trace"

	"precis/internal/api/wire"
	"precis/internal/service"
)

// traits are what sets an operation apart from the others.
type traits struct {
	// public needs no key.
	public bool
	// stream stays open: it has limits of its own, and no timeout.
	stream bool
	// waits as long as its request says, and takes care of its own time.
	waits bool
	// repeatable writes leave the same when they are done twice.
	repeatable bool
	// unkept answers are not kept for an idempotency key.
	unkept bool
	// also is a second status of success, with the same body.
	also int
	// codes are those of failures that it has beside the common ones.
	codes []service.Code
}

const traitsKey = "precis"

func traitsOf(op *huma.Operation) traits {
	t, _ := op.Metadata[traitsKey].(traits)
	return t
}

// common are the failures of every operation.
var common = []service.Code{
	service.CodeInvalid, codeUnauthorized, service.CodeForbidden, codeNotAcceptable, codeRateLimited,
	service.CodeInternal, service.CodeUnavailable, codeTimeout,
}

// register adds an operation. Its body, if it has one, is documented from the payload in I.
func register[I, O any](s *Server, op huma.Operation, t traits,
	do func(ctx context.Context, q *request, in *I) (*O, error),
) {
	op.Metadata = map[string]any{traitsKey: t}
	if op.OperationID == "" {
		op.OperationID = huma.GenerateOperationID(op.Method, op.Path, nil)
	}
	if t.public {
		op.Security = []map[string][]string{}
	}
	op.Responses = failures(s.api, op, t)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		q := requestOf(ctx)
		if !t.stream && !t.waits {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.timeout())
			defer cancel()
		}
		out, err := do(ctx, q, in)
		if err != nil {
			return nil, problemOf(ctx, err)
		}
		return out, nil
	})
	s.documentBody(op, reflect.TypeFor[I]())
}

func (s *Server) timeout() time.Duration {
	return time.Duration(s.config.RequestTimeoutSeconds) * time.Second
}

// failures documents what an operation may be answered with when it fails: one entry a status, with its codes.
func failures(api huma.API, op huma.Operation, t traits) map[string]*huma.Response {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.Problem](), true, "")
	possible := slices.Concat(common, t.codes)
	if t.public {
		possible = t.codes
	}
	if strings.Contains(op.Path, "{") {
		possible = append(possible, service.CodeNotFound)
	}
	if op.Method != http.MethodGet {
		possible = append(possible, service.CodeTooLarge, codeMediaType)
		if !t.unkept {
			possible = append(possible, codeKeyReused, codeKeyBusy)
		}
		if !t.unkept && !t.repeatable {
			possible = append(possible, codeKeyLost)
		}
	}
	responses := map[string]*huma.Response{}
	for _, c := range codes {
		if !slices.Contains(possible, c.code) {
			continue
		}
		status := strconv.Itoa(c.status)
		about := "`" + string(c.code) + "`: " + c.about
		if known := responses[status]; known != nil {
			known.Description += "\n\n" + about
			continue
		}
		responses[status] = &huma.Response{
			Description: about, Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
		}
	}
	return responses
}

// documented is any payload.
type documented interface {
	schema(huma.Registry) *huma.Schema
}

// documentBody adds a second success, and the request's body to the document, where huma would have had it from the
// field that we do not give it. Writes also take an idempotency key.
func (s *Server) documentBody(op huma.Operation, input reflect.Type) {
	registered := operationAt(s.api.OpenAPI(), op)
	for i := range input.NumField() {
		p, ok := reflect.Zero(input.Field(i).Type).Interface().(documented)
		if !ok {
			continue
		}
		schema := p.schema(s.api.OpenAPI().Components.Schemas)
		full := schema
		for full.Ref != "" {
			full = s.api.OpenAPI().Components.Schemas.SchemaFromRef(full.Ref)
		}
		registered.RequestBody = &huma.RequestBody{
			Required: len(full.Required) > 0, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}},
		}
	}
	t := traitsOf(&op)
	if t.also != 0 {
		registered.Responses[strconv.Itoa(t.also)] = &huma.Response{
			Description: http.StatusText(t.also),
			Content:     registered.Responses[strconv.Itoa(registered.DefaultStatus)].Content,
		}
	}
	if op.Method != http.MethodGet && !t.unkept {
		registered.Parameters = append(registered.Parameters, &huma.Param{
			Name: idempotencyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: ptr(255)},
			Description: "A key of the client's own for this request. The same request with the same key within a " +
				"day is done once, and gets the same answer.",
		})
	}
}

func operationAt(doc *huma.OpenAPI, op huma.Operation) *huma.Operation {
	item := doc.Paths[op.Path]
	switch op.Method {
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	case http.MethodPatch:
		return item.Patch
	case http.MethodDelete:
		return item.Delete
	}
	return item.Get
}

// begin notes which operation a request is for.
func (s *Server) begin(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	q := requestOf(r.Context())
	q.route = ctx.Operation().Path
	if span := trace.SpanContextFromContext(r.Context()); span.IsValid() {
		q.trace = span.TraceID().String()
	}
	if accept := r.Header.Get("Accept"); !acceptable(accept, ctx.Operation()) {
		problem(codeNotAcceptable, "answers are application/json, Accept is %q", accept).write(w, r)
		return
	}
	next(ctx)
}

// acceptable is generous: whoever lists JSON, or anything, or nothing, takes JSON, and its problem documents with it.
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

// with goes on with another request or writer.
func with(ctx huma.Context, r *http.Request, w http.ResponseWriter) huma.Context {
	return humago.NewContext(ctx.Operation(), r, w)
}

func join(words []string) string { return strings.Join(words, ", ") }

func ptr[T any](v T) *T { return &v }
