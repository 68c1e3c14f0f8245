package search

import (
	"strings"
	"unicode/utf8"
)

const (
	// pieceBytes is the size of a piece: small enough that PostgreSQL counts every place of a sign that is frequent in
	// Chinese, and that a hit is near what is shown of it.
	pieceBytes = 8 << 10
	// overlapBytes is how much of a piece the next one begins with, so that what stands across the cut is found: the
	// most that a query may look for in a row.
	overlapBytes = 256
)

// Piece is a part of a text that is searched by itself.
type Piece struct {
	// Start is its first byte in the text.
	Start int
	Text  string
}

// Pieces cuts a text into pieces of a few kilobytes that overlap. An empty text has none.
func Pieces(s string) []Piece {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	var out []Piece
	for start := 0; ; {
		if len(s)-start <= pieceBytes+overlapBytes {
			return append(out, Piece{start, s[start:]})
		}
		end := between(s, start+pieceBytes)
		out = append(out, Piece{start, s[start:end]})
		start = between(s, end-overlapBytes)
	}
}

// between is the last place at or before at where no word is cut in two, unless it is a very long one: half a word is
// none that anybody said.
func between(s string, at int) int {
	at = runeStart(s, at)
	for i := at; i > at-maxWordBytes && i > 0; {
		after, _ := utf8.DecodeRuneInString(s[i:])
		before, size := utf8.DecodeLastRuneInString(s[:i])
		if !joined(before, after) {
			return i
		}
		i -= size
	}
	return at
}

// joined says whether two signs in a row belong to one word.
func joined(before, after rune) bool {
	a, single := kindOf(before)
	b, alone := kindOf(after)
	return a && b && !single && !alone
}

// runeStart is the last place at or before at where a sign begins. In what is no UTF-8 any byte may begin one.
func runeStart(s string, at int) int {
	for i := at; i > at-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return at
}
