package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON surgery: finding values inside of JSON text, and putting others in their place, without touching a byte
// beside them. Everything here but check works on text that check has found to be sound.

// A span is a stretch of bytes, from start up to end.
type span struct{ start, end int }

func (s span) of(b []byte) []byte { return b[s.start:s.end:s.end] }

func (s span) empty() bool { return s.start == s.end }

// check reads one JSON value from the front of b and gives where it ends. Behind an error, at is the offset of
// the byte at fault.
func check(b []byte) (end, at int, err error) {
	var s scanner
	n, done, err := s.feed(b)
	if err != nil {
		return 0, n, err
	}
	if !done {
		if err := s.finish(); err != nil {
			return 0, n, err
		}
	}
	return n, n, nil
}

// whole is check for text that must be one value and nothing else but blanks around it.
func whole(b []byte) error {
	end, _, err := check(b)
	if err != nil {
		return err
	}
	if rest := skipSpace(b, end); rest != len(b) {
		return errors.New("something follows the end of the JSON value")
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// valueAt gives the span of the value that begins at or after i.
func valueAt(b []byte, i int) span {
	i = skipSpace(b, i)
	return span{i, skipValue(b, i)}
}

// skipValue gives the end of the value that begins at i.
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

func skipString(b []byte, i int) int {
	for i++; ; i += 2 {
		if i = skipPlain(b, i); b[i] == '"' {
			return i + 1
		}
	}
}

// A field is one key and value of an object. pair is from the key's quote to the end of the value.
type field struct{ pair, value span }

// fields walks over the keys of the object at v, in order, duplicates included.
func fields(b []byte, v span) iter.Seq2[[]byte, field] {
	return func(yield func([]byte, field) bool) {
		i := skipSpace(b, v.start+1)
		for b[i] != '}' {
			keyEnd := skipString(b, i)
			val := valueAt(b, skipSpace(b, keyEnd)+1)
			key := b[i+1 : keyEnd-1]
			if bytes.IndexByte(key, '\\') >= 0 {
				key = []byte(unquote(b[i:keyEnd]))
			}
			if !yield(key, field{span{i, val.end}, val}) {
				return
			}
			if i = skipSpace(b, val.end); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
	}
}

// elements gives the spans of the array at v.
func elements(b []byte, v span) []span {
	var out []span
	i := skipSpace(b, v.start+1)
	for b[i] != ']' {
		el := valueAt(b, i)
		out = append(out, el)
		if i = skipSpace(b, el.end); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return out
}

// get gives the value of a key of the object at v; the last one counts, as for every parser of the vendors.
func get(b []byte, v span, key string) (span, bool) {
	var found span
	ok := false
	if kind(b, v) != '{' {
		return found, false
	}
	for k, f := range fields(b, v) {
		if string(k) == key {
			found, ok = f.value, true
		}
	}
	return found, ok
}

// dig follows a path of keys.
func dig(b []byte, v span, path ...string) (span, bool) {
	for _, key := range path {
		var ok bool
		if v, ok = get(b, v, key); !ok {
			return v, false
		}
	}
	return v, true
}

// root is the span of the single value that b holds.
func root(b []byte) span { return valueAt(b, 0) }

// kind tells what a value is by its first byte: '{', '[', '"', 't', 'f', 'n', or '0' for a number.
func kind(b []byte, v span) byte {
	if v.empty() {
		return 0
	}
	switch c := b[v.start]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	}
	return '0'
}

// str gives a string value decoded, and whether it is a string.
func str(b []byte, v span) (string, bool) {
	if kind(b, v) != '"' {
		return "", false
	}
	return unquote(v.of(b)), true
}

// text is str for a value that may be missing or of another type: then "".
func text(b []byte, v span) string {
	s, _ := str(b, v)
	return s
}

// unquote decodes a string literal. Half of a surrogate pair becomes U+FFFD; bytes that are no UTF-8 stay.
func unquote(lit []byte) string {
	in := lit[1 : len(lit)-1]
	i := skipPlain(in, 0)
	if i == len(in) {
		return string(in)
	}
	var out strings.Builder
	out.Grow(len(in))
	for {
		out.Write(in[:i])
		in = in[i:]
		switch in[1] {
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'u':
			r := hex4(in[2:])
			in = in[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(in) >= 8 && in[2] == '\\' && in[3] == 'u' {
					pair = utf16.DecodeRune(r, hex4(in[4:]))
				}
				if r = pair; pair != utf8.RuneError {
					in = in[6:]
				}
			}
			out.WriteRune(r)
		default:
			out.WriteByte(in[1])
		}
		in = in[2:]
		if i = skipPlain(in, 0); i == len(in) {
			out.Write(in)
			return out.String()
		}
	}
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		case c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			r |= rune(c - 'a' + 10)
		}
	}
	return r
}

// quote writes a string literal. Characters that JSON lets stand are left to stand, '<' among them.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A string cannot fail to encode.
	_ = enc.Encode(s)
	return b.Bytes()[:b.Len()-1]
}

// A splice puts text in the place of a span.
type splice struct {
	span
	text []byte
}

// apply does splices that do not overlap, in any order, on a copy.
func apply(b []byte, all []splice) []byte {
	slices.SortStableFunc(all, func(x, y splice) int { return x.start - y.start })
	size := len(b)
	for _, s := range all {
		size += len(s.text) - (s.end - s.start)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, s := range all {
		out = append(out, b[at:s.start]...)
		out = append(out, s.text...)
		at = s.end
	}
	return append(out, b[at:]...)
}

// without gives the splices that take the dropped ones out of a list of siblings (the pairs of an object, the
// elements of an array) together with their commas.
func without(siblings []span, drop func(int) bool) []splice {
	var out []splice
	kept := false
	for i, s := range siblings {
		switch {
		case !drop(i):
			kept = true
		case kept:
			out = append(out, splice{span: span{siblings[i-1].end, s.end}})
		case i+1 < len(siblings):
			out = append(out, splice{span: span{s.start, siblings[i+1].start}})
		default:
			out = append(out, splice{span: s})
		}
	}
	return out
}

// oneLine gives the same JSON without line breaks between its tokens, for formats of one value a line.
func oneLine(b []byte) []byte {
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
			i = skipSpace(b, i)
		default:
			out = append(out, b[i])
			i++
		}
	}
	return out
}
