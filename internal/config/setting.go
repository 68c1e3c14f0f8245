package config

import (
	"errors"
	"slices"
	"strings"
)

// settingsPrefix begins the keys of the settings of a compaction, which tenants and conversations have too.
const settingsPrefix = "settings."

// SettingPatch reads a setting of a compaction as --set takes it, its key with or without "settings." before it. It
// returns the merge patch (RFC 7396) of a tenant's or a conversation's settings that sets it: {"trigger": {"fraction":
// 0.8}}. An unknown key and a value of the wrong type are an *Error with the given origin.
func SettingPatch(key, value string, from Origin) (map[string]any, error) {
	path := settingPath(key)
	s := sourceCheck{from: func([]string) Origin { return from }}
	checked := s.check(nest(path, typed(path, value)))
	if len(s.problems) > 0 {
		return nil, errors.Join(s.problems...)
	}
	patch, _ := checked["settings"].(map[string]any)
	return patch, nil
}

// UnsetPatch returns the merge patch that takes a setting, or a whole section of them, back.
func UnsetPatch(key string, from Origin) (map[string]any, error) {
	path := settingPath(key)
	name := dotted(path)
	if !slices.ContainsFunc(table, func(k Key) bool { return k.Name == name || strings.HasPrefix(k.Name, name+".") }) {
		return nil, &Error{Key: name, From: from, Problem: "unknown key; `precis settings` lists them"}
	}
	return nest(path[1:], nil), nil
}

func settingPath(key string) []string {
	return strings.Split(settingsPrefix+strings.TrimPrefix(key, settingsPrefix), ".")
}

// SettingValues is Values for the settings of a compaction alone, of a configuration in which a tenant's count. own is
// what the tenant sets, a JSON object; from names the tenant.
func SettingValues(c Config, origins Origins, own map[string]any, from Origin) []Value {
	var out []Value
	for _, v := range Values(c, origins) {
		key, ok := strings.CutPrefix(v.Key, settingsPrefix)
		if !ok {
			continue
		}
		if holds(own, strings.Split(key, ".")) {
			v.From = from
		}
		out = append(out, v)
	}
	return out
}

// holds reports whether an object has a value at the path.
func holds(object map[string]any, path []string) bool {
	value, ok := object[path[0]]
	if !ok || len(path) == 1 {
		return ok
	}
	inner, ok := value.(map[string]any)
	return ok && holds(inner, path[1:])
}
