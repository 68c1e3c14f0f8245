package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat is how bodies are written. encoding/json would take the spaces out of a json.RawMessage; an agent's own
// messages go back byte for byte. Bodies are read by payload.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		var b bytes.Buffer
		if err := encode(&b, reflect.ValueOf(v)); err != nil {
			return err
		}
		b.WriteByte('\n')
		_, err := w.Write(b.Bytes())
		return err
	},
	Unmarshal: json.Unmarshal,
}

var (
	rawType       = reflect.TypeFor[json.RawMessage]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

// encode writes v as encoding/json would, but json.RawMessage as it is and a nil slice as an empty array.
func encode(b *bytes.Buffer, v reflect.Value) error {
	if !v.IsValid() {
		b.WriteString("null")
		return nil
	}
	t := v.Type()
	if t == rawType {
		raw := v.Bytes()
		if len(raw) == 0 {
			raw = []byte("null")
		}
		b.Write(raw)
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		if t.Kind() == reflect.Interface || t.Elem() == rawType || !custom(t) {
			return encode(b, v.Elem())
		}
	case reflect.Struct:
		if !custom(t) {
			return encodeStruct(b, v)
		}
	case reflect.Map:
		if !custom(t) && t.Key().Kind() == reflect.String {
			return encodeMap(b, v)
		}
	case reflect.Slice, reflect.Array:
		if !custom(t) && t.Elem().Kind() != reflect.Uint8 {
			return encodeList(b, v)
		}
	}
	return encodeLeaf(b, v)
}

// custom types write themselves.
func custom(t reflect.Type) bool { return t.Implements(marshalerType) || t.Implements(textType) }

func encodeLeaf(b *bytes.Buffer, v reflect.Value) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v.Interface()); err != nil {
		return fmt.Errorf("encode %s: %w", v.Type(), err)
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	return nil
}

func encodeList(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(b, v.Index(i)); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func encodeMap(b *bytes.Buffer, v reflect.Value) error {
	if v.IsNil() {
		b.WriteString("null")
		return nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encodeLeaf(b, reflect.ValueOf(key.String())); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := encode(b, v.MapIndex(key)); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func encodeStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	first := true
	for _, f := range fieldsOf(v.Type()) {
		value, ok := f.of(v)
		if !ok || f.omitEmpty && empty(value) || f.omitZero && value.IsZero() {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteString(f.key)
		if err := encode(b, value); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// field is a field of a struct's JSON form, those of embedded structs among them.
type field struct {
	name string
	// key is the name as JSON, with the colon.
	key                 string
	index               []int
	omitEmpty, omitZero bool
}

// of gives the field's value; false when it lies in an embedded pointer that is nil.
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
		// An embedded struct with a name of its own is a field; what is in it is not promoted.
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
	// Of two with one name the outer counts.
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
