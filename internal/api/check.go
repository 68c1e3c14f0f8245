package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// checker decodes a body as far as its schema describes it.
type checker struct {
	registry huma.Registry
	errs     []error
}

// unseen is the value of what no schema describes.
type unseen struct{}

// parse decodes data, which is valid JSON, for huma.Validate.
func (c *checker) parse(s *huma.Schema, data []byte, path string) any {
	for s.Ref != "" {
		s = c.registry.SchemaFromRef(s.Ref)
	}
	data = bytes.TrimSpace(data)
	switch {
	case s.Type == "":
		return unseen{}
	case data[0] == '{':
		if s.Type != huma.TypeObject {
			return map[string]any{}
		}
		return c.parseObject(s, data, path)
	case data[0] == '[':
		if s.Type != huma.TypeArray {
			return []any{}
		}
		var list []json.RawMessage
		_ = json.Unmarshal(data, &list) // valid, as the whole is
		out := make([]any, len(list))
		for i, item := range list {
			out[i] = c.parse(s.Items, item, fmt.Sprintf("%s[%d]", path, i))
		}
		return out
	}
	var v any
	_ = json.Unmarshal(data, &v)
	if text, ok := v.(string); ok && strings.ContainsRune(text, utf8.RuneError) && loneSurrogate(data) {
		c.errs = append(c.errs, &huma.ErrorDetail{
			Location: path,
			Message:  `contains half of a surrogate pair (\ud800 to \udfff alone), which is not a character`,
		})
	}
	return v
}

func (c *checker) parseObject(s *huma.Schema, data []byte, path string) any {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(data, &all)
	out := make(map[string]any, len(all))
	for key, value := range all {
		property, known := s.Properties[key]
		if !known {
			property, _ = s.AdditionalProperties.(*huma.Schema)
		}
		switch {
		case property == nil:
			out[key] = unseen{}
		case string(value) == "null" && typed(c.registry, property) && !required(s, key):
			// Many clients write null for a field that they could leave out.
		default:
			out[key] = c.parse(property, value, path+"."+key)
		}
	}
	return out
}

func typed(r huma.Registry, s *huma.Schema) bool {
	for s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	return s.Type != ""
}

func required(s *huma.Schema, key string) bool {
	for _, name := range s.Required {
		if name == key {
			return true
		}
	}
	return false
}
