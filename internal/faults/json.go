package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// strict decodes JSON and refuses unknown keys.
func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("the JSON value is followed by more text")
	}
	return nil
}

// field is a member of a JSON object. A list of fields keeps their order.
type field struct {
	key   string
	value json.RawMessage
}

func fieldsOf(raw []byte) ([]field, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	start, err := d.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, fmt.Errorf("%.40s is not a JSON object", raw)
	}
	var out []field
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := field{key: key.(string)} // the decoder takes nothing else for a key
		if err := d.Decode(&f.value); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	_, err = d.Token()
	return out, err
}

func join(fields []field) json.RawMessage {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = quote(f.key) + ":" + string(f.value)
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// quote writes a JSON string as the vendors do: nothing is escaped that need not be.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const (
	// maxDepth is more than any case nests.
	maxDepth = 50
	// maxText limits a string that a case writes as a repetition, in bytes.
	maxText = 64 << 20
)

// expand writes out the texts that a case gives as repetitions. Everything else keeps its order and spelling, without
// white space.
func expand(raw []byte) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, errors.New("the case is not valid JSON")
	}
	return expandValue(raw, 0)
}

func expandValue(raw json.RawMessage, depth int) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if depth > maxDepth {
		return nil, fmt.Errorf("the case is nested more than %d levels deep", maxDepth)
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i, item := range list {
			var err error
			if list[i], err = expandValue(item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(append([]byte{'['}, bytes.Join(rawBytes(list), []byte{','})...), ']'), nil
	case '{':
		fields, err := fieldsOf(raw)
		if err != nil {
			return nil, err
		}
		if text, ok, err := repetition(fields, raw); ok || err != nil {
			return json.RawMessage(text), err
		}
		for i := range fields {
			if fields[i].value, err = expandValue(fields[i].value, depth+1); err != nil {
				return nil, err
			}
		}
		return join(fields), nil
	}
	return raw, nil
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, item := range list {
		out[i] = item
	}
	return out
}

// repetition reads {"prefix","repeat","times","suffix"} as the text that it describes; ok is false for any other
// object.
func repetition(fields []field, raw []byte) (string, bool, error) {
	if !slices.ContainsFunc(fields, func(f field) bool { return f.key == "repeat" }) {
		return "", false, nil
	}
	var r struct {
		Prefix, Repeat, Suffix string
		Times                  int
	}
	if err := strict(raw, &r); err != nil {
		return "", false, fmt.Errorf("read a repeated text: %w", err)
	}
	if r.Times < 0 || r.Times*len(r.Repeat) > maxText {
		return "", false, fmt.Errorf("a text of %d times %d bytes is out of range", r.Times, len(r.Repeat))
	}
	return quote(r.Prefix + strings.Repeat(r.Repeat, r.Times) + r.Suffix), true, nil
}
