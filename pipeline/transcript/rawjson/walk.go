package rawjson

import (
	"bytes"
	"iter"
	"slices"
)

// A Field is one key of an object with its value. Pair reaches from the key's quote to the end of the value.
type Field struct{ Pair, Value Value }

// Fields iterates over the decoded keys of an object, in order and with duplicates. Any other value has none.
func (v Value) Fields() iter.Seq2[[]byte, Field] {
	return func(yield func([]byte, Field) bool) {
		if !v.IsObject() {
			return
		}
		b := v.doc
		i := SkipSpace(b, v.start+1)
		for b[i] != '}' {
			keyEnd := skipString(b, i)
			value := At(b, SkipSpace(b, keyEnd)+1)
			key := b[i+1 : keyEnd-1]
			if bytes.IndexByte(key, '\\') >= 0 {
				key = []byte(unquote(b[i:keyEnd]))
			}
			if !yield(key, Field{Value{b, i, value.end}, value}) {
				return
			}
			if i = SkipSpace(b, value.end); b[i] == ',' {
				i = SkipSpace(b, i+1)
			}
		}
	}
}

// Want maps the keys of the members that a reader needs to the variables for their values.
type Want []struct {
	Key string
	To  *Value
}

// Read stores the members that want names. A variable stays unchanged if the object does not have its key.
func (v Value) Read(want Want) {
	for key, f := range v.Fields() {
		for _, w := range want {
			if w.Key == string(key) {
				*w.To = f.Value
				break
			}
		}
	}
}

// Members returns the members of an object by key.
func (v Value) Members() map[string]Value {
	out := map[string]Value{}
	for key, f := range v.Fields() {
		out[string(key)] = f.Value
	}
	return out
}

// Lookup follows a path of keys and reports whether there is a value at its end.
func (v Value) Lookup(path ...string) (Value, bool) {
	for _, key := range path {
		found := Value{doc: v.doc}
		ok := false
		for k, f := range v.Fields() {
			if string(k) == key {
				found, ok = f.Value, true
			}
		}
		if v = found; !ok {
			return v, false
		}
	}
	return v, true
}

// Get is Lookup for a value that may be missing.
func (v Value) Get(path ...string) Value {
	v, _ = v.Lookup(path...)
	return v
}

// Items iterates over the values of an array. Any other value has none.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if !v.IsArray() {
			return
		}
		b := v.doc
		i := SkipSpace(b, v.start+1)
		for b[i] != ']' {
			el := At(b, i)
			if !yield(el) {
				return
			}
			if i = SkipSpace(b, el.end); b[i] == ',' {
				i = SkipSpace(b, i+1)
			}
		}
	}
}

// Elements returns the values of an array. Any other value has none.
func (v Value) Elements() []Value { return slices.Collect(v.Items()) }

// skipValue returns the end of the value that begins at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(b) {
		switch b[i] {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// skipString returns the end of the string literal that begins at i.
func skipString(b []byte, i int) int {
	for i++; ; i += 2 {
		if i = skipPlain(b, i); b[i] == '"' {
			return i + 1
		}
	}
}
