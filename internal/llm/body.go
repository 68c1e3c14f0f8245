package llm

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"
)

// spliceKeys adds keys before the last brace of a JSON object, unless it already has the key name. All other bytes stay
// as they are: the vendor's prompt cache compares them.
func spliceKeys(body []byte, name string, more func(body []byte) string) ([]byte, error) {
	if !json.Valid(body) {
		return nil, errors.New("the request body is not valid JSON")
	}
	trimmed := bytes.TrimRight(body, " \t\r\n")
	if trimmed[0] != '{' && bytes.TrimLeft(trimmed, " \t\r\n")[0] != '{' {
		return nil, errors.New("the request body is not a JSON object")
	}
	if hasKey(body, name) {
		return body, nil
	}
	keys := more(body)
	if keys == "" {
		return body, nil
	}
	end := len(trimmed) - 1
	inner := bytes.TrimRight(trimmed[:end], " \t\r\n")
	out := make([]byte, 0, len(body)+64)
	out = append(out, trimmed[:end]...)
	if inner[len(inner)-1] != '{' {
		out = append(out, ',')
	}
	out = append(out, keys...)
	return append(out, body[end:]...), nil
}

// hasKey reports whether a valid JSON object has the key at its top level.
func hasKey(body []byte, name string) bool {
	found := false
	gjson.ParseBytes(body).ForEach(func(k, _ gjson.Result) bool {
		found = k.String() == name
		return !found
	})
	return found
}
