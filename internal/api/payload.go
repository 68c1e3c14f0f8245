package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// payload is the body of a request. What is raw in T, an agent's own messages above all, is taken as it stands in the
// body; everything else is checked against T's schema, the field at fault named. It does the work of huma's own body,
// which would decode every message twice and keep none as it was.
type payload[T any] struct{ value T }

// schema gives T's.
func (payload[T]) schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// Resolve reads the body.
func (p *payload[T]) Resolve(ctx huma.Context) []error {
	q := requestOf(ctx.Context())
	return p.read(q.server.api.OpenAPI().Components.Schemas, q.body)
}

func (p *payload[T]) read(registry huma.Registry, body []byte) []error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}") // what is missing is named, as with an empty object
	}
	if at := invalidUTF8(body); at >= 0 {
		return []error{malformed("the body is not valid UTF-8 at byte %d: JSON is UTF-8", at)}
	}
	if !json.Valid(body) {
		return []error{syntaxError(body)}
	}
	c := checker{registry: registry}
	parsed := c.parse(p.schema(registry), body, "body")
	result := &huma.ValidateResult{}
	path := huma.NewPathBuffer([]byte{}, 0)
	path.Push("body")
	huma.Validate(registry, p.schema(registry), path, huma.ModeWriteToServer, parsed, result)
	if errs := append(c.errs, result.Errors...); len(errs) > 0 {
		return errs
	}
	if err := json.Unmarshal(body, &p.value); err != nil {
		return []error{decodeError(err)}
	}
	return nil
}

// malformedError is a body that is no JSON: 400, where a wrong value in good JSON is 422.
type malformedError struct{ says string }

func (e *malformedError) Error() string { return e.says }

// GetStatus is for huma.
func (e *malformedError) GetStatus() int { return http.StatusBadRequest }

// ErrorDetail is for huma.
func (e *malformedError) ErrorDetail() *huma.ErrorDetail {
	return &huma.ErrorDetail{Location: "body", Message: e.says}
}

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Sprintf(format, args...)}
}

func syntaxError(body []byte) error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(body, new(any)); errors.As(err, &syntax) {
		return malformed("the body is not valid JSON at byte %d: %s", syntax.Offset, syntax)
	}
	return malformed("the body is not valid JSON")
}

// decodeError is what the schema did not find: a number that its field cannot hold.
func decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &huma.ErrorDetail{Location: "body." + wrong.Field, Message: fmt.Sprintf("cannot be %s", wrong.Value)}
	}
	return malformed("%s", err)
}

// invalidUTF8 gives the place of the first byte that is no UTF-8, -1 when all of it is.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// checker decodes a body as far as its schema looks into it.
type checker struct {
	registry huma.Registry
	errs     []error
}

// unseen stands for a value that no schema describes.
type unseen struct{}

// parse gives what huma.Validate takes. data is valid JSON.
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
			Message:  `holds half of a surrogate pair (\ud800 to \udfff alone), which is no character`,
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
			// Many clients write null for what they leave out.
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

// loneSurrogate looks for a \u escape of half a pair in a JSON string.
func loneSurrogate(data []byte) bool {
	for i := 0; i+5 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if data[i+1] != 'u' {
			i++
			continue
		}
		switch half := surrogate(data[i:]); {
		case half == high && surrogate(data[min(i+6, len(data)):]) == low:
			i += 11
		case half != 0:
			return true
		default:
			i += 5
		}
	}
	return false
}

const (
	high = 1
	low  = 2
)

// surrogate says which half of a pair the escape at the start of b is, 0 for neither.
func surrogate(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || (b[2] != 'd' && b[2] != 'D') {
		return 0
	}
	switch b[3] {
	case '8', '9', 'a', 'b', 'A', 'B':
		return high
	case 'c', 'd', 'e', 'f', 'C', 'D', 'E', 'F':
		return low
	}
	return 0
}
