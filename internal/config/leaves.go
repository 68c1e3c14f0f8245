package config

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// leaf is one value of a Config with its key.
type leaf struct {
	path  []string
	value reflect.Value
}

// leaves returns every value under v in the order of the fields, names of a map sorted.
func leaves(v reflect.Value, path []string) []leaf {
	t := v.Type()
	if membersOf(t) == nil {
		return []leaf{{path: path, value: v}}
	}
	var out []leaf
	if t.Kind() == reflect.Map {
		byName := map[string]reflect.Value{}
		for it := v.MapRange(); it.Next(); {
			byName[it.Key().String()] = it.Value()
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			out = append(out, leaves(byName[name], append(slices.Clone(path), name))...)
		}
		return out
	}
	for f := range fields(t) {
		out = append(out, leaves(v.FieldByIndex(f.Index), append(slices.Clone(path), jsonName(f)))...)
	}
	return out
}

// matches reports whether a key's pattern is the one for a path.
func matches(pattern string, path []string) bool {
	parts := strings.Split(pattern, ".")
	if len(parts) != len(path) {
		return false
	}
	for i, p := range parts {
		if p != path[i] && !strings.HasPrefix(p, "<") {
			return false
		}
	}
	return true
}

// fields returns the fields of a struct, those of an embedded one among them.
func fields(t reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if !f.Anonymous && !yield(f) {
				return
			}
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
