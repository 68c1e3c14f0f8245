package vendorserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"
)

// ValidateOptions says which parts of a request are checked, and how strictly.
type ValidateOptions struct {
	// Request requires model and, for Anthropic, max_tokens. A transcript file may have neither.
	Request bool
	// Compatible accepts keys of a message or of a request that the vendor itself does not know, as compatible servers
	// do.
	Compatible bool
	// Compact checks a request to /responses/compact.
	Compact bool
	// Betas are Anthropic's beta features that are switched on, with commas between them. They are checked with
	// Request.
	Betas string
	// Version is the Anthropic API version. Under "2026-10-21" temperature, top_p and top_k are refused.
	Version string
}

// ValidateAnthropic says whether the Anthropic Messages API would accept the body. The error is the first
// problem, worded like the vendor's own error as far as that is known. model and max_tokens may be absent: see
// ValidateOptions.
func ValidateAnthropic(body []byte) error { return ValidateAnthropicRequest(body, ValidateOptions{}) }

// ValidateOpenAI says whether the OpenAI chat completions API would accept the body. The error is the
// first problem. model may be absent: see ValidateOptions.
func ValidateOpenAI(body []byte) error { return ValidateOpenAIRequest(body, ValidateOptions{}) }

// reLoneSurrogate finds half of an escaped surrogate pair, which the APIs refuse as invalid JSON. It matches pairs
// first, so that a match of six bytes is half of one.
var reLoneSurrogate = regexp.MustCompile(
	`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}`)

// checkJSON returns an error unless the bytes are JSON that a server can read.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("the request body is not valid JSON: invalid utf-8 sequence")
	}
	if !json.Valid(body) {
		return fmt.Errorf("the request body is not valid JSON")
	}
	for _, m := range reLoneSurrogate.FindAll(body, -1) {
		if len(m) == 6 {
			return fmt.Errorf("the request body is not valid JSON: no low surrogate in string")
		}
	}
	return nil
}

// node is a JSON value with the path that leads to it.
type node struct {
	path string
	raw  json.RawMessage
}

func (n node) fail(format string, args ...any) error {
	if n.path == "" {
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf("%s: %s", n.path, fmt.Sprintf(format, args...))
}

// kind is the first byte of the value, which tells its type.
func (n node) kind() byte {
	t := bytes.TrimLeft(n.raw, " \t\r\n")
	if len(t) == 0 {
		return 0
	}
	return t[0]
}

func (n node) isNull() bool { return n.kind() == 'n' || n.kind() == 0 }

func (n node) isObject() bool { return n.kind() == '{' }

func (n node) isArray() bool { return n.kind() == '[' }

func (n node) isString() bool { return n.kind() == '"' }

func (n node) isBool() bool { return n.kind() == 't' || n.kind() == 'f' }

// object reads the value as an object and checks its keys: all required keys have to be present, and no other key than
// required and optional ones. A nil optional allows every key.
func (n node) object(required, optional []string) (map[string]node, error) {
	if !n.isObject() {
		return nil, n.fail("Input should be a valid dictionary")
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(n.raw, &raw); err != nil {
		return nil, n.fail("Input should be a valid dictionary")
	}
	out := make(map[string]node, len(raw))
	for k, v := range raw {
		out[k] = n.child(k, v)
	}
	for _, k := range required {
		if _, ok := raw[k]; !ok {
			return nil, n.child(k, nil).fail("Field required")
		}
	}
	if optional != nil {
		// In order, so that the error does not depend on the map.
		keys := make([]string, 0, len(raw))
		for k := range raw {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if !slices.Contains(required, k) && !slices.Contains(optional, k) {
				return nil, out[k].fail("Extra inputs are not permitted")
			}
		}
	}
	return out, nil
}

func (n node) child(key string, raw json.RawMessage) node {
	if n.path == "" {
		return node{key, raw}
	}
	return node{n.path + "." + key, raw}
}

func (n node) array() ([]node, error) {
	var raw []json.RawMessage
	if !n.isArray() || json.Unmarshal(n.raw, &raw) != nil {
		return nil, n.fail("Input should be a valid list")
	}
	out := make([]node, len(raw))
	for i, r := range raw {
		out[i] = n.child(fmt.Sprint(i), r)
	}
	return out, nil
}

func (n node) str() (string, error) {
	var s string
	if !n.isString() || json.Unmarshal(n.raw, &s) != nil {
		return "", n.fail("Input should be a valid string")
	}
	return s, nil
}

// strOf returns the string at a key, "" if there is none.
func strOf(m map[string]node, key string) string {
	s, err := m[key].str()
	if err != nil {
		return ""
	}
	return s
}

func (n node) integer(least int) error {
	var f json.Number
	if json.Unmarshal(n.raw, &f) != nil || n.isString() {
		return n.fail("Input should be a valid integer")
	}
	i, err := f.Int64()
	if err != nil {
		return n.fail("Input should be a valid integer")
	}
	if i < int64(least) {
		return n.fail("Input should be greater than or equal to %d", least)
	}
	return nil
}

func (n node) number(least, most float64) error {
	var f float64
	if n.isString() || json.Unmarshal(n.raw, &f) != nil {
		return n.fail("Input should be a valid number")
	}
	if f < least || f > most {
		return n.fail("Input should be from %v to %v", least, most)
	}
	return nil
}
