package search

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxQueryBytes bounds a query, MaxTerms what it may consist of.
const (
	MaxQueryBytes = 1024
	MaxTerms      = 32
)

// Term is one thing that a query looks for.
type Term struct {
	// words stand in a row in the text.
	words []string
	// text is what was typed, folded.
	text string
	// Not says that it must be absent.
	Not bool
}

// Query is what a person looks for: any of its groups, of a group every term.
type Query struct {
	Groups [][]Term
}

// ErrQuery is what every error of Parse is.
var ErrQuery = errors.New("the query cannot be searched for")

// Parse reads a query in the syntax of web searches: words that must all be there, "words in a row" in double quotes,
// OR between alternatives, a - before what must not be there. What a word has of other signs, as a path or a number
// has, is looked for as it stands. Any other input is taken as words.
func Parse(s string) (Query, error) {
	var q Query
	if len(s) > MaxQueryBytes {
		return q, fmt.Errorf("%w: it has %d bytes, at most %d", ErrQuery, len(s), MaxQueryBytes)
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
			continue // signs alone: there is no word to look for
		}
		if len(t.text) > overlapBytes {
			return q, fmt.Errorf("%w: %q… is longer than %d bytes: look for a part of it", ErrQuery, clip(t.text, 40),
				overlapBytes)
		}
		if terms++; terms > MaxTerms {
			return q, fmt.Errorf("%w: it looks for more than %d things at once", ErrQuery, MaxTerms)
		}
		positive = positive || !t.Not
		group = append(group, t)
	}
	if len(group) > 0 {
		q.Groups = append(q.Groups, group)
	}
	if !positive {
		return q, fmt.Errorf("%w: give at least one word that is to be there", ErrQuery)
	}
	for _, g := range q.Groups {
		if !anyPositive(g) {
			return q, fmt.Errorf("%w: what stands beside OR needs a word that is to be there", ErrQuery)
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

// item is a word or a quoted text of a query.
type item struct {
	text        string
	quoted, not bool
}

func (i item) or() bool { return !i.quoted && !i.not && strings.EqualFold(i.text, "or") }

// next takes the first item off; an empty one at the end.
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

// TSQuery is the term as PostgreSQL reads a tsquery.
func (t Term) TSQuery() string { return "'" + strings.Join(t.words, "' <-> '") + "'" }

// Any is a tsquery for texts that hold any of the terms: those that must be absent too when all is set.
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
