package db

import (
	"bytes"
	"encoding/json"
	"strings"
)

// This file alone makes text and JSON acceptable to PostgreSQL's text and jsonb. It is for what people read and search.
// What must come back byte for byte is stored as bytea instead.

// CleanText replaces NUL and invalid UTF-8 by U+FFFD.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// CleanJSON returns a JSON object that jsonb accepts, {} for nil. U+0000 and lone surrogates, which JSON allows and
// jsonb does not, become U+FFFD. Numbers keep their digits.
func CleanJSON(raw json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage(`{}`), nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, Invalidf("not a JSON object: %w", err)
	}
	if v == nil {
		return json.RawMessage(`{}`), nil
	}
	return json.Marshal(cleanValue(v))
}

func cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return CleanText(v)
	case []any:
		for i := range v {
			v[i] = cleanValue(v[i])
		}
		return v
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, e := range v {
			clean[CleanText(k)] = cleanValue(e)
		}
		return clean
	}
	return v
}
