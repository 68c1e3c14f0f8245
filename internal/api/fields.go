package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is a field of a struct's JSON form. The fields of embedded structs are among them.
type field struct {
	name string
	// key is the name as JSON, with the colon.
	key                 string
	index               []int
	omitEmpty, omitZero bool
}

// of returns the field's value, or false if the field is in an embedded pointer that is nil.
func (f field) of(v reflect.Value) (reflect.Value, bool) {
	for i, at := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, true
}

var fieldCache sync.Map // reflect.Type → []field

func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldCache.Load(t); ok {
		return known.([]field)
	}
	var all []field
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-", !f.IsExported() && !f.Anonymous, f.Anonymous && name == "" && isStruct(f.Type):
			continue
		case name == "":
			name = f.Name
		}
		// An embedded struct with a JSON name is a field; its own fields are not promoted.
		if len(f.Index) > 1 && namedParent(t, f.Index) {
			continue
		}
		key, err := json.Marshal(name)
		if err != nil {
			panic(err) // a string
		}
		all = append(all, field{
			name: name, key: string(key) + ":", index: f.Index,
			omitEmpty: hasOption(options, "omitempty"), omitZero: hasOption(options, "omitzero"),
		})
	}
	// Of two fields with the same name the outer one wins.
	out := all[:0:0]
	for _, f := range all {
		if !slices.ContainsFunc(all, func(o field) bool { return o.name == f.name && len(o.index) < len(f.index) }) {
			out = append(out, f)
		}
	}
	fieldCache.Store(t, out)
	return out
}

func isStruct(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

func namedParent(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		name, _, _ := strings.Cut(t.FieldByIndex(index[:i]).Tag.Get("json"), ",")
		if name != "" {
			return true
		}
	}
	return false
}

func hasOption(options, want string) bool {
	return slices.Contains(strings.Split(options, ","), want)
}
