package rawjson

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxDepth bounds how deep arrays and objects may nest. It is the limit of encoding/json, so that encoding/json can
// read all accepted text.
const MaxDepth = 10000

// A Scanner checks one JSON value without building anything. It can be fed in pieces. It accepts what RFC 8259 does,
// and also bytes inside of strings that are not UTF-8. Call Reset before the first use.
type Scanner struct {
	state scanState
	// nest has one entry per open array or object: '[' or '{'.
	nest []byte
	// key is true while the string being read is the key of an object.
	key bool
	// lit is the literal being read and how much of it was seen; hex counts the digits of a \u escape.
	lit    string
	litAt  int
	hexAt  int
	number numState
}

type scanState uint8

const (
	wantValue      scanState = iota // a value must follow
	wantValueOrEnd                  // just after '[': a value or ']'
	wantKeyOrEnd                    // just after '{': a key or '}'
	wantKey                         // after a comma in an object
	wantColon
	wantCommaOrEnd // after a value inside of an array or object
	inString
	inEscape
	inHex
	inNumber
	inLiteral
	scanDone
)

// ErrUnexpectedEnd is the error for a value that ends before it is complete.
var ErrUnexpectedEnd = errors.New("the JSON value ends too early")

// Reset prepares the scanner for another value.
func (s *Scanner) Reset() {
	s.state, s.nest, s.key = wantValue, s.nest[:0], false
}

// Feed reads b from the front. It returns how many bytes belong to the value and whether the value is complete. A
// number at the top level is complete only when another byte follows it: see Finish.
func (s *Scanner) Feed(b []byte) (n int, done bool, err error) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch s.state {
		case inString:
			if i = skipPlain(b, i); i == len(b) {
				return i, false, nil
			}
			c = b[i]
			switch {
			case c == '"':
				if s.key {
					s.key, s.state = false, wantColon
				} else if s.closed() {
					return i + 1, true, nil
				}
			case c == '\\':
				s.state = inEscape
			default:
				return i, false, fmt.Errorf("a control character (0x%02x) must be escaped in a string", c)
			}
		case inEscape:
			switch c {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				s.state = inString
			case 'u':
				s.state, s.hexAt = inHex, 0
			default:
				return i, false, fmt.Errorf("unknown escape \\%c", c)
			}
		case inHex:
			if !isHex(c) {
				return i, false, errors.New("a \\u escape needs four hexadecimal digits")
			}
			if s.hexAt++; s.hexAt == 4 {
				s.state = inString
			}
		case inLiteral:
			if c != s.lit[s.litAt] {
				return i, false, fmt.Errorf("expected %s", s.lit)
			}
			if s.litAt++; s.litAt == len(s.lit) && s.closed() {
				return i + 1, true, nil
			}
		case inNumber:
			if s.digit(c) {
				continue
			}
			if !s.numberWhole() {
				return i, false, errors.New("a number is incomplete")
			}
			if s.closed() {
				return i, true, nil
			}
			i-- // the byte that ended the number is read again
		default:
			if IsSpace(c) {
				continue
			}
			if err := s.token(c); err != nil {
				return i, false, err
			}
			if s.state == scanDone {
				return i + 1, true, nil
			}
		}
	}
	return len(b), false, nil
}

// skipPlain returns the index of the first byte at or after i that is a quote, a backslash or a control character,
// len(b) when there is none. It looks at eight bytes at a time: strings are most of what a transcript is.
func skipPlain(b []byte, i int) int {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^('"'*ones), x^('\\'*ones)
		// The high bit of each byte that is one of the three, and perhaps of bytes behind it.
		hit := ((quote-ones)&^quote | (slash-ones)&^slash | (x-0x20*ones)&^x) & high
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
		i++
	}
	return i
}

// token reads one structural byte.
func (s *Scanner) token(c byte) error {
	switch s.state {
	case wantValueOrEnd, wantValue:
		if c == ']' && s.state == wantValueOrEnd {
			s.pop()
			return nil
		}
		return s.begin(c)
	case wantKeyOrEnd, wantKey:
		switch {
		case c == '"':
			s.state, s.key = inString, true
			return nil
		case c == '}' && s.state == wantKeyOrEnd:
			s.pop()
			return nil
		}
		return fmt.Errorf("expected a key, found %q", c)
	case wantColon:
		if c != ':' {
			return fmt.Errorf("expected a colon after a key, found %q", c)
		}
		s.state = wantValue
		return nil
	}
	// wantCommaOrEnd
	open := s.nest[len(s.nest)-1]
	switch {
	case c == ',' && open == '[':
		s.state = wantValue
	case c == ',':
		s.state = wantKey
	case c == ']' && open == '[', c == '}' && open == '{':
		s.pop()
	default:
		return fmt.Errorf("expected a comma or the end of what %q opened, found %q", open, c)
	}
	return nil
}

// begin starts a value.
func (s *Scanner) begin(c byte) error {
	switch {
	case c == '"':
		s.state = inString
	case c == '{', c == '[':
		if len(s.nest) == MaxDepth {
			return fmt.Errorf("the JSON nests deeper than %d levels", MaxDepth)
		}
		s.nest = append(s.nest, c)
		s.state = wantKeyOrEnd
		if c == '[' {
			s.state = wantValueOrEnd
		}
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	case c == '-':
		s.state, s.number = inNumber, numMinus
	case c == '0':
		s.state, s.number = inNumber, numZero
	case '1' <= c && c <= '9':
		s.state, s.number = inNumber, numInt
	default:
		return fmt.Errorf("expected a value, found %q", c)
	}
	return nil
}

func (s *Scanner) literal(word string) { s.state, s.lit, s.litAt = inLiteral, word, 1 }

func (s *Scanner) pop() {
	s.nest = s.nest[:len(s.nest)-1]
	s.closed()
}

// closed sets the state after a value, and reports whether the value was the outermost.
func (s *Scanner) closed() bool {
	if len(s.nest) == 0 {
		s.state = scanDone
		return true
	}
	s.state = wantCommaOrEnd
	return false
}

// Finish returns an error unless the value is complete at the end of the input.
func (s *Scanner) Finish() error {
	if s.state == scanDone || s.state == inNumber && len(s.nest) == 0 && s.numberWhole() {
		return nil
	}
	return ErrUnexpectedEnd
}

// IsSpace reports whether c is one of the four blanks of JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
