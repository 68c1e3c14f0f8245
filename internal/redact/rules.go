package redact

import (
	"context"
	"regexp"
	"slices"
	"sync"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
)

// rule is a pattern that is tried only around one of its keywords.
type rule struct {
	keywords []string // lower case
	pattern  *regexp.Regexp
	// group holds the secret; 0: the first group that matched, or the whole match without groups.
	group int
	// accept refuses a match that is not a secret; nil accepts all.
	accept func(match, secret string) bool
	// before and after are how far a match reaches from the start of a keyword, in bytes. A match that reaches the end
	// is looked for again with more room.
	before, after int
}

const (
	// maxWindow bounds the text that a pattern is tried on at once, in bytes, and with it the time between two looks at
	// the context.
	maxWindow = 64 << 10
	// scanChunk is how many bytes are searched for keywords between two looks at the context.
	scanChunk = 1 << 20
)

// ruleSet is all rules with the automaton that finds their keywords.
type ruleSet struct {
	rules []rule
	trie  *ahocorasick.Trie
	// of has the rules of each keyword of the trie.
	of [][]int
	// longest is the size of the longest keyword.
	longest int
}

var loadRules = sync.OnceValue(func() ruleSet {
	set := ruleSet{rules: append(gitleaksRules(), ownRules()...)}
	place := map[string]int{}
	var words []string
	for i, r := range set.rules {
		for _, k := range r.keywords {
			at, known := place[k]
			if !known {
				at = len(words)
				place[k], words, set.of = at, append(words, k), append(set.of, nil)
				set.longest = max(set.longest, len(k))
			}
			set.of[at] = append(set.of[at], i)
		}
	}
	set.trie = ahocorasick.NewTrieBuilder().AddStrings(words).Build()
	return set
})

// window is a part of a text around keywords.
type window struct{ from, to int }

// matches returns what the rules find.
func matches(ctx context.Context, s string) ([]span, error) {
	set := loadRules()
	windows, err := set.windows(ctx, s)
	if err != nil {
		return nil, err
	}
	var spans []span
	for i := range set.rules {
		for _, w := range windows[i] {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			spans = set.rules[i].search(s, w, spans)
		}
	}
	return spans, nil
}

// windows returns for each rule where to try it. Windows of a rule overlap by no more than its reach.
func (set *ruleSet) windows(ctx context.Context, s string) ([][]window, error) {
	windows := make([][]window, len(set.rules))
	lower := make([]byte, 0, min(len(s), scanChunk)+set.longest)
	for start := 0; start < len(s); start += scanChunk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// A keyword across two chunks is found in the first one.
		lower = appendLower(lower[:0], s[start:min(len(s), start+scanChunk+set.longest-1)])
		set.trie.Walk(lower, func(end, n, pattern int64) bool {
			at := start + int(end-n) + 1
			for _, i := range set.of[pattern] {
				r := &set.rules[i]
				from, to := max(0, at-r.before), min(len(s), at+r.after)
				list := windows[i]
				if last := len(list) - 1; last >= 0 && from <= list[last].to && to-list[last].from <= maxWindow {
					list[last].to = max(list[last].to, to)
				} else {
					windows[i] = append(list, window{from, to})
				}
			}
			return true
		})
	}
	return windows, nil
}

// appendLower appends a text with its ASCII letters in lower case, so that places stay the same.
func appendLower(to []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

// search adds what the rule finds in a window.
func (r *rule) search(s string, w window, spans []span) []span {
	for range 2 {
		text := s[w.from:w.to]
		cutOff := false
		found := len(spans)
		for _, m := range r.pattern.FindAllStringSubmatchIndex(text, -1) {
			from, to := r.secret(m)
			if r.accept == nil || r.accept(text[m[0]:m[1]], text[from:to]) {
				spans = append(spans, span{from: w.from + from, to: w.from + to})
			}
			cutOff = cutOff || m[1] == len(text) && w.to < len(s)
		}
		if !cutOff {
			break
		}
		w.to = min(len(s), w.to+maxWindow)
		spans = slices.Delete(spans, found, len(spans))
	}
	return spans
}

// secret returns the place of the secret in a match.
func (r *rule) secret(m []int) (from, to int) {
	if r.group > 0 && m[2*r.group] >= 0 {
		return m[2*r.group], m[2*r.group+1]
	}
	for g := 2; g < len(m); g += 2 {
		if m[g] >= 0 && m[g] < m[g+1] {
			return m[g], m[g+1]
		}
	}
	return m[0], m[1]
}
