package rawjson

import (
	"bytes"
	"strings"
)

// Camel returns a key that is written in snake case (function_call) in camel case (functionCall), any other as it is.
func Camel(key []byte) string {
	if bytes.IndexByte(key, '_') < 0 {
		return string(key)
	}
	words := strings.Split(string(key), "_")
	for i, w := range words {
		if i > 0 && w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// LookupCamel is Lookup for a key, given in camel case, that may be written in snake case as well.
func (v Value) LookupCamel(key string) (Value, bool) {
	var found Value
	ok := false
	for k, f := range v.Fields() {
		if Camel(k) == key {
			found, ok = f.Value, true
		}
	}
	return found, ok
}

// GetCamel is LookupCamel for a value that may be missing.
func (v Value) GetCamel(key string) Value {
	v, _ = v.LookupCamel(key)
	return v
}
