// Package redact takes credentials out of texts that are sent to a model. It finds forms, not meanings: what the rules
// of gitleaks find, forms of our own, and values whose name says that they are secret, in any of the usual notations
// and in several languages. A secret that looks like any other word and has no such name stays.
//
//	redact.go   texts
//	json.go     the strings of a JSON document, with their names
//	rules.go    rules: a pattern, and the keywords without which it is not tried
//	gitleaks.go the rules of gitleaks
//	forms.go    rules of our own
//	scan.go     names and their values
//	names.go    which names say that a value is secret
//	values.go   where a value ends, and which values are not secrets
//
// The cost is linear in the size of the text, and every function stops soon after its context ends.
package redact

import (
	"context"
	"slices"
	"strings"
	"unicode"
)

// Mark is what replaces a secret.
const Mark = "[redacted]"

// markStem is found in a span that has the mark in it, also where its end was taken for punctuation.
const markStem = "[redacted"

// span is the place of a secret in a text, in bytes.
type span struct {
	from, to int
	// named: the value is secret only by the name beside it, and may be any word.
	named bool
}

// Redactor takes credentials out of texts: those that are recognized anywhere, and those that it was made to know,
// wherever they occur. A model that has seen a secret in a header may repeat it without. The zero Redactor knows none.
type Redactor struct {
	known *strings.Replacer // nil for none
}

// New returns a redactor that knows the secrets in some texts. The cost is that of redacting all of them. A value that
// is secret only by its name is known if it has letters and digits, at least 10 in all.
func New(ctx context.Context, texts []string) (Redactor, error) {
	var pairs []string
	seen := map[string]bool{}
	for _, text := range texts {
		spans, err := find(ctx, text)
		if err != nil {
			return Redactor{}, err
		}
		for _, f := range spans {
			if secret := text[f.from:f.to]; distinct(secret) && !seen[secret] {
				seen[secret] = true
				pairs = append(pairs, secret, Mark)
			}
		}
	}
	if pairs == nil {
		return Redactor{}, nil
	}
	return Redactor{known: strings.NewReplacer(pairs...)}, nil
}

// Text returns a text with Mark in the place of every secret. Redacting the result again changes nothing. The error is
// that of ctx.
func (r Redactor) Text(ctx context.Context, s string) (string, error) {
	if r.known != nil { // first: a name may otherwise hide a part of it
		s = r.known.Replace(s)
	}
	spans, err := find(ctx, s)
	if err != nil {
		return "", err
	}
	return cut(s, spans), nil
}

// cut replaces spans, which are in order and do not overlap.
func cut(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	var out strings.Builder
	copied := 0
	for _, f := range spans {
		out.WriteString(s[copied:f.from])
		out.WriteString(Mark)
		copied = f.to
	}
	out.WriteString(s[copied:])
	return out.String()
}

// find returns the places of the secrets in a text, in order, none of them touching another.
func find(ctx context.Context, s string) ([]span, error) {
	spans, err := matches(ctx, s)
	if err != nil {
		return nil, err
	}
	named, err := scan(ctx, s)
	if err != nil {
		return nil, err
	}
	spans = append(spans, named...)
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var merged []span
	for _, f := range spans {
		if f.from >= f.to || strings.Contains(s[f.from:f.to], markStem) {
			continue
		}
		if n := len(merged); n > 0 && f.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, f.to)
			continue
		}
		merged = append(merged, f)
	}
	return merged, nil
}

// distinct reports whether a value is neither a word nor an expression of a program, so that it can be recognized
// alone.
func distinct(value string) bool {
	const least = 10
	return len(value) >= least && strings.ContainsFunc(value, unicode.IsDigit) &&
		strings.ContainsFunc(value, unicode.IsLetter) && !strings.ContainsAny(value, "()[]{}$<>\n")
}
