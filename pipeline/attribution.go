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
func misattributed(summary string, before, behind *sourceTexts) []string {
	quotes := attributed(summary)
	var wrong []string
	for i, said := range usersSaid(quotes, before, behind) {
		if !said {
			wrong = append(wrong, quotes[i])
		}
	}
	return wrong
}

// attributed returns the quotes that a summary attributes to the user, each once.
func attributed(summary string) []string {
	var quotes []string
	seen := map[string]bool{}
	add := func(quote string) {
		if quote = strings.TrimSpace(quote); !seen[quote] {
			seen[quote] = true
			quotes = append(quotes, quote)
		}
	}
	for _, rest := range saidForm.FindAllString(summary, -1) {
		at := 0
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
	for _, m := range saidCJK.FindAllStringSubmatch(summary, -1) {
		add(m[1])
	}
	for _, m := range saidLine.FindAllStringSubmatch(summary, -1) {
		add(strings.Trim(m[1], "\"“”«»「」*` "))
	}
	if section, ok := findUserSection(summary); ok {
		for _, m := range quotedForm.FindAllString(summary[section.body:section.end], -1) {
			add(unquote(m))
		}
	}
	return quotes
}

// usersSaid reports for each quote whether every piece of it, between its ellipses, is in one user message.
func usersSaid(quotes []string, sources ...*sourceTexts) []bool {
	said := make([]bool, len(quotes))
	pieces := forms{} // per quote
	need := make([]int, len(quotes))
	for i, quote := range quotes {
		for _, piece := range ellipsis.Split(quote, -1) {
			if piece = strings.Trim(flatten(piece), " .,;:!?\"'"); piece != "" {
				pieces.texts, pieces.of = append(pieces.texts, piece), append(pieces.of, i)
				need[i]++
			}
		}
		said[i] = need[i] == 0
	}
	look := newSearch(pieces.texts)
	for _, s := range sources {
		for _, user := range s.users {
			have := map[int]int{} // pieces by quote
			for piece, at := range look.places(user) {
				if quote := pieces.of[piece]; at >= 0 {
					have[quote]++
					said[quote] = said[quote] || have[quote] == need[quote]
				}
			}
		}
	}
	return said
}
