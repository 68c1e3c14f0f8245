package pipeline

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Which sentences of the user set a limit: "never push", "only in src/", "you must ask me first". The same words also
// occur in sentences that describe what happens ("it only fails on CI"). Therefore words that oblige in any sentence
// are distinguished from those that limit only if their clause reports nothing. A limit that is missed is lost to the
// agent, and one too many costs a line: in doubt a sentence is a limit.

var (
	// quotedCode is a name in a sentence, not part of its language; a path is one too.
	quotedCode = regexp.MustCompile("`[^`\n]*`|[^\\s/\\\\]*[/\\\\]\\S*")
	// pastedLine matches the beginning of a line of a program, a table, a log or another person's letter.
	pastedLine = regexp.MustCompile(`^(?:\||\d+\s*[|│]|[{}\[\]>]|"[` +
		`^"\n]*"\s*:|//|/\*|\*/|#include|\w*(?:Error|Exception):|(?:error|warning|fatal):|Traceback)`)
	spacedDash = regexp.MustCompile(`\s[-–—]+\s`)
)

// setsLimit reports whether a sentence of the user sets a limit. A question does not.
func setsLimit(sentence string) bool {
	if strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "？") || pastedLine.MatchString(sentence) {
		return false
	}
	if strings.ContainsAny(sentence, "`/\\") {
		sentence = quotedCode.ReplaceAllString(sentence, "x")
	}
	if strings.ContainsAny(sentence, "-–—") {
		sentence = spacedDash.ReplaceAllString(sentence, ", ")
	}
	before := beginning
	for _, text := range strings.FieldsFunc(sentence, endsClause) {
		c := newWording(text)
		switch {
		case c.obliges() || c.limits(before):
			return true
		case c.narrates():
			before = telling
		case len(c.words) > 0:
			before = ordering
		}
	}
	return false
}

// mood is what the clause before does.
type mood int

const (
	beginning mood = iota // at the start
	telling
	ordering
)

func endsClause(r rune) bool { return strings.ContainsRune(",;:()—–，；：、\n", r) }

// wording is a clause of a sentence, in lower case.
type wording struct {
	// all are all words without the phrases in aside, words are those without conjunctions and fillers at the start.
	all, words []string
	// text is the clause for languages without spaces, empty if it is all ASCII.
	text string
}

func newWording(text string) wording {
	var c wording
	words := foldWords(text)
	for i := 0; i < len(words); {
		if n := aside.at(words, i); n > 0 {
			c.all = append(c.all, "…")
			i += n
			continue
		}
		c.all = append(c.all, words[i])
		i++
	}
	c.words = c.all
	for len(c.words) > 0 && (conjunctions.at(c.words, 0) > 0 || isNumber(c.words[0])) {
		c.words = c.words[max(conjunctions.at(c.words, 0), 1):]
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		c.text = strings.Join(words, " ")
		for _, s := range asideStems {
			c.text = strings.ReplaceAll(c.text, s, "…")
		}
	}
	return c
}

// isNumber reports whether a word is a number, such as that of a list.
func isNumber(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}

// foldWords returns the words of a text in lower case. Apostrophes and hyphens are part of their word, except for
// French elisions.
func foldWords(s string) []string {
	words := strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(s), "’", "'"), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '\'' && r != '-' && r != '_'
	})
	var out []string
	for _, w := range words {
		w = strings.Trim(w, "'")
		if len(w) > 2 && w[1] == '\'' && strings.IndexByte("nljcdst", w[0]) >= 0 {
			out = append(out, w[:1]+"e")
			w = w[2:]
		}
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// obliges reports whether a word in the clause sets a limit whatever the rest of the clause.
func (c wording) obliges() bool {
	return obliging.within(c.all) || addressing.at(c.words, 0) > 0 && c.addresses() || c.text != "" &&
		hasAny(c.text, obligingStems)
}

// addresses reports whether a clause that begins with "you" is an order: it may also be information for the agent.
func (c wording) addresses() bool {
	n := addressing.at(c.words, 0)
	return happenings.at(c.words, n)+minds.at(c.words, n) == 0
}

// limits reports whether a word in the clause limits something.
func (c wording) limits(before mood) bool {
	if c.text != "" && hasAny(c.text, limitingStems) && !hasAny(c.text, happeningStems) &&
		!beginsWithAny(c.text, pronounStems) {
		return true
	}
	if len(c.words) < 2 {
		return before == ordering && adverbs.at(c.words, 0) > 0 // "No" is an answer
	}
	if leave.at(c.words, 0) > 0 && leaving.within(c.words) {
		return true
	}
	for i := range c.words {
		if n := max(limiting.at(c.words, i), adverbs.at(c.words, i)); n > 0 && !c.reports(i, n, before) {
			return true
		}
	}
	return false
}

// reports reports whether the limiting word of n words at i is part of a report.
func (c wording) reports(i, n int, before mood) bool {
	words, after := c.words, i+n
	adverb := adverbs.at(words, i) > 0
	happens := happenings.at(words, after) > 0 || bare.at(words, after) > 0 && i > 0 || minds.at(words, after) > 0
	switch {
	case pronouns.at(words, 0) > 0:
		return !c.wants() && (norms.at(words, 0) == 0 || happens)
	case subordinate.at(words, 0) > 0:
		return i < 2 || running.at(words, i) == 0 || happens || pronouns.at(words, i-1) > 0
	case happens, i > 0 && auxiliaries.at(words, i-1)+happenings.at(words, i-1) > 0, germanHappenings.within(words):
		return true
	case articles.at(words, 0) > 0:
		return absolute.at(words, i) == 0 && !c.germanOrder()
	case i > 0:
		return words[i] == "not" && after < len(words) && strings.HasSuffix(words[after], "ing")
	case adverb:
		return before == beginning && times.at(words, after) > 0 || before == telling && times.at(words, after)+
			places.at(words, after) > 0
	case words[i] == "no" && absences.within(words[after:]):
		return true
	}
	return before == telling && trailing.at(words, i) > 0
}

// wants reports whether the speaker wishes for something rather than reporting it.
func (c wording) wants() bool {
	for i := 1; i < min(len(c.words), 5); i++ {
		if wanting.at(c.words, i) > 0 || i == 1 && wanting.at(c.words, 0) > 0 {
			negated := limiting.at(c.words, i-1)+limiting.at(c.words, i-2) > 0
			return !(negated && strings.HasPrefix(c.words[i], "need"))
		}
	}
	return false
}

// germanOrder reports whether the clause is an order with its object first and an infinitive at its end.
func (c wording) germanOrder() bool {
	last := c.words[len(c.words)-1]
	return germanArticles.at(c.words, 0) > 0 && len(last) > 4 && !germanModals.within(c.words) &&
		(strings.HasSuffix(last, "en") || strings.HasSuffix(last, "ern") || strings.HasSuffix(last, "eln"))
}

// narrates reports whether the clause reports something.
func (c wording) narrates() bool {
	return (pronouns.at(c.words, 0) > 0 || articles.at(c.words, 0) > 0) && !c.wants() ||
		happenings.at(c.words, 1)+bare.at(c.words, 1) > 0 || adverbs.at(c.words, 1) > 0 &&
		happenings.at(c.words, 2) > 0 ||
		germanHappenings.within(c.words)
}
