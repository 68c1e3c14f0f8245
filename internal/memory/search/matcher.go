package search

import (
	"strings"
)

// Matcher searches a text, piece by piece, for the terms of a query as they were written, also inside of words.
type Matcher struct {
	query Query
	found map[string]bool
}

// Matcher returns a matcher for one text.
func (q Query) Matcher() *Matcher { return &Matcher{query: q, found: map[string]bool{}} }

// Add searches a piece, and reports whether it has one of the terms that must match.
func (m *Matcher) Add(text string) bool {
	folded, hit := strings.Map(fold, text), false
	for _, g := range m.query.Groups {
		for _, t := range g {
			if strings.Contains(folded, t.text) {
				m.found[t.text] = true
				hit = hit || !t.Not
			}
		}
	}
	return hit
}

// Matches reports whether the text that was added matches the query.
func (m *Matcher) Matches() bool {
	for _, g := range m.query.Groups {
		all := true
		for _, t := range g {
			all = all && m.found[t.text] != t.Not
		}
		if all {
			return true
		}
	}
	return false
}
