package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"precis/internal/contract"
	"precis/pipeline/transcript/rawjson"
)

// checker compares a body with its schema. It reads the body once and builds nothing of it, so that a bad body costs
// no memory beside its bytes; what no schema describes, such as an agent's own messages, is skipped.
type checker struct {
	registry huma.Registry
	// path leads to the value that is being checked.
	path []place
	// errs has the first contract.MaxErrors errors, more counts the others.
	errs []error
	more int
	// over is the first value that is larger than its limit. Nothing after it is checked.
	over error
}

// place is an index of a list, or a key.
type place struct {
	list  bool
	index int
	key   string
}

// limitError is a value that is larger than its limit.
type limitError struct{ location, says string }

func (e *limitError) Error() string { return e.location + " " + e.says }

// ErrorDetail is for huma.
func (e *limitError) ErrorDetail() *huma.ErrorDetail {
	return &huma.ErrorDetail{Location: e.location, Message: e.says}
}

// GetStatus is for huma.
func (e *limitError) GetStatus() int { return http.StatusRequestEntityTooLarge }

// moreErrors counts the errors that are not listed.
type moreErrors int

func (n moreErrors) Error() string { return fmt.Sprintf("%d more", int(n)) }

// check compares body, which is valid JSON, with its schema.
func (c *checker) check(s *huma.Schema, body []byte) []error {
	c.path = append(c.path, place{key: "body"})
	c.value(s, rawjson.Root(body))
	switch {
	case c.over != nil:
		return []error{c.over}
	case c.more > 0:
		return append(c.errs, moreErrors(c.more))
	}
	return c.errs
}

// value checks one value. Most bodies with many errors have the same one many times, so counting an error is cheap.
func (c *checker) value(s *huma.Schema, v rawjson.Value) {
	for s.Ref != "" {
		s = c.registry.SchemaFromRef(s.Ref)
	}
	if limit := bytesOf(s); limit > 0 && s.Type != huma.TypeString && len(v.Raw()) > limit {
		c.exceed("has %d bytes, and the maximum is %d", len(v.Raw()), limit)
		return
	}
	switch s.Type {
	case "":
	case huma.TypeObject:
		if !v.IsObject() {
			c.fail(validation.MsgExpectedObject)
			return
		}
		c.object(s, v)
	case huma.TypeArray:
		if !v.IsArray() {
			c.fail(validation.MsgExpectedArray)
			return
		}
		c.array(s, v)
	case huma.TypeString:
		if !v.IsString() {
			c.fail(validation.MsgExpectedString)
			return
		}
		c.text(s, v)
	case huma.TypeBoolean:
		if !v.IsTrue() && !v.IsFalse() {
			c.fail(validation.MsgExpectedBoolean)
		}
	default:
		c.number(s, v)
	}
}

func (c *checker) array(s *huma.Schema, v rawjson.Value) {
	n := 0
	c.path = append(c.path, place{list: true})
	for item := range v.Items() {
		if s.MaxItems != nil && n >= *s.MaxItems {
			c.path = c.path[:len(c.path)-1]
			c.exceed("has more than %d entries, which is the maximum", *s.MaxItems)
			return
		}
		c.path[len(c.path)-1].index = n
		if c.value(s.Items, item); c.over != nil {
			return
		}
		n++
	}
	c.path = c.path[:len(c.path)-1]
}

// object checks the members of an object. A key that is there twice is refused: readers differ in which of the two they
// take.
func (c *checker) object(s *huma.Schema, v rawjson.Value) {
	seen := map[string]bool{}
	free, _ := s.AdditionalProperties.(*huma.Schema)
	open, _ := s.AdditionalProperties.(bool)
	n := 0
	for key, f := range v.Fields() {
		if n++; s.MaxProperties != nil && n > *s.MaxProperties {
			c.exceed("has more than %d keys, which is the maximum", *s.MaxProperties)
			return
		}
		property, known := s.Properties[string(key)]
		if !known {
			property = free
		}
		if property == nil {
			if !open {
				c.failAt(key, validation.MsgUnexpectedProperty)
			}
			continue
		}
		if limit := contract.LimitOf("word").Max; len(key) > limit {
			c.exceed("has a key of %d bytes, and the maximum is %d", len(key), limit)
			return
		}
		if seen[string(key)] {
			c.failAt(key, "is there twice")
			continue
		}
		seen[string(key)] = true
		if f.Value.IsNull() && typed(c.registry, property) && !required(s, string(key)) {
			continue // many clients write null for a field that they could leave out
		}
		c.path = append(c.path, place{key: string(key)})
		if c.value(property, f.Value); c.over != nil {
			return
		}
		c.path = c.path[:len(c.path)-1]
	}
	for _, key := range s.Required {
		if !seen[key] {
			c.fail(fmt.Sprintf(validation.MsgExpectedRequiredProperty, key))
		}
	}
}

func (c *checker) text(s *huma.Schema, v rawjson.Value) {
	const escaped = len(`\u0000`) // the longest form of one byte
	limit := bytesOf(s)
	if limit > 0 && len(v.Raw()) > escaped*limit+2 {
		c.exceed("has more than %d bytes, which is the maximum", limit)
		return
	}
	text, _ := v.Str()
	if limit > 0 && len(text) > limit {
		c.exceed("has %d bytes, and the maximum is %d", len(text), limit)
		return
	}
	if strings.ContainsRune(text, utf8.RuneError) && loneSurrogate(v.Raw()) {
		c.fail(`contains half of a surrogate pair (\ud800 to \udfff alone), which is not a character`)
	}
	c.leaf(s, text)
}

func (c *checker) number(s *huma.Schema, v rawjson.Value) {
	var number float64
	if !v.IsNumber() || json.Unmarshal(v.Raw(), &number) != nil {
		message := validation.MsgExpectedNumber
		if v.IsNumber() {
			message = "is a number that is too large"
		} else if s.Type == huma.TypeInteger {
			message = validation.MsgExpectedInteger
		}
		c.fail(message)
		return
	}
	c.leaf(s, number)
}

// leaf checks a text or a number by what its schema says beside its type.
func (c *checker) leaf(s *huma.Schema, v any) {
	result := &huma.ValidateResult{}
	huma.Validate(c.registry, s, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, result)
	for _, err := range result.Errors {
		message := err.Error()
		if detailed, ok := err.(huma.ErrorDetailer); ok {
			message = detailed.ErrorDetail().Message
		}
		c.fail(message)
	}
}

func (c *checker) fail(message string) { c.failAt(nil, message) }

// failAt records an error at the current place, or at a key of the object there.
func (c *checker) failAt(key []byte, message string) {
	if len(c.errs) >= contract.MaxErrors {
		c.more++
		return
	}
	where := c.location()
	if key != nil {
		where += "." + string(key)
	}
	c.errs = append(c.errs, &huma.ErrorDetail{Location: where, Message: message})
}

func (c *checker) exceed(format string, args ...any) {
	c.over = &limitError{c.location(), fmt.Sprintf(format, args...)}
}

func (c *checker) location() string {
	var b strings.Builder
	for i, p := range c.path {
		switch {
		case p.list:
			b.WriteString("[" + strconv.Itoa(p.index) + "]")
		case i > 0:
			b.WriteString("." + p.key)
		default:
			b.WriteString(p.key)
		}
	}
	return b.String()
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

// tooDeep returns the index of the bracket in data, which is valid JSON, that nests deeper than contract.MaxDepth, -1
// if none does.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = rawjson.At(data, i).End() - 1
		case '{', '[':
			if depth++; depth > contract.MaxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}
