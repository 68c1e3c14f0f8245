// Package search makes text findable by PostgreSQL's full-text search without asking PostgreSQL what a word is: its
// parser reads paths and host names as single words, takes a line of Chinese for one, and depends on the locale of
// the database. Here a word is a run of letters and digits, whatever the language, and each sign of a script without
// spaces is one of its own; what a query looks for is cut in the same way, and several words in a row must stand in a
// row in the text. So foo_bar/baz.go is found, and baz.go in it, and any piece of a Chinese sentence.
//
//	words.go    words, and the vector of a text
//	pieces.go   a long text in pieces
//	query.go    what a person types
//	snippet.go  a hit in its surroundings
package search

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxWordBytes bounds one word: what is longer, as a hash or a key may be, goes on as the next. PostgreSQL takes
	// 2046 bytes.
	maxWordBytes = 255
	// maxPositions and maxPosition are PostgreSQL's: of one word in one vector, and of its places.
	maxPositions = 255
	maxPosition  = 16383
)

// word is a run of a text that counts as one word.
type word struct {
	// text is folded: lower case, sign by sign.
	text string
	// from and to are its bytes in the text.
	from, to int
}

// alone are the scripts that put no spaces between words: each of their signs is a word.
var alone = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar,
}

// eachWord calls yield with every word of s, in order, until it says false.
func eachWord(s string, yield func(word) bool) {
	from, size := -1, 0
	var folded strings.Builder
	flush := func(to int) bool {
		if from < 0 {
			return true
		}
		w := word{folded.String(), from, to}
		folded.Reset()
		from, size = -1, 0
		return yield(w)
	}
	for i, r := range s {
		part, single := kindOf(r)
		if !part || single || size >= maxWordBytes-utf8.UTFMax {
			if !flush(i) {
				return
			}
		}
		if !part {
			continue
		}
		if from < 0 {
			from = i
		}
		n, _ := folded.WriteRune(fold(r))
		size += n
		if single && !flush(i+utf8.RuneLen(r)) {
			return
		}
	}
	flush(len(s))
}

// kindOf says whether a sign is part of a word, and whether it is one by itself.
func kindOf(r rune) (part, single bool) {
	switch {
	case r < utf8.RuneSelf:
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9', false
	case r == utf8.RuneError:
		return false, false
	case unicode.In(r, alone...):
		return unicode.IsLetter(r) || unicode.IsNumber(r), true
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r), false
}

// fold gives the sign that a search takes for the same, one for one.
func fold(r rune) rune { return unicode.ToLower(r) }

// words are the folded words of s.
func words(s string) []string {
	var out []string
	eachWord(s, func(w word) bool {
		out = append(out, w.text)
		return true
	})
	return out
}

// Vector gives a text as PostgreSQL reads a tsvector: each word with its places. A word that comes more often than
// PostgreSQL counts has its first places only.
func Vector(s string) string {
	places := map[string][]int{}
	var order []string
	at := 0
	eachWord(s, func(w word) bool {
		at++
		if at > maxPosition {
			return false
		}
		p, known := places[w.text]
		if !known {
			order = append(order, w.text)
		}
		if len(p) < maxPositions {
			places[w.text] = append(p, at)
		}
		return true
	})
	var b strings.Builder
	b.Grow(len(s) + 8*len(order))
	for _, w := range order {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("'" + w + "':") // letters and digits: nothing to escape
		for i, p := range places[w] {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Itoa(p))
		}
	}
	return b.String()
}
