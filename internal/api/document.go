package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// descriptions.json has the comments of the types that answers are made of, as the code has them: by package and type,
// then by field, "" for the type itself. A test compares it with the code.
//
//go:embed descriptions.json
var descriptionsJSON []byte

// finishDocument makes of the document what huma does not: fields described by the comments of their types, null
// where an answer may hold it, and answers to which fields may be added.
func (s *Server) finishDocument() error {
	var comments map[string]map[string]string
	if err := json.Unmarshal(descriptionsJSON, &comments); err != nil {
		return fmt.Errorf("read the descriptions of the API's types: %w", err)
	}
	doc := s.api.OpenAPI()
	registry := doc.Components.Schemas
	inputs := map[string]bool{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && op.RequestBody != nil {
				reach(registry, op.RequestBody.Content["application/json"].Schema, inputs)
			}
		}
	}
	for name, schema := range registry.Map() {
		t := registry.TypeFromRef(refPrefix + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		if schema.Description == "" {
			schema.Description = comments[typeName(t)][""]
		}
		for _, f := range fieldsOf(t) {
			property := schema.Properties[f.name]
			if property == nil {
				continue
			}
			owner, field := declared(t, f.index)
			if property.Description == "" {
				property.Description = inJSON(owner, comments[typeName(owner)][field.Name])
			}
			if !inputs[name] && !f.omitEmpty && nullable(field.Type) {
				schema.Properties[f.name] = &huma.Schema{
					Description: property.Description, AnyOf: []*huma.Schema{{Ref: property.Ref}, {Type: "null"}},
				}
			}
		}
		if !inputs[name] {
			schema.AdditionalProperties = nil
		}
	}
	return nil
}

const refPrefix = "#/components/schemas/"

// reach collects the names of all schemas that one refers to.
func reach(r huma.Registry, s *huma.Schema, names map[string]bool) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		name := strings.TrimPrefix(s.Ref, refPrefix)
		if names[name] {
			return
		}
		names[name] = true
		reach(r, r.SchemaFromRef(s.Ref), names)
		return
	}
	reach(r, s.Items, names)
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		reach(r, values, names)
	}
	for _, property := range s.Properties {
		reach(r, property, names)
	}
}

// nullable says whether a field is written as null when it is not set, and huma's schema of it says nothing of that.
func nullable(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[time.Time]()
}

// declared finds the struct that a field stands in, which may be one that is embedded.
func declared(t reflect.Type, index []int) (owner reflect.Type, field reflect.StructField) {
	field = t.FieldByIndex(index)
	if len(index) == 1 {
		return t, field
	}
	owner = t.FieldByIndex(index[:len(index)-1]).Type
	if owner.Kind() == reflect.Pointer {
		owner = owner.Elem()
	}
	return owner, field
}

// typeName is a type with its package: "service.Stats".
func typeName(t reflect.Type) string { return t.String() }

var word = regexp.MustCompile(`\b([A-Z]\w+|nil)\b`)

// inJSON calls the fields in a comment by their names in JSON, and nil null.
func inJSON(t reflect.Type, comment string) string {
	return word.ReplaceAllStringFunc(comment, func(name string) string {
		if name == "nil" {
			return "null"
		}
		f, ok := t.FieldByName(name)
		if !ok || !f.IsExported() || f.Anonymous {
			return name
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" || tag == "-" {
			return name
		}
		return tag
	})
}
