package search

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The mark of hits in a snippet, and how much of the text it shows before the first hit and in all, in bytes.
const (
	hitMark       = "**"
	snippetBefore = 80
	snippetBytes  = 320
)

// span is a range of bytes of a text.
type span struct{ from, to int }

// Snippet returns a few words of a text around the first hit of the query, on one line, with hits between two
// asterisks and … where the text continues. at is the index of the first hit's first byte; without a hit it is 0 and
// the snippet is the beginning of the text.
func (q Query) Snippet(text string) (snippet string, at int) {
	spans := q.spans(text)
	if len(spans) > 0 {
		at = spans[0].from
	}
	from := 0
	if at > snippetBefore {
		from = runeStart(text, at-snippetBefore)
	}
	to := len(text)
	if from+snippetBytes < to {
		to = runeStart(text, from+snippetBytes)
	}
	if len(spans) > 0 && spans[0].to > to {
		spans[0].to = to
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	done := from
	for _, s := range spans {
		if s.to > to {
			break
		}
		b.WriteString(oneLine(text[done:s.from]) + hitMark + oneLine(text[s.from:s.to]) + hitMark)
		done = s.to
	}
	b.WriteString(oneLine(text[done:to]))
	if to < len(text) {
		b.WriteString("…")
	}
	return strings.TrimSpace(b.String()), at
}

// oneLine returns a text without line breaks and control characters, with one space for adjacent white space.
func oneLine(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	if space {
		b.WriteByte(' ')
	}
	return b.String()
}

// spans returns the matches of the terms that must match: as words, or if there are none, as written. They are in order
// and do not overlap.
func (q Query) spans(text string) []span {
	var list []word
	eachWord(text, func(w word) bool { list = append(list, w); return true })
	var found []span
	each := func(do func(t Term)) {
		for _, g := range q.Groups {
			for _, t := range g {
				if !t.Not {
					do(t)
				}
			}
		}
	}
	each(func(t Term) {
		for i := 0; i+len(t.words) <= len(list); i++ {
			if inRow(list[i:], t.words) {
				found = append(found, span{list[i].from, list[i+len(t.words)-1].to})
			}
		}
	})
	if len(found) == 0 {
		folded, places := foldPlaces(text)
		each(func(t Term) {
			for at := 0; t.text != ""; {
				i := strings.Index(folded[at:], t.text)
				if i < 0 {
					break
				}
				end := at + i + len(t.text)
				found = append(found, span{places[at+i], places[end]})
				at = end
			}
		})
	}
	sort.Slice(found, func(i, j int) bool {
		if found[i].from != found[j].from {
			return found[i].from < found[j].from
		}
		return found[i].to > found[j].to
	})
	kept := found[:0]
	for _, s := range found {
		if len(kept) == 0 || s.from >= kept[len(kept)-1].to {
			kept = append(kept, s)
		}
	}
	return kept
}

func inRow(list []word, words []string) bool {
	for i, w := range words {
		if list[i].text != w {
			return false
		}
	}
	return true
}

// foldPlaces folds a text and returns for each byte of the result, and for its end, the byte of the text that it comes
// from.
func foldPlaces(s string) (folded string, places []int) {
	var b strings.Builder
	places = make([]int, 0, len(s)+1)
	for i, r := range s {
		n, _ := b.WriteRune(fold(r))
		if r == utf8.RuneError { // may be a single byte that is none
			n = utf8.RuneLen(r)
		}
		for range n {
			places = append(places, i)
		}
	}
	return b.String(), append(places, len(s))
}
