package config

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wildcards are the names in the tables for the parts of keys that the user chooses, by section.
var wildcards = map[string]string{
	"vendors": "<name>", "prices": "<vendor>/<model>", "models": "<vendor>/<model>",
	"tenants": "<tenant>",
}

// patterns returns the key of every value of a type.
func patterns(t *testing.T, typ reflect.Type, path []string) []string {
	t.Helper()
	members := membersOf(typ)
	switch {
	case members == nil:
		return []string{dotted(path)}
	case members.any != nil:
		name, ok := wildcards[path[len(path)-1]]
		if !ok {
			t.Fatalf("%s has chosen names: say in this test how the table writes them", dotted(path))
		}
		return patterns(t, members.any, append(slices.Clone(path), name))
	}
	var out []string
	for _, name := range members.names {
		if name == "" || name == "-" {
			t.Errorf("a field under %q of %s has no JSON name, so no source can give it", dotted(path), typ)
			continue
		}
		out = append(out, patterns(t, members.types[name], append(slices.Clone(path), name))...)
	}
	return out
}

func TestEveryFieldIsInTheTableAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	var inTable []string
	for _, k := range table {
		inTable = append(inTable, k.Name)
	}
	if diff := cmp.Diff(patterns(t, reflect.TypeFor[Config](), nil), inTable); diff != "" {
		t.Errorf("the tables in keys_*.go must have one row for each value of Config, in the order of the fields "+
			"(- fields, + table):\n%s", diff)
	}
}

func TestRowsAreComplete(t *testing.T) {
	t.Parallel()
	variables := map[string]string{}
	for _, k := range Describe() {
		if k.Effect == "" || k.Effect[len(k.Effect)-1] != '.' {
			t.Errorf("%s: its effect is a sentence", k.Name)
		}
		if k.Secret && k.Flag != "" {
			t.Errorf("%s is secret and has a flag: a command line is public", k.Name)
		}
		if other, taken := variables[k.Variable]; taken && k.Variable != "" {
			t.Errorf("%s and %s have the same variable %s", k.Name, other, k.Variable)
		}
		variables[k.Variable] = k.Name
	}
	for _, u := range OtherTools {
		if _, ok := find(splitKey(u.Key)); !ok {
			t.Errorf("%s is for the unknown key %s", u.Variable, u.Key)
		}
	}
}
