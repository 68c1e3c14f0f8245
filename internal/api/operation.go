package api

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/store"
)

// traits say how an operation differs from the others.
type traits struct {
	// public operations need no API key.
	public bool
	// stream operations stay open: they have limits of their own and no timeout.
	stream bool
	// waits operations wait as long as their request says, and set their own timeouts.
	waits bool
	// repeatable writes have the same effect when they are executed twice.
	repeatable bool
	// unkept operations take no idempotency key: their answers are not kept.
	unkept bool
	// also is a second status of success, with the same body.
	also int
	// codes are the problem codes beside the common ones.
	codes []wire.Code
}

const traitsKey = "precis"

func traitsOf(op *huma.Operation) traits {
	t, _ := op.Metadata[traitsKey].(traits)
	return t
}

// common are the problem codes of every operation.
var common = []wire.Code{
	service.CodeInvalid, codeUnauthorized, service.CodeForbidden, codeNotAcceptable, codeRateLimited,
	service.CodeInternal, service.CodeUnavailable, codeTimeout,
}

// register adds an operation. The document describes its request body by the payload in I, if there is one.
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
	if !t.public {
		op.Description = strings.TrimSpace(op.Description + " " + aboutScope(scopeOf(op.OperationID)))
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
			if p := keyEnded(ctx); p != nil {
				return nil, problemOf(ctx, p)
			}
			return nil, inPath(in, op.Path, problemOf(ctx, err))
		}
		return out, nil
	})
	s.documentBody(op, reflect.TypeFor[I]())
	boundParameters(operationAt(s.api.OpenAPI(), op), reflect.TypeFor[I]())
}

// inPath turns the problem of an operation whose path has an id that nothing can have into one that says so, and names
// the place of a field that is in the path. What earlier releases stored under such an id is found before.
func inPath(input any, path string, p *Problem) *Problem {
	for i, e := range p.Errors {
		if name, ok := strings.CutPrefix(e.Location, "body."); ok && strings.Contains(path, "{"+name+"}") {
			p.Errors[i].Location = "path." + name
		}
	}
	if p.Code != service.CodeNotFound {
		return p
	}
	v := reflect.ValueOf(input).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name := f.Tag.Get("path")
		if name == "" || f.Type.Kind() != reflect.String {
			continue
		}
		if problem := store.IDProblem(v.FieldByIndex(f.Index).String(), maxPathID); problem != "" {
			return badID(name, problem, p)
		}
	}
	return p
}

// maxPathID bounds the ids in paths; an operation may bound its own further.
const maxPathID = 1024

func badID(name, what string, of *Problem) *Problem {
	p := problem(service.CodeInvalid, "%s", what).at("path." + name)
	p.Detail = "path." + name + ": " + what
	p.RequestID = of.RequestID
	return p
}

func (s *Server) timeout() time.Duration {
	return time.Duration(s.config.RequestTimeoutSeconds) * time.Second
}

func join(words []string) string { return strings.Join(words, ", ") }

// The groups of operations on the page.
const (
	tagConversations = "Conversations"
	tagLoop          = "An agent's loop"
	tagCompactions   = "Compactions"
	tagState         = "Live state"
	tagSettings      = "Settings"
	tagEvents        = "Events"
	tagMemory        = "Memory"
	tagAudit         = "Runs and usage"
	tagServer        = "The server"
)
