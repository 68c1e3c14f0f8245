package rawjson

import (
	"fmt"
	"slices"
)

// A Splice replaces the bytes of a document from Start up to End with Text.
type Splice struct {
	Start, End int
	Text       []byte
}

// Replace returns the splice that replaces the value with text.
func (v Value) Replace(text []byte) Splice { return Splice{v.start, v.end, text} }

// Insert returns the splice that inserts text at offset i.
func Insert(i int, text []byte) Splice { return Splice{i, i, text} }

// With returns a copy of the value's document in which text replaces the value.
func (v Value) With(text []byte) []byte { return Apply(v.doc, v.Replace(text)) }

// Apply returns a copy of doc with the splices applied. They may have any order, but must not overlap.
func Apply(doc []byte, all ...Splice) []byte {
	slices.SortStableFunc(all, func(x, y Splice) int { return x.Start - y.Start })
	size := len(doc)
	for _, s := range all {
		size += len(s.Text) - (s.End - s.Start)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, s := range all {
		out = append(out, doc[at:s.Start]...)
		out = append(out, s.Text...)
		at = s.End
	}
	return append(out, doc[at:]...)
}

// Without returns the splices that remove the dropped entries of a list of siblings (the pairs of an object, the
// elements of an array) together with their commas.
func Without(siblings []Value, drop func(int) bool) []Splice {
	var out []Splice
	kept := false
	for i, s := range siblings {
		switch {
		case !drop(i):
			kept = true
		case kept:
			out = append(out, Splice{Start: siblings[i-1].end, End: s.end})
		case i+1 < len(siblings):
			out = append(out, Splice{Start: s.start, End: siblings[i+1].start})
		default:
			out = append(out, Splice{Start: s.start, End: s.end})
		}
	}
	return out
}

// KeepKeys returns the object with only the pairs of the given keys, and the keys that were dropped.
func (v Value) KeepKeys(keys ...string) (object []byte, dropped []string) {
	return v.DropKeys(func(key string, _ Value) bool { return !slices.Contains(keys, key) })
}

// DropKeys returns the object without the pairs for which drop returns true, and the keys that were dropped. With none
// dropped the object is a slice of the document.
func (v Value) DropKeys(drop func(key string, value Value) bool) (object []byte, dropped []string) {
	var pairs []Value
	var out []bool
	for key, f := range v.Fields() {
		pairs = append(pairs, f.Pair)
		d := drop(string(key), f.Value)
		out = append(out, d)
		if d {
			dropped = append(dropped, string(key))
		}
	}
	if len(dropped) == 0 {
		return v.Raw(), nil
	}
	all := Without(pairs, func(i int) bool { return out[i] })
	for i := range all {
		all[i].Start -= v.start
		all[i].End -= v.start
	}
	return Apply(v.Raw(), all...), dropped
}

// AddPair adds a key with a JSON value at the end of the object in doc.
func AddPair(doc []byte, key string, value []byte) []byte {
	v := Root(doc)
	comma := ","
	if v.IsEmpty() {
		comma = ""
	}
	return Apply(doc, Insert(v.end-1, fmt.Appendf(nil, "%s%s:%s", comma, Quote(key), value)))
}

// AddPairs adds pairs, each written with a comma before it, at the end of the object in doc.
func AddPairs(doc []byte, pairs string, args ...any) []byte {
	return Apply(doc, Insert(Root(doc).end-1, fmt.Appendf(nil, pairs, args...)))
}
