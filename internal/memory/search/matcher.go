package search

import (
	"strings"
)

// Matcher looks for a query's terms as they were typed, also inside of words, in a text that comes piece by piece.
type Matcher struct {
	query Query
	found map[string]bool
}

// Matcher begins a text.
func (q Query) Matcher() *Matcher { return &Matcher{query: q, found: map[string]bool{}} }

// Add looks at a piece, and says whether it holds one of the terms that are to be there.
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

// Matches says whether what was added is what the query looks for.
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
