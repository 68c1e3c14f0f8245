package api

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

// failures documents the failures of an operation: one response a status, with its problem codes.
func failures(api huma.API, op huma.Operation, t traits) map[string]*huma.Response {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.Problem](), true, "")
	possible := slices.Concat(common, t.codes)
	if t.public {
		possible = append(slices.Clone(t.codes), service.CodeForbidden)
	}
	if strings.Contains(op.Path, "{") {
		possible = append(possible, service.CodeNotFound)
	}
	if op.Method != http.MethodGet {
		possible = append(possible, service.CodeTooLarge, service.CodeQuota, codeMediaType)
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

// documented is a payload of any type.
type documented interface {
	schema(huma.Registry) *huma.Schema
}

// documentBody adds the request's body, the second status of success and the idempotency key to the document. huma
// does not know the body, since the payload reads it.
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
			Description: "The client's own key for this request. The same request with the same key within a " +
				"day is executed once and gets the same answer.",
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

func ptr[T any](v T) *T { return &v }
