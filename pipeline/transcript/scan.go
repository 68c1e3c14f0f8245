package transcript

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxDepth bounds how deep arrays and objects may nest, as encoding/json does, so that whatever is read here
// can be handed to any user of encoding/json.
const MaxDepth = 10000

// A scanner walks over one JSON value without building anything. It can be fed in pieces, and keeps strictly
// to RFC 8259, but for bytes that are no UTF-8 inside strings: those are the writer's and pass through.
type scanner struct {
	state scanState
	// nest has one entry per open array or object: '[' or '{'.
	nest []byte
	// key says that the string being read is an object's key.
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

type numState uint8

const (
	numMinus numState = iota // a digit must follow
	numZero                  // '.', 'e' or the end
	numInt
	numDot // a digit must follow
	numFrac
	numE     // a sign or a digit must follow
	numESign // a digit must follow
	numExp
)

// errUnexpectedEnd is the reason for a value that stops before it is whole.
var errUnexpectedEnd = errors.New("it ends in the middle of a JSON value")

func (s *scanner) reset() {
	s.state, s.nest, s.key = wantValue, s.nest[:0], false
}

// feed reads b from the front. It gives how many bytes belong to the value and whether the value is whole. A
// number at the top is whole only when something follows it: see finish.
func (s *scanner) feed(b []byte) (n int, done bool, err error) {
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
				return i, false, fmt.Errorf("a control character (0x%02x) stands unescaped in a string", c)
			}
		case inEscape:
			switch c {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				s.state = inString
			case 'u':
				s.state, s.hexAt = inHex, 0
			default:
				return i, false, fmt.Errorf("there is no escape \\%c", c)
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
				return i, false, errors.New("a number is not whole")
			}
			if s.closed() {
				return i, true, nil
			}
			i-- // what ended the number is looked at again
		default:
			if isSpace(c) {
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

// skipPlain gives the index of the first byte at or after i that is a quote, a backslash or a control character,
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

// token takes one structural byte.
func (s *scanner) token(c byte) error {
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
func (s *scanner) begin(c byte) error {
	switch {
	case c == '"':
		s.state = inString
	case c == '{', c == '[':
		if len(s.nest) == MaxDepth {
			return fmt.Errorf("it nests deeper than %d levels", MaxDepth)
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

func (s *scanner) literal(word string) { s.state, s.lit, s.litAt = inLiteral, word, 1 }

func (s *scanner) pop() {
	s.nest = s.nest[:len(s.nest)-1]
	s.closed()
}

// closed moves on after a value, and says whether it was the outermost.
func (s *scanner) closed() bool {
	if len(s.nest) == 0 {
		s.state = scanDone
		return true
	}
	s.state = wantCommaOrEnd
	return false
}

// digit takes the next byte of a number, if it can be one.
func (s *scanner) digit(c byte) bool {
	isDigit := '0' <= c && c <= '9'
	switch s.number {
	case numMinus:
		switch {
		case c == '0':
			s.number = numZero
		case isDigit:
			s.number = numInt
		}
		return isDigit
	case numInt:
		if isDigit {
			return true
		}
		fallthrough
	case numZero:
		switch c {
		case '.':
			s.number = numDot
			return true
		case 'e', 'E':
			s.number = numE
			return true
		}
		return false
	case numDot:
		if isDigit {
			s.number = numFrac
		}
		return isDigit
	case numFrac:
		if c == 'e' || c == 'E' {
			s.number = numE
			return true
		}
		return isDigit
	case numE:
		if c == '+' || c == '-' {
			s.number = numESign
			return true
		}
		fallthrough
	case numESign:
		if isDigit {
			s.number = numExp
		}
		return isDigit
	}
	return isDigit // numExp
}

func (s *scanner) numberWhole() bool {
	switch s.number {
	case numZero, numInt, numFrac, numExp:
		return true
	}
	return false
}

// finish says whether the value is whole when nothing follows any more.
func (s *scanner) finish() error {
	if s.state == scanDone || s.state == inNumber && len(s.nest) == 0 && s.numberWhole() {
		return nil
	}
	return errUnexpectedEnd
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
