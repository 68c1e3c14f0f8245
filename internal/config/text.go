package config

import (
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// typed gives the text of a variable or a flag the type of its key. Whole sections and lists may be written in YAML's
// flow form, of which JSON is a part: {type: openai}, [self, anthropic/x]; lists also as names with commas between
// them. Text that does not fit is returned as it is: the check of the section then says what is wrong.
func typed(path []string, text string) any {
	t, ok := typeAt(path)
	if !ok {
		return text
	}
	trimmed := strings.TrimSpace(text)
	switch t.Kind() {
	case reflect.Bool:
		return parsedOr(text, trimmed, strconv.ParseBool)
	case reflect.Int:
		return parsedOr(text, trimmed, strconv.Atoi)
	case reflect.Float64:
		return parsedOr(text, trimmed, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case reflect.Slice:
		if strings.HasPrefix(trimmed, "[") {
			return parsedOr(text, trimmed, flow[[]any])
		}
		return splitNames(text)
	case reflect.Map, reflect.Struct:
		if strings.HasPrefix(trimmed, "{") {
			return parsedOr(text, trimmed, flow[map[string]any])
		}
	}
	return text
}

// parsedOr returns the text when it cannot be parsed.
func parsedOr[T any](text, trimmed string, parse func(string) (T, error)) any {
	value, err := parse(trimmed)
	if err != nil {
		return text
	}
	return value
}

func flow[T any](s string) (T, error) {
	var out T
	err := yaml.Unmarshal([]byte(s), &out)
	return out, err
}

func splitNames(text string) []any {
	names := []any{}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
