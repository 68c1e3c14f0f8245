package config

import (
	"reflect"
	"slices"
	"strings"
)

// Key documents one key. Default and Type are taken from the code that uses them, so that they are always right.
type Key struct {
	// Name with dots. A part in angle brackets is a name that the user chooses.
	Name string `json:"name"`
	// Type as a person would say it.
	Type string `json:"type"`
	// Default as text, "" for none.
	Default string `json:"default"`
	// Unit of the value, "" where it has none.
	Unit string `json:"unit,omitempty"`
	// Effect says what the key does, in a sentence or two.
	Effect string `json:"effect"`
	// Variable of the environment; "" for a key that no variable's name can hold.
	Variable string `json:"variable,omitempty"`
	// Flag of the command line without its hyphens, "" when --set is the only one.
	Flag string `json:"flag,omitempty"`
	// Secret values are masked when shown, and refused on the command line.
	Secret bool `json:"secret,omitempty"`
}

// table is every key there is, in the order of Config's fields. A test compares it with the types.
var table = slices.Concat(placeKeys, vendorKeys, settingKeys, modelKeys, quotaKeys, processKeys)

// Describe returns the documentation of every key, in the order of the table.
func Describe() []Key {
	values := map[string]string{}
	for _, l := range leaves(reflect.ValueOf(Defaults()), nil) {
		if l.path[0] != "vendors" { // their own table shows those
			values[dotted(l.path)] = format(l.value)
		}
	}
	out := make([]Key, len(table))
	for i, k := range table {
		path := strings.Split(k.Name, ".")
		t, ok := typeAt(path)
		if !ok {
			panic("config: the table documents the key " + k.Name + ", but Config does not have it")
		}
		k.Default = values[k.Name]
		k.Type = describe(t)
		k.Variable = Variable(path)
		out[i] = k
	}
	return out
}

// find returns the row of the table that a key belongs to.
func find(path []string) (Key, bool) {
	for _, k := range table {
		if matches(k.Name, path) {
			return k, true
		}
	}
	return Key{}, false
}
