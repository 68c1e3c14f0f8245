package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ArrayOf writes values as an array with one value per line.
func ArrayOf(values [][]byte) []byte {
	if len(values) == 0 {
		return []byte("[]")
	}
	return fmt.Appendf(nil, "[\n%s\n]", bytes.Join(values, []byte(",\n")))
}

// Join writes values as the elements of an array, without the brackets.
func Join(values [][]byte) []byte { return bytes.Join(values, []byte{','}) }

// Lines writes values as lines, without a line break behind the last. A value that is written over several lines
// becomes one line.
func Lines(values [][]byte) []byte {
	var b bytes.Buffer
	for _, v := range values {
		b.Write(OneLine(v))
		b.WriteByte('\n')
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// PutArray puts an array into an object. It replaces the array at the first of the dotted paths that leads to one.
// Without such an array it adds one at the head of the object, with the first path as its key.
func PutArray(around, array []byte, paths ...string) []byte {
	if Check(around) != nil || !Root(around).IsObject() {
		around = []byte("{}")
	}
	v := Root(around)
	for _, p := range paths {
		if at := v.Get(strings.Split(p, ".")...); at.IsArray() {
			return at.With(array)
		}
	}
	comma := ","
	if v.IsEmpty() {
		comma = ""
	}
	return Apply(around, Insert(v.start+1, fmt.Appendf(nil, "%s:%s%s", Quote(paths[0]), array, comma)))
}

// OneLine returns the same JSON without line breaks between its tokens, for formats with one value per line.
func OneLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		switch b[i] {
		case '"':
			end := skipString(b, i)
			out = append(out, b[i:end]...)
			i = end
		case '\n', '\r':
			i = SkipSpace(b, i)
		default:
			out = append(out, b[i])
			i++
		}
	}
	return out
}

// Same reports whether a and b are the same JSON apart from blanks between tokens.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// Decimal writes a whole number.
func Decimal(n int) []byte { return fmt.Append(nil, n) }
