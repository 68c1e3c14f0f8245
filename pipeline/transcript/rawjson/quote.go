package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a string literal. Half of a surrogate pair becomes U+FFFD; bytes that are not UTF-8 stay.
func Unquote(lit []byte) string { return unquote(lit) }

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

// Quote writes s as a string literal. It escapes only what JSON requires, so not '<'.
func Quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A string cannot fail to encode.
	_ = enc.Encode(s)
	return b.Bytes()[:b.Len()-1]
}

// WellFormed replaces lone halves of surrogate pairs and bytes that are not UTF-8 by U+FFFD. It returns nil if there
// are none.
func WellFormed(b []byte) []byte {
	var all []Splice
	for i := 0; i < len(b); {
		switch {
		case b[i] == '\\' && b[i+1] == 'u':
			r := hex4(b[i+2:])
			n := 6
			if utf16.IsSurrogate(r) {
				if rest := b[i+6:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' &&
					utf16.DecodeRune(r, hex4(rest[2:])) != utf8.RuneError {
					n = 12
				} else {
					all = append(all, Splice{i, i + 6, []byte(`\ufffd`)})
				}
			}
			i += n
		case b[i] == '\\':
			i += 2
		case b[i] < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				all = append(all, Splice{i, i + 1, []byte("\ufffd")})
			}
			i += n
		}
	}
	if len(all) == 0 {
		return nil
	}
	return Apply(b, all...)
}
