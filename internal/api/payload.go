package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/contract"
)

// payload is the body of a request. Raw JSON in T, such as an agent's own messages, is kept byte for byte. Everything
// else is checked against T's schema, and the error names the field at fault. It replaces huma's own body,
// which would decode every message twice and keep none byte for byte.
type payload[T any] struct{ value T }

// schema returns the schema of T.
func (payload[T]) schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// Resolve reads the body.
func (p *payload[T]) Resolve(ctx huma.Context) []error {
	q := requestOf(ctx.Context())
	errs := p.read(q.server.api.OpenAPI().Components.Schemas, q.body)
	q.body = nil // what was decoded is a copy
	return errs
}

func (p *payload[T]) read(registry huma.Registry, body []byte) []error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}") // the error names the missing fields
	}
	if at := invalidUTF8(body); at >= 0 {
		return []error{malformed("the body is not valid UTF-8 at byte %d: JSON is UTF-8", at)}
	}
	if !json.Valid(body) {
		return []error{syntaxError(body)}
	}
	if at := tooDeep(body); at >= 0 {
		return []error{&huma.ErrorDetail{Location: "body", Message: fmt.Sprintf(
			"is nested deeper than %d levels at byte %d", contract.MaxDepth, at)}}
	}
	c := checker{registry: registry}
	if errs := c.check(p.schema(registry), body); len(errs) > 0 {
		return errs
	}
	if err := json.Unmarshal(body, &p.value); err != nil {
		return []error{decodeError(err)}
	}
	return nil
}
