package pipeline

import (
	"regexp"
	"strings"
)

var (
	saidForm = regexp.MustCompile(`(?i)\busers?(?:'s|’s|')?\b[^\n]*`)
	quote    = regexp.MustCompile(`"([^"\n]{3,600})"|“([^”\n]{3,600})”|«([^»\n]{3,600})»`)
	clause   = regexp.MustCompile(`(?i)[.!?;]\s|\b(assistant|agent|model|tool|error|output)\b`)
	saidCJK  = regexp.MustCompile(`(?:用户|使用者|ユーザー|사용자)[^"“「『\n]{0,40}["“「『]([^"”」』\n]{2,600})["”」』]`)
	saidLine = regexp.MustCompile(
		`(?im)^[\s>*-]*(?:\*\*)?(?:user|human|用户|ユーザー|사용자|usuario|usuário|utilisateur|benutzer|nutzer|utente|` +
			`пользователь)(?:\*\*)?\s*[:：](?:\*\*)?\s*(\S.*)$`)
	ellipsis = regexp.MustCompile(`\.\.\.|…|\[[^\]]*\]`)
)

// misattributed returns the quotes that a summary attributes to the user and that no user message contains.
func misattributed(w *work, summary string, before, behind *sourceTexts) []string {
	quotes := attributed(w, summary)
	var wrong []string
	for i, said := range usersSaid(w, quotes, before, behind) {
		if !said {
			wrong = append(wrong, quotes[i])
		}
	}
	return wrong
}

// attributed returns the quotes that a summary attributes to the user, each once, at most maxQuotes.
func attributed(w *work, summary string) []string {
	var quotes []string
	seen := map[string]bool{}
	add := func(quote string) {
		if quote = strings.TrimSpace(quote); !seen[quote] && len(quotes) < maxQuotes {
			seen[quote] = true
			quotes = append(quotes, quote)
		}
	}
	for _, piece := range w.pieces(summary) {
		for _, rest := range saidForm.FindAllString(piece, -1) {
			eachAttributed(w, rest, add)
		}
	}
	for _, m := range findAll(saidCJK, w.pieces(summary)) {
		add(summary[m[2]:m[3]])
	}
	for _, m := range findAll(saidLine, w.pieces(summary)) {
		add(strings.Trim(summary[m[2]:m[3]], "\"“”«»「」*` "))
	}
	if section, ok := findUserSection(w, summary); ok {
		body := summary[section.body:section.end]
		for _, m := range findAll(quotedForm, w.pieces(body)) {
			add(unquote(body[m[0]:m[1]]))
		}
	}
	return quotes
}

// eachAttributed finds the quotes in a line behind a mention of the user.
func eachAttributed(w *work, rest string, add func(quote string)) {
	at := 0
	w.spend(len(rest))
	for _, m := range quote.FindAllStringSubmatchIndex(rest, -1) {
		if clause.MatchString(rest[at:m[0]]) {
			break // the sentence has ended, or is now about somebody else
		}
		q := strings.Trim(rest[m[0]:m[1]], "\"“”«»")
		if strings.Contains(q, " ") || !strings.ContainsAny(q, "./_-()") {
			add(q) // not the name of a file or a function
		}
		at = m[1]
	}
}

// usersSaid reports for each quote whether every piece of it, between its ellipses, is in one user message.
func usersSaid(w *work, quotes []string, sources ...*sourceTexts) []bool {
	said := make([]bool, len(quotes))
	var pieces []string
	of := map[string][]int{} // the quotes with a piece, as often as they have it
	need := make([]int, len(quotes))
	for i, quote := range quotes {
		w.spend(len(quote))
		for _, piece := range ellipsis.Split(quote, -1) {
			if piece = strings.Trim(flatten(w, piece), " .,;:!?\"'"); piece != "" {
				if of[piece] == nil {
					pieces = append(pieces, piece)
				}
				of[piece] = append(of[piece], i)
				need[i]++
			}
		}
		said[i] = need[i] == 0
	}
	if len(pieces) == 0 {
		return said
	}
	look := newFinder(w, pieces)
	seen := make([]int32, len(look.states))
	have, in := make([]int, len(quotes)), make([]int32, len(quotes)) // pieces of each quote, in which message
	run := int32(0)
	for _, s := range sources {
		for _, user := range s.users {
			run++
			w.spend(0)
			look.first(w, user, seen, run, func(piece int32, _ int) {
				for _, quote := range of[pieces[piece]] {
					if in[quote] != run {
						in[quote], have[quote] = run, 0
					}
					have[quote]++
					said[quote] = said[quote] || have[quote] == need[quote]
				}
			})
		}
	}
	return said
}
