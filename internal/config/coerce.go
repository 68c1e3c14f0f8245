package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"precis/pipeline"
)

// collect walks what a source gave along the type that it is for, and gives each leaf as a value of its
// key's type. A key that the type does not have and a value that it cannot take are faults. With text the
// leaves are the text of a variable or a flag, which may hold a whole section or list in YAML's flow form
// too: {type: openai}, [self, anthropic/x].
func (l *loader) collect(t reflect.Type, value any, path []string, text bool, origin func([]string) Origin) []given {
	if value == nil {
		return nil // "settings:" with all of it commented out
	}
	members := membersOf(t)
	if members == nil {
		v, err := coerce(t, value, text)
		if err != nil {
			if k, ok := find(path); ok && k.Secret {
				l.fail(path, origin(path), "wants %s; what was given is not shown, it may hold a secret", describe(t))
			} else {
				l.fail(path, origin(path), "%s", err)
			}
			return nil
		}
		return []given{{path: path, value: v, from: origin(path)}}
	}

	if s, ok := value.(string); ok && text {
		section, err := flow[map[string]any](s)
		if err != nil {
			l.fail(path, origin(path), "is a section, not a value: give %s, or the section as {KEY: VALUE}",
				Variable(append(slices.Clone(path), "KEY")))
			return nil
		}
		value, text = section, false
	}
	section, ok := value.(map[string]any)
	if !ok {
		// Not shown: a vendor's key may have been put where its section belongs.
		l.fail(path, origin(path), "wants a section of keys, not a value")
		return nil
	}
	var out []given
	for _, name := range slices.Sorted(maps.Keys(section)) {
		at := append(slices.Clone(path), name)
		member, ok := members.of(name)
		if !ok {
			l.fail(at, origin(at), "unknown key; known here: %s", strings.Join(members.names, ", "))
			continue
		}
		out = append(out, l.collect(member, section[name], at, text, origin)...)
	}
	return out
}

// members are the keys under a section: those of a struct, or any name for a map of structs.
type members struct {
	names []string
	types map[string]reflect.Type
	any   reflect.Type
}

func (m *members) of(name string) (reflect.Type, bool) {
	if m.any != nil {
		return m.any, name != ""
	}
	t, ok := m.types[name]
	return t, ok
}

// membersOf gives nil for a type that is a value, not a section.
func membersOf(t reflect.Type) *members {
	switch {
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		return &members{any: t.Elem()}
	case t.Kind() == reflect.Struct:
		m := &members{types: map[string]reflect.Type{}}
		for f := range fields(t) {
			m.names = append(m.names, jsonName(f))
			m.types[jsonName(f)] = f.Type
		}
		return m
	default:
		return nil
	}
}

// coerce makes a value of type t: what koanf merges and decodes later, so scalars, []any and map[string]any.
func coerce(t reflect.Type, value any, text bool) (any, error) {
	wrong := fmt.Errorf("wants %s, not %s", describe(t), shown(value))
	switch t.Kind() {
	case reflect.String:
		if s, ok := value.(string); ok {
			return s, nil
		}
		return nil, fmt.Errorf("%w; put it in quotes", wrong)
	case reflect.Bool:
		if s, ok := value.(string); ok && text {
			if b, err := strconv.ParseBool(s); err == nil {
				return b, nil
			}
			return nil, wrong
		}
		if b, ok := value.(bool); ok {
			return b, nil
		}
		return nil, wrong
	case reflect.Int:
		if n, ok := whole(value, text); ok {
			return n, nil
		}
		return nil, wrong
	case reflect.Float64:
		if f, ok := number(value, text); ok {
			return f, nil
		}
		return nil, wrong
	case reflect.Slice:
		return coerceList(t, value, text)
	case reflect.Map:
		if s, ok := value.(string); ok && text {
			m, err := flow[map[string]any](s)
			if err != nil {
				return nil, wrong
			}
			value = m
		}
		m, ok := value.(map[string]any)
		if !ok {
			return nil, wrong
		}
		out := map[string]any{}
		for name, v := range m {
			each, err := coerce(t.Elem(), v, text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out[name] = each
		}
		return out, nil
	case reflect.Struct: // an element of a list
		return coerceElement(t, value)
	default:
		return nil, fmt.Errorf("is of type %s, which no source can give", t)
	}
}

func coerceList(t reflect.Type, value any, text bool) (any, error) {
	var list []any
	switch v := value.(type) {
	case []any:
		list = v
	case []string:
		for _, s := range v {
			list = append(list, s)
		}
	case string:
		if !text {
			return nil, fmt.Errorf("wants %s, not %s", describe(t), shown(value))
		}
		if strings.HasPrefix(strings.TrimSpace(v), "[") {
			var err error
			if list, err = flow[[]any](v); err != nil {
				return nil, fmt.Errorf("wants %s: %w", describe(t), err)
			}
			break
		}
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s != "" {
				list = append(list, s)
			}
		}
	default:
		return nil, fmt.Errorf("wants %s, not %s", describe(t), shown(value))
	}
	out := make([]any, 0, len(list))
	for i, v := range list {
		each, err := coerce(t.Elem(), v, false)
		if err != nil {
			return nil, fmt.Errorf("entry %d %w", i+1, err)
		}
		out = append(out, each)
	}
	return out, nil
}

// coerceElement takes a summarizer, as its name or as an object.
func coerceElement(t reflect.Type, value any) (any, error) {
	if s, ok := value.(string); ok && t == reflect.TypeFor[pipeline.SummarizerSpec]() {
		return map[string]any{"model": s}, nil
	}
	section, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("wants %s, not %s", describe(t), shown(value))
	}
	members := membersOf(t)
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(section)) {
		member, ok := members.of(name)
		if !ok {
			return nil, fmt.Errorf("has the unknown key %q; known here: %s", name, strings.Join(members.names, ", "))
		}
		v, err := coerce(member, section[name], false)
		if err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

func whole(value any, text bool) (int, bool) {
	switch v := value.(type) {
	case int:
		return v, true
	case float64: // 1e6 in YAML
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v), true
		}
	case string:
		if text {
			n, err := strconv.Atoi(strings.TrimSpace(v))
			return n, err == nil
		}
	}
	return 0, false
}

func number(value any, text bool) (float64, bool) {
	var f float64
	switch v := value.(type) {
	case int:
		f = float64(v)
	case float64:
		f = v
	case string:
		var err error
		if f, err = strconv.ParseFloat(strings.TrimSpace(v), 64); err != nil || !text {
			return 0, false
		}
	default:
		return 0, false
	}
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}

// flow reads YAML's flow form, of which JSON is a part.
func flow[T any](s string) (T, error) {
	var out T
	if s = strings.TrimSpace(s); !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return out, fmt.Errorf("%q is neither a list nor an object", s)
	}
	err := yaml.Unmarshal([]byte(s), &out)
	return out, err
}

// describe names a type as a person would.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[pipeline.SummarizerSpec]() {
			return "a list of summarizers, such as self,anthropic/NAME"
		}
		return "a list of " + describe(t.Elem())
	case reflect.Map:
		return "names with a text each"
	case reflect.Struct:
		return "a name or an object"
	default:
		return "text"
	}
}

// shown gives a value as it stood, short enough for one line.
func shown(value any) string {
	const most = 60
	var s string
	switch v := value.(type) {
	case string:
		s = strconv.Quote(v)
	case []any, map[string]any:
		if b, err := json.Marshal(v); err == nil {
			s = string(b)
			break
		}
		s = fmt.Sprint(v)
	default:
		s = fmt.Sprint(v)
	}
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}
