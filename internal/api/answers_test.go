package api

import (
	"bytes"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// unseen is the value of what no schema describes.
type unseen struct{}

// decoded returns an answer as far as its schema describes it, for huma.Validate.
func decoded(r huma.Registry, s *huma.Schema, data []byte) any {
	for s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	data = bytes.TrimSpace(data)
	switch {
	case s.Type == "":
		return unseen{}
	case data[0] == '{' && s.Type != huma.TypeObject:
		return map[string]any{}
	case data[0] == '[' && s.Type != huma.TypeArray:
		return []any{}
	case data[0] == '{':
		var all map[string]json.RawMessage
		_ = json.Unmarshal(data, &all) // valid, as the whole is
		out := make(map[string]any, len(all))
		for key, value := range all {
			property, known := s.Properties[key]
			if !known {
				property, _ = s.AdditionalProperties.(*huma.Schema)
			}
			switch {
			case property == nil:
				out[key] = unseen{}
			case string(value) == "null" && typed(r, property) && !required(s, key):
			default:
				out[key] = decoded(r, property, value)
			}
		}
		return out
	case data[0] == '[':
		var list []json.RawMessage
		_ = json.Unmarshal(data, &list)
		out := make([]any, len(list))
		for i, item := range list {
			out[i] = decoded(r, s.Items, item)
		}
		return out
	}
	var v any
	_ = json.Unmarshal(data, &v)
	return v
}
