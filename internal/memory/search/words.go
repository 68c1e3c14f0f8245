// Package search prepares text for PostgreSQL's full-text search without PostgreSQL's own parser. That parser
// reads paths, host names and a line of Chinese as single words, and depends on the locale of
// the database. Here a word is a run of letters and digits in any language, and each character of a script without
// spaces is a word. A query is divided into words in the same way, and a phrase matches the same words in a
// row in the text. So a search finds foo_bar/baz.go, baz.go in it, and any part of a Chinese sentence.
//
//	words.go    words, and the vector of a text
//	pieces.go   a long text in pieces
//	query.go    queries as people write them
//	matcher.go  matches inside of words
//	snippet.go  a hit with the text around it
package search

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxWordBytes bounds one word: a longer run, such as a hash or a key, is several words. PostgreSQL allows
	// 2046 bytes.
	maxWordBytes = 255
	// maxPositions is PostgreSQL's maximum number of positions of a word in a vector, maxPosition the highest position.
	maxPositions = 255
	maxPosition  = 16383
)

// word is a word of a text.
type word struct {
	// text is in lower case, character by character.
	text string
	// from and to are its bytes in the text.
	from, to int
}

// alone are the scripts without spaces between words: each of their characters is a word.
var alone = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar,
}

// eachWord calls yield with every word of s, in order, until it returns false.
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

// kindOf reports whether a character is part of a word, and whether it is a word by itself.
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

// fold returns a character in lower case, which a search treats as the same.
func fold(r rune) rune { return unicode.ToLower(r) }

// words returns the folded words of s.
func words(s string) []string {
	var out []string
	eachWord(s, func(w word) bool {
		out = append(out, w.text)
		return true
	})
	return out
}

// Vector returns a text as a PostgreSQL tsvector: each word with its positions. A word that occurs more often than
// PostgreSQL counts has only its first positions.
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
