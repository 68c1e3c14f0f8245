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

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat writes bodies. encoding/json would remove the spaces of a json.RawMessage; an agent's own messages must be
// returned byte for byte. Bodies are read by payload.
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

// encode writes v as encoding/json does, except that json.RawMessage is written unchanged and a nil slice as an empty
// array.
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

// custom reports whether a type marshals itself.
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
