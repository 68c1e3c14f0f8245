package db

import (
	"bytes"
	"encoding/json"
	"strings"
)

// This file is the one place that makes text and JSON fit for PostgreSQL's text and jsonb. It is for what people read
// and search; what must come back unchanged is kept as bytea and never passes here.

// CleanText replaces NUL and invalid UTF-8 by U+FFFD.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// CleanJSON gives an object that jsonb takes, {} for nil. JSON may hold \u0000 and lone surrogates, jsonb may not:
// they become U+FFFD. Numbers keep their digits.
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
