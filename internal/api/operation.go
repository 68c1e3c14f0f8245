package api

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

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
