package search

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxQueryBytes bounds the size of a query, MaxTerms the number of its terms.
const (
	MaxQueryBytes = 1024
	MaxTerms      = 32
)

// Term is a word or phrase of a query.
type Term struct {
	// words are the words of the term, in a row.
	words []string
	// text is the term as it was written, folded.
	text string
	// Not says that the term must not match.
	Not bool
}

// Query matches if any of its groups matches. A group matches if all of its terms do.
type Query struct {
	Groups [][]Term
}

// ErrQuery is every error of Parse.
var ErrQuery = errors.New("invalid query")

// Parse reads a query in the syntax of web searches: words that must all match, "a phrase" in double quotes, OR
// between alternatives, a - before what must not match. A word with other characters, such as a path or a number, is
// a phrase. Any other input is read as words.
func Parse(s string) (Query, error) {
	var q Query
	if len(s) > MaxQueryBytes {
		return q, fmt.Errorf("%w: it has %d bytes, the maximum is %d", ErrQuery, len(s), MaxQueryBytes)
	}
	var group []Term
	terms, positive := 0, false
	for rest := strings.ToValidUTF8(s, " "); ; {
		var item item
		item, rest = next(rest)
		if item.text == "" {
			break
		}
		if item.or() {
			if len(group) > 0 {
				q.Groups, group = append(q.Groups, group), nil
			}
			continue
		}
		t := Term{words: words(item.text), text: foldText(item.text), Not: item.not}
		if len(t.words) == 0 {
			continue // no letters and digits: there is no word
		}
		if len(t.text) > overlapBytes {
			return q, fmt.Errorf("%w: %q… is longer than %d bytes: search for a part of it", ErrQuery, clip(t.text, 40),
				overlapBytes)
		}
		if terms++; terms > MaxTerms {
			return q, fmt.Errorf("%w: it has more than %d terms", ErrQuery, MaxTerms)
		}
		positive = positive || !t.Not
		group = append(group, t)
	}
	if len(group) > 0 {
		q.Groups = append(q.Groups, group)
	}
	if !positive {
		return q, fmt.Errorf("%w: give at least one word that must match", ErrQuery)
	}
	for _, g := range q.Groups {
		if !anyPositive(g) {
			return q, fmt.Errorf("%w: both sides of OR need a word that must match", ErrQuery)
		}
	}
	return q, nil
}

func anyPositive(g []Term) bool {
	for _, t := range g {
		if !t.Not {
			return true
		}
	}
	return false
}

// item is a word or a quoted phrase of a query.
type item struct {
	text        string
	quoted, not bool
}

func (i item) or() bool { return !i.quoted && !i.not && strings.EqualFold(i.text, "or") }

// next returns the first item and the rest; at the end an empty item.
func next(s string) (item, string) {
	for {
		var it item
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if rest, ok := strings.CutPrefix(s, "-"); ok && rest != "" && !strings.HasPrefix(rest, "-") {
			if r, _ := utf8.DecodeRuneInString(rest); r == '"' || !unicode.IsSpace(r) {
				it.not, s = true, rest
			}
		}
		if rest, ok := strings.CutPrefix(s, `"`); ok {
			it.quoted = true
			it.text, s, _ = strings.Cut(rest, `"`)
		} else {
			end := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(s)
			}
			it.text, s = s[:end], s[end:]
		}
		if it.text != "" || s == "" {
			return it, s
		}
	}
}

func foldText(s string) string { return strings.Map(fold, strings.TrimSpace(s)) }

func clip(s string, n int) string {
	if len(s) > n {
		return s[:runeStart(s, n)]
	}
	return s
}

// TSQuery returns the term as a PostgreSQL tsquery.
func (t Term) TSQuery() string { return "'" + strings.Join(t.words, "' <-> '") + "'" }

// Any returns a tsquery for texts with any of the terms. With all it includes the terms that must not match.
func (q Query) Any(all bool) string {
	var list []string
	for _, g := range q.Groups {
		for _, t := range g {
			if all || !t.Not {
				list = append(list, "("+t.TSQuery()+")")
			}
		}
	}
	return strings.Join(list, " | ")
}
