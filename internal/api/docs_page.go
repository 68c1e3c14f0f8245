package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
)

// docsPage is the data of the template.
type docsPage struct {
	Title, Version, Description string
	Groups                      []docsGroup
	Codes                       []docsCode
	Schemas                     []docsSchema
}

type docsGroup struct {
	Name       string
	Operations []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Description string
	Public                                 bool
	Parameters                             []docsField
	Body                                   []docsField
	Answers                                []docsAnswer
}

type docsAnswer struct {
	Status, Description string
	Schema              docsType
}

type docsField struct {
	Name, Where string
	Required    bool
	Type        docsType
	About       string
}

// docsType is a type in words. Link is the schema that it refers to, "" for none.
type docsType struct{ Text, Link string }

type docsCode struct {
	Code   wire.Code
	Status int
	About  string
}

type docsSchema struct {
	Name, About string
	Fields      []docsField
}

func newDocsPage(doc *huma.OpenAPI) docsPage {
	p := docsPage{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description}
	d := docsMaker{doc: doc}
	for _, tag := range []string{
		tagConversations, tagLoop, tagCompactions, tagState, tagEvents, tagMemory, tagAudit,
		tagSettings, tagServer,
	} {
		if g := d.group(tag); len(g.Operations) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	for _, c := range codes {
		p.Codes = append(p.Codes, docsCode{c.code, c.status, c.about})
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if fields := d.fields(schemas[name]); len(fields) > 0 {
			p.Schemas = append(p.Schemas, docsSchema{name, schemas[name].Description, fields})
		}
	}
	return p
}

type docsMaker struct{ doc *huma.OpenAPI }

func (d docsMaker) group(tag string) docsGroup {
	g := docsGroup{Name: tag}
	for _, path := range slices.Sorted(maps.Keys(d.doc.Paths)) {
		item := d.doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && slices.Contains(op.Tags, tag) {
				g.Operations = append(g.Operations, d.operation(op))
			}
		}
	}
	return g
}

func (d docsMaker) operation(op *huma.Operation) docsOperation {
	o := docsOperation{
		ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description,
		Public: op.Security != nil && len(op.Security) == 0,
	}
	for _, p := range op.Parameters {
		about := p.Description
		if about == "" {
			about = p.Schema.Description
		}
		o.Parameters = append(o.Parameters,
			docsField{
				Name: p.Name, Where: p.In, Required: p.Required, Type: d.typeOf(p.Schema),
				About: sentence(about, d.limits(p.Schema)),
			})
	}
	if op.RequestBody != nil {
		o.Body = d.fields(op.RequestBody.Content["application/json"].Schema)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		a := docsAnswer{Status: status, Description: strings.ReplaceAll(r.Description, "`", "")}
		for _, media := range r.Content {
			a.Schema = d.typeOf(media.Schema)
		}
		o.Answers = append(o.Answers, a)
	}
	return o
}

// fields lists the properties of an object.
func (d docsMaker) fields(s *huma.Schema) []docsField {
	s = d.full(s)
	var out []docsField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		out = append(out, docsField{
			Name: name, Required: slices.Contains(s.Required, name), Type: d.typeOf(property),
			About: sentence(property.Description, d.limits(property)),
		})
	}
	return out
}

func (d docsMaker) full(s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = d.doc.Components.Schemas.SchemaFromRef(s.Ref)
	}
	return s
}

func (d docsMaker) typeOf(s *huma.Schema) docsType {
	switch {
	case s == nil:
		return docsType{}
	case s.Ref != "":
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return docsType{name, name}
	case s.Type == huma.TypeArray:
		of := d.typeOf(s.Items)
		return docsType{"list of " + of.Text, of.Link}
	case len(s.AnyOf) == 2:
		t := d.typeOf(s.AnyOf[0])
		return docsType{t.Text + " or null", t.Link}
	case s.Type == "":
		return docsType{Text: "any JSON"}
	case s.Type == huma.TypeObject:
		if of, ok := s.AdditionalProperties.(*huma.Schema); ok {
			t := d.typeOf(of)
			return docsType{"object of " + t.Text, t.Link}
		}
		return docsType{Text: "object"}
	case s.Format == "date-time":
		return docsType{Text: "time"}
	}
	return docsType{Text: s.Type}
}

// limits says what values a schema allows.
func (d docsMaker) limits(s *huma.Schema) string {
	var parts []string
	if len(s.Enum) > 0 {
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = fmt.Sprint(v)
		}
		parts = append(parts, "One of "+join(words)+".")
	}
	if s.Minimum != nil {
		parts = append(parts, fmt.Sprintf("At least %g.", *s.Minimum))
	}
	if s.Maximum != nil {
		parts = append(parts, fmt.Sprintf("At most %g.", *s.Maximum))
	}
	if s.Default != nil {
		if text, err := json.Marshal(s.Default); err == nil {
			parts = append(parts, "Default "+string(text)+".")
		}
	}
	return strings.Join(parts, " ")
}

func sentence(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}
