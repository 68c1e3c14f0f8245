package rawjson

import (
	"encoding/json"
	"strconv"
)

// A Value is the place of one JSON value in a document. The zero Value is a missing value: it has no kind, no text
// and no members.
type Value struct {
	doc        []byte
	start, end int
}

// A Kind is the type of a value, named by the first byte that values of the type have.
type Kind byte

// The kinds of values.
const (
	Missing Kind = 0
	Object  Kind = '{'
	Array   Kind = '['
	String  Kind = '"'
	Number  Kind = '0'
	True    Kind = 't'
	False   Kind = 'f'
	Null    Kind = 'n'
)

// Root returns the value that doc holds, a missing one for an empty doc.
func Root(doc []byte) Value {
	if len(doc) == 0 {
		return Value{}
	}
	return At(doc, 0)
}

// At returns the value that begins at or after offset i of doc.
func At(doc []byte, i int) Value {
	i = SkipSpace(doc, i)
	return Value{doc, i, skipValue(doc, i)}
}

// Start returns the offset of the first byte of the value in its document.
func (v Value) Start() int { return v.start }

// End returns the offset behind the value's last byte.
func (v Value) End() int { return v.end }

// Raw returns the bytes of the value, a slice of its document.
func (v Value) Raw() []byte { return v.doc[v.start:v.end:v.end] }

// Kind returns the type of the value.
func (v Value) Kind() Kind {
	if v.IsMissing() {
		return Missing
	}
	switch c := Kind(v.doc[v.start]); c {
	case Object, Array, String, True, False, Null:
		return c
	}
	return Number
}

// IsMissing reports whether there is no value.
func (v Value) IsMissing() bool { return v.start == v.end }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return v.Kind() == Object }

// IsArray reports whether the value is an array.
func (v Value) IsArray() bool { return v.Kind() == Array }

// IsString reports whether the value is a string.
func (v Value) IsString() bool { return v.Kind() == String }

// IsNumber reports whether the value is a number.
func (v Value) IsNumber() bool { return v.Kind() == Number }

// IsTrue reports whether the value is true.
func (v Value) IsTrue() bool { return v.Kind() == True }

// IsFalse reports whether the value is false.
func (v Value) IsFalse() bool { return v.Kind() == False }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.Kind() == Null }

// IsEmpty reports whether the value is an object, an array or a string with nothing in it.
func (v Value) IsEmpty() bool {
	switch v.Kind() {
	case String:
		return v.end-v.start == len(`""`)
	case Object, Array:
		return SkipSpace(v.doc, v.start+1) == v.end-1
	}
	return false
}

// Str returns the decoded string, and whether the value is a string.
func (v Value) Str() (string, bool) {
	if !v.IsString() {
		return "", false
	}
	return unquote(v.Raw()), true
}

// Text returns the decoded string, or "" for any other value.
func (v Value) Text() string {
	s, _ := v.Str()
	return s
}

// TextOrRaw returns a string decoded, and any other value as its JSON.
func (v Value) TextOrRaw() string {
	if s, ok := v.Str(); ok {
		return s
	}
	return string(v.Raw())
}

// Count returns a whole number, or 0 for a negative number and for any other value.
func (v Value) Count() int {
	n := 0
	if json.Unmarshal(v.Raw(), &n) != nil || n < 0 {
		return 0
	}
	return n
}

// Numeral returns a number as it is written, or "" for any other value.
func (v Value) Numeral() string {
	if !v.IsNumber() {
		return ""
	}
	return string(v.Raw())
}

// Float returns a number, or 0 for any other value.
func (v Value) Float() float64 {
	x, err := strconv.ParseFloat(v.Numeral(), 64)
	if err != nil {
		return 0
	}
	return x
}

// Present returns the bytes of the value, nil for null.
func (v Value) Present() json.RawMessage {
	if v.IsNull() {
		return nil
	}
	return v.Raw()
}
