package search

import (
	"strings"
	"unicode/utf8"
)

const (
	// pieceBytes is the size of a piece: small enough that PostgreSQL counts every position of a character that is
	// frequent in Chinese, and that a hit is near its snippet.
	pieceBytes = 8 << 10
	// overlapBytes is how much of a piece the next one repeats, so that a match across the cut is found: the
	// maximum size of a phrase.
	overlapBytes = 256
)

// Piece is a part of a text that is indexed by itself.
type Piece struct {
	// Start is the index of its first byte in the text.
	Start int
	Text  string
}

// Pieces divides a text into overlapping pieces of a few kilobytes. An empty text has none.
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

// between returns the last index at or before at that is not within a word, unless the word is very long: half a word
// is not a word of the text.
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

// joined reports whether two adjacent characters belong to one word.
func joined(before, after rune) bool {
	a, single := kindOf(before)
	b, alone := kindOf(after)
	return a && b && !single && !alone
}

// runeStart returns the last index at or before at where a character begins. In invalid UTF-8 any byte may begin one.
func runeStart(s string, at int) int {
	for i := at; i > at-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return at
}
