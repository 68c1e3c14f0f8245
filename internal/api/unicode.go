package api

import (
	"unicode/utf8"
)

// invalidUTF8 returns the index of the first byte that is not UTF-8, -1 if there is none.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// loneSurrogate reports whether a JSON string has a \u escape of half a surrogate pair.
func loneSurrogate(data []byte) bool {
	for i := 0; i+5 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if data[i+1] != 'u' {
			i++
			continue
		}
		switch half := surrogate(data[i:]); {
		case half == high && surrogate(data[min(i+6, len(data)):]) == low:
			i += 11
		case half != 0:
			return true
		default:
			i += 5
		}
	}
	return false
}

const (
	high = 1
	low  = 2
)

// surrogate returns which half of a pair the escape at the start of b is, 0 for neither.
func surrogate(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || (b[2] != 'd' && b[2] != 'D') {
		return 0
	}
	switch b[3] {
	case '8', '9', 'a', 'b', 'A', 'B':
		return high
	case 'c', 'd', 'e', 'f', 'C', 'D', 'E', 'F':
		return low
	}
	return 0
}
