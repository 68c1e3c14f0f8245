package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/service"
)

// site is a value in the body of an operation.
type site struct {
	op     *huma.Operation
	schema *huma.Schema
	// path is as errors name it: body.meta[0].id.
	path string
	// around makes a body with a value at the place, and as little as possible else.
	around func(value string) string
}

// sites returns every value of every request body, the bodies themselves among them.
func sites(doc *huma.OpenAPI) []site {
	var all []site
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op == nil || op.RequestBody == nil {
				continue
			}
			schema := op.RequestBody.Content["application/json"].Schema
			whole := site{op, schema, "body", func(v string) string { return v }}
			all = append(all, sitesIn(doc.Components.Schemas, whole)...)
		}
	}
	return all
}

func sitesIn(r huma.Registry, at site) []site {
	for at.schema.Ref != "" {
		at.schema = r.SchemaFromRef(at.schema.Ref)
	}
	all := []site{at}
	inner := func(schema *huma.Schema, path string, around func(string) string) {
		all = append(all, sitesIn(r, site{at.op, schema, at.path + path, func(v string) string {
			return at.around(around(v))
		}})...)
	}
	switch at.schema.Type {
	case huma.TypeArray:
		inner(at.schema.Items, "[0]", func(v string) string { return "[" + v + "]" })
	case huma.TypeObject:
		for _, name := range slices.Sorted(maps.Keys(at.schema.Properties)) {
			var rest strings.Builder
			for _, key := range at.schema.Required {
				if key != name {
					rest.WriteString("," + quote(key) + ":" + least(r, at.schema.Properties[key]))
				}
			}
			inner(at.schema.Properties[name], "."+name, func(v string) string {
				return "{" + quote(name) + ":" + v + rest.String() + "}"
			})
		}
		if free, ok := at.schema.AdditionalProperties.(*huma.Schema); ok {
			inner(free, ".key", func(v string) string { return `{"key":` + v + "}" })
		}
	}
	return all
}

// least returns the smallest value that a schema allows.
func least(r huma.Registry, s *huma.Schema) string {
	for s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	switch s.Type {
	case huma.TypeArray:
		return "[]"
	case huma.TypeString:
		return `"x"`
	case huma.TypeBoolean:
		return "true"
	case huma.TypeInteger, huma.TypeNumber:
		return "1"
	}
	var b strings.Builder
	for i, key := range s.Required {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(key) + ":" + least(r, s.Properties[key]))
	}
	return "{" + b.String() + "}"
}

// isMap reports whether a schema is of an object whose keys the client chooses.
func isMap(s *huma.Schema) bool {
	_, free := s.AdditionalProperties.(*huma.Schema)
	open, _ := s.AdditionalProperties.(bool)
	return s.Type == huma.TypeObject && (free || open)
}

// Every list, map and text that a client sends has a maximum, also in an operation that is new.
func TestEveryFieldIsBounded(t *testing.T) {
	t.Parallel()
	doc := New(Options{Service: &service.Service{}}).api.OpenAPI()
	all := sites(doc)
	if len(all) < 80 {
		t.Fatalf("%d values in bodies: the test does not see them", len(all))
	}
	for _, at := range all {
		s := at.schema
		name := at.op.OperationID + " " + at.path
		switch {
		case s.Type == huma.TypeArray && s.MaxItems == nil:
			t.Errorf("%s: a list without maxItems: give its field a limit tag", name)
		case s.Type == huma.TypeString && len(s.Enum) == 0 && s.Format == "" && s.MaxLength == nil:
			t.Errorf("%s: a text without maxLength: give its field a limit tag", name)
		case isMap(s) && s.MaxProperties == nil:
			t.Errorf("%s: a map without maxProperties: give its field a limit tag", name)
		case s.Type == "" && bytesOf(s) == 0 && !strings.HasSuffix(at.path, ".messages[0]"):
			t.Errorf("%s: raw JSON without x-max-bytes: give its field a limit tag", name)
		}
	}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				text := p.Schema.Type == huma.TypeString && p.Schema.Format == ""
				if text && p.Schema.MaxLength == nil || p.Schema.Type == huma.TypeArray && p.Schema.MaxItems == nil {
					t.Errorf("%s %s: parameter %s has no maximum", op.Method, path, p.Name)
				}
			}
		}
	}
}

// Every limit is used, so that the table in docs/configuration.md is of what is checked.
func TestEveryLimitIsUsed(t *testing.T) {
	t.Parallel()
	s := New(Options{Service: &service.Service{}})
	document, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range contract.Limits {
		n := fmt.Sprint(l.Max)
		if l.Name == "summarizers" { // of the settings, which package pipeline checks
			continue
		}
		if !strings.Contains(string(document), ":"+n) {
			t.Errorf("no schema has the limit %s, %s", l.Name, n)
		}
	}
}

// unlimited is for tests that send many requests.
func unlimited(c *config.Config) { c.HTTP.RequestsPerSecond = 0 }

// over returns values for a place that are one over its limits.
func over(r huma.Registry, s *huma.Schema) map[string]string {
	values := map[string]string{}
	limit := bytesOf(s)
	switch {
	case s.Type == huma.TypeArray:
		values["entries"] = "[" + strings.Repeat(least(r, s.Items)+",", *s.MaxItems) + least(r, s.Items) + "]"
	case s.Type == huma.TypeString && limit > 0:
		values["bytes"] = quote(strings.Repeat("x", limit+1))
		values["wide"] = quote(strings.Repeat("é", limit/2+1))
		values["escaped"] = `"` + strings.Repeat(`\u0041`, limit+1) + `"`
	case s.Type == "" && limit > 0:
		values["bytes"] = quote(strings.Repeat("x", limit-1))
	}
	if isMap(s) {
		value := "1"
		if free, ok := s.AdditionalProperties.(*huma.Schema); ok {
			value = least(r, free)
		}
		var b strings.Builder
		for i := range *s.MaxProperties + 1 {
			fmt.Fprintf(&b, `,"k%d":%s`, i, value)
		}
		values["keys"] = "{" + b.String()[1:] + "}"
		if limit > 0 {
			values["bytes"] = `{"k":` + quote(strings.Repeat("x", limit)) + "}"
		}
	}
	return values
}

// route fills in the parameters of a path.
func route(path string) string {
	return strings.NewReplacer("{id}", "c", "{key}", "todo", "{reply}", "r", "{run}", "r", "{name}", "n").Replace(path)
}

// A value that is one over its limit is refused, and the answer names its field.
func TestOneOverEachLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{config: unlimited})
	doc := b.server.api.OpenAPI()
	n := 0
	for _, at := range sites(doc) {
		for kind, value := range over(doc.Components.Schemas, at.schema) {
			n++
			r := b.send(at.op.Method, route(at.op.Path), at.around(value))
			if r.status != http.StatusRequestEntityTooLarge || len(r.body) > 4<<10 {
				t.Errorf("%s %s (%s): status %d, %d bytes: %.300s", at.op.OperationID, at.path, kind, r.status,
					len(r.body), r.body)
				continue
			}
			r.fails(http.StatusRequestEntityTooLarge, service.CodeTooLarge).names(t, at.path)
		}
	}
	if n < 60 {
		t.Errorf("%d limits were tried", n)
	}
}

// bad returns values that are wrong at any place, of about a megabyte where the size is what is wrong.
func bad(s *huma.Schema) map[string]string {
	const size = 1 << 20
	values := map[string]string{
		"zeros":   "[" + strings.Repeat("0,", size/2) + "0]",
		"lists":   strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"objects": strings.Repeat(`{"a":`, size/6) + "1" + strings.Repeat("}", size/6),
		"number":  "1" + strings.Repeat("0", size), "exponent": "1e999999", "text": quote(strings.Repeat("x", size)),
		"latin1":       "\"\xe9\"",
		"unknown keys": "{" + strings.Repeat(`"`+strings.Repeat("k", 50)+`":1,`, size/60) + `"z":1}`,
		"twice":        `{"text":"a","text":"b","messages":[],"messages":[]}`, "true": "true", "small": "-1.5",
		"control": "\"\x01\"", "open": `{"a":`,
	}
	switch {
	case s.Type == "": // raw JSON: only what no value may be
		return map[string]string{
			"lists": values["lists"], "objects": values["objects"], "latin1": values["latin1"],
			"control": values["control"], "open": values["open"],
		}
	case isMap(s):
		delete(values, "twice")
	case s.Type == huma.TypeBoolean:
		delete(values, "true")
	}
	return values
}

// Bad values of every kind at every place of every body are refused with a small answer.
func TestBadValuesAtEveryPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{config: unlimited})
	n := 0
	for _, at := range sites(b.server.api.OpenAPI()) {
		for kind, value := range bad(at.schema) {
			n++
			r := b.send(at.op.Method, route(at.op.Path), at.around(value))
			if r.status < 400 || r.status > 499 || r.status == http.StatusNotFound || len(r.body) > 64<<10 {
				t.Errorf("%s %s (%s): status %d, %d bytes: %.300s", at.op.OperationID, at.path, kind, r.status,
					len(r.body), r.body)
			}
		}
	}
	if n < 900 {
		t.Errorf("%d bad bodies were sent", n)
	}
}

// An answer lists 20 errors and counts the others.
func TestErrorsAreCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	r := b.send("POST", "/v1/conversations/c/messages", `{"messages":[],"meta":[`+strings.Repeat("0,", 4999)+`0]}`)
	p := r.fails(http.StatusUnprocessableEntity, service.CodeInvalid)
	if len(p.Errors) != contract.MaxErrors || p.MoreErrors != 5000-contract.MaxErrors ||
		!strings.Contains(p.Detail, "and 4999 more") {
		t.Errorf("%d errors and %d more: %s", len(p.Errors), p.MoreErrors, p.Detail)
	}
}

// The limits are in the served document.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	s := New(Options{Service: &service.Service{}})
	focus := s.api.OpenAPI().Components.Schemas.Map()["NewCompactionInput"].Properties["focus"]
	if focus.MaxLength == nil || *focus.MaxLength != contract.MaxFocusBytes ||
		!reflect.DeepEqual(focus.Extensions[maxBytes], contract.MaxFocusBytes) {
		t.Errorf("focus is %+v", focus)
	}
}
