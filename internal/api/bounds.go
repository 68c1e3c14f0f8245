package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/contract"
)

// maxBytes is the extension of a schema that bounds a value in bytes: a text in UTF-8, other values as JSON. maxLength,
// which counts characters, cannot.
const maxBytes = "x-max-bytes"

// boundRequests adds to the schemas of request bodies the limits that the fields of their types name.
func boundRequests(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas
	for name, schema := range schemas.Map() {
		t := schemas.TypeFromRef(refPrefix + name)
		if t == nil || t.Kind() != reflect.Struct || !isRequest(name) {
			continue
		}
		for _, f := range fieldsOf(t) {
			bound(schema.Properties[f.name], t.FieldByIndex(f.index))
		}
		schema.PrecomputeMessages()
	}
}

// boundParameters does the same for the parameters of an operation, which are fields of its input.
func boundParameters(op *huma.Operation, input reflect.Type) {
	for _, f := range reflect.VisibleFields(input) {
		for _, in := range []string{"path", "query", "header"} {
			name, ok := f.Tag.Lookup(in)
			if !ok {
				continue
			}
			for _, p := range op.Parameters {
				if p.In == in && p.Name == name {
					bound(p.Schema, f)
				}
			}
		}
	}
}

// bound adds the limit that a field names to its schema.
func bound(s *huma.Schema, f reflect.StructField) {
	name, ok := f.Tag.Lookup("limit")
	if !ok || s == nil {
		return
	}
	limit := contract.LimitOf(name).Max
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[wire.Object]():
		boundBytes(s, limit)
	case t.Kind() == reflect.Slice:
		s.MaxItems = &limit
		if items, ok := f.Tag.Lookup("items"); ok {
			boundBytes(s.Items, contract.LimitOf(items).Max)
		} else if s.Items.Type == huma.TypeString {
			s.Items.MaxLength = ptr(contract.LimitOf("word").Max)
		}
	case t.Kind() == reflect.Map:
		s.MaxProperties = &limit
	default:
		s.MaxLength = &limit
		boundBytes(s, limit)
	}
	s.PrecomputeMessages()
}

func boundBytes(s *huma.Schema, limit int) {
	if s.Extensions == nil {
		s.Extensions = map[string]any{}
	}
	s.Extensions[maxBytes] = limit
}

// bytesOf returns the limit of a value in bytes, 0: none.
func bytesOf(s *huma.Schema) int {
	limit, _ := s.Extensions[maxBytes].(int)
	return limit
}
