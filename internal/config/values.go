package config

import (
	"encoding/json"
	"reflect"
	"strings"

	"precis/pipeline"
)

// Value is one key of the effective configuration, ready to be shown.
type Value struct {
	Key string `json:"key"`
	// Value as text; secrets masked.
	Value string `json:"value"`
	From  Origin `json:"from"`
}

// Values returns every key with its value, secrets masked, and where it came from, in the order of the tables.
func Values(c Config, origins Origins) []Value {
	var out []Value
	for _, l := range leaves(reflect.ValueOf(c.Masked()), nil) {
		key := dotted(l.path)
		out = append(out, Value{Key: key, Value: format(l.value), From: origins.Of(key)})
	}
	return out
}

// format writes a value as a variable or --set takes it.
func format(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case []pipeline.SummarizerSpec:
		var names []string
		for _, s := range value {
			if s.ContextWindow != 0 || s.MaxOutput != 0 {
				return compact(value)
			}
			names = append(names, s.Model)
		}
		return strings.Join(names, ",")
	case string:
		return value
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Map:
		if v.Len() == 0 {
			return ""
		}
	}
	return compact(v.Interface())
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
