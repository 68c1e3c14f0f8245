package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// sourceCheck checks what one source gives against the types of Config, key by key.
type sourceCheck struct {
	// from returns the origin of a key.
	from func(path []string) Origin
	// found are the keys that have a value.
	found    [][]string
	problems []error
}

// check returns the values that have the type of their key. Those that do not, and unknown keys, become problems.
func (s *sourceCheck) check(values map[string]any) map[string]any {
	checked, _ := s.value(reflect.TypeFor[Config](), values, nil).(map[string]any)
	return checked
}

// value checks one value of the given type, a section or a leaf. It returns nil when nothing is left to be merged.
func (s *sourceCheck) value(t reflect.Type, value any, path []string) any {
	if value == nil {
		return nil // "settings:" with all of its keys commented out
	}
	members := membersOf(t)
	if members == nil {
		return s.leaf(t, value, path)
	}
	values, ok := value.(map[string]any)
	if !ok {
		// The value is not shown: a vendor's key may have been put where its section belongs.
		s.fail(path, "is a section, not a value; give one of its keys (%s), or the section as {KEY: VALUE}", members)
		return nil
	}
	checked := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := append(slices.Clone(path), name)
		member, ok := members.of(name)
		if !ok {
			s.fail(at, "unknown key; known here: %s", members)
			continue
		}
		if v := s.value(member, values[name], at); v != nil {
			checked[name] = v
		}
	}
	return checked
}

func (s *sourceCheck) leaf(t reflect.Type, value any, path []string) any {
	k, _ := find(path)
	from := s.from(path)
	if k.Secret && from.Source == SourceFlag {
		// Everybody on the machine can see a command line.
		s.fail(path, "a secret comes from the environment (%s) or the file, never from the command line",
			Variable(path))
		return nil
	}
	out := reflect.New(t)
	if err := decode(value, out.Interface()); err != nil {
		problem := problemOf(err)
		if k.Secret {
			problem = fmt.Sprintf("must be %s; the value is not shown, it may hold a secret", describe(t))
		}
		s.fail(path, "%s", problem)
		return nil
	}
	s.found = append(s.found, path)
	if t.Kind() == reflect.Map {
		return value // koanf merges such a map, key by key, with that of another source
	}
	return out.Elem().Interface()
}

func (s *sourceCheck) fail(path []string, format string, args ...any) {
	s.problems = append(s.problems,
		&Error{Key: dotted(path), From: s.from(path), Problem: fmt.Sprintf(format, args...)})
}

// members are the keys of a section: those of a struct, or any name for a map of structs.
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

// String lists the keys.
func (m *members) String() string {
	if m.any != nil {
		return "a name of your choice"
	}
	return strings.Join(m.names, ", ")
}

// membersOf returns nil for a type that is a value and not a section.
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

// typeAt returns the type of the value at a key; false when there is no such key.
func typeAt(path []string) (reflect.Type, bool) {
	t := reflect.TypeFor[Config]()
	for _, name := range path {
		m := membersOf(t)
		if m == nil {
			return nil, false
		}
		member, ok := m.of(name)
		if !ok {
			return nil, false
		}
		t = member
	}
	return t, true
}
