package pipeline

import (
	"regexp"
	"strings"
	"unicode"
)

const extensions = `go|py|ts|tsx|js|jsx|mjs|cjs|java|kt|rs|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|sh|bash|zsh|ps1|` +
	`sql|md|txt|rst|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|lock|log|csv|tsv|xml|html|css|scss|vue|svelte|proto|` +
	`tf|mod|sum|ipynb|pdf|png|jpg|svg|gz|zip|tar|diff|patch|gradle|lua|ex|exs|erl|hs|ml|dart|r|jl|pl|xlsx|docx`

// The forms of identifiers: what a summary must not get wrong, and a program can check.
var (
	urlForm  = regexp.MustCompile(`https?://[^\s<>"'` + "`" + `()\[\]{}「」『』，。、]+`)
	pathForm = regexp.MustCompile(
		`(?:[A-Za-z]:\\|~/|\.{1,2}/|/)?(?:[\w.@+-]+[/\\])+[\w.@+-]+|(?:~/|\.{1,2}/|/)[\w.@+-]+`)
	fileForm = regexp.MustCompile(`\b[\w-]+(?:\.[\w-]+)*\.(?:` + extensions + `)\b`)
	hashForm = regexp.MustCompile(
		`\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{7,64})\b`)
	unitForm = regexp.MustCompile(`(?i)(?:[$€£]\s?)?\b\d(?:[\d.,` +
		`_]*\d)?\s?(?:ms|µs|ns|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|[` +
		`kmgt]i?b|bytes?|%|px|rpm|rps|qps|tokens?|rows?|lines?|requests?|retries|errors?|tests?|files?|usd|eur|` +
		`dollars?|euros?|€|°c)(?:\b|$|\s)|[$€£]\s?\d[\d.,_]*`)
	quotedForm = regexp.MustCompile(
		"\"[^\"\\n]{3,200}\"|“[^”\\n]{3,200}”|«[^»\\n]{3,200}»|「[^」\\n]{2,200}」|`[^`\\n]{2,200}`")
	extension = regexp.MustCompile(`\.(?:` + extensions + `)$`)
)

// tagName matches the beginning of a tag, which is not a path: "</ide_opened_file>".
var tagName = regexp.MustCompile(`</?[A-Za-z][\w:-]*`)

// identifierKind is a form of identifier, in the order in which they are found.
type identifierKind int

const (
	identifierURL identifierKind = iota
	identifierPath
	identifierHash
	identifierNumber
	identifierQuoted
)

// identifiersIn returns the identifiers in a text, each once, in order of their kinds, at most limit.
func identifiersIn(w *work, text string, limit int) []string {
	var found []string
	seen := map[string]bool{}
	eachIdentifier(w, text, func(_ identifierKind, id string) {
		if id != "" && !seen[id] && len(found) < limit {
			seen[id] = true
			found = append(found, id)
		}
	})
	return found
}

// eachIdentifier finds the identifiers in a text, by kind. The same one may be reported more than once.
func eachIdentifier(w *work, text string, add func(kind identifierKind, id string)) {
	rest := eachName(w, text, add)
	for _, piece := range rest {
		w.spend(len(piece))
		for _, id := range unitForm.FindAllString(piece, -1) {
			add(identifierNumber, strings.TrimSpace(id))
		}
	}
	for _, piece := range rest {
		w.spend(len(piece))
		for _, id := range quotedIn(w, piece) {
			add(identifierQuoted, id)
		}
	}
}

// eachName finds the addresses, paths and hashes in a text, which are identifiers in program text too. It returns the
// pieces of the text without the addresses.
func eachName(w *work, text string, add func(kind identifierKind, id string)) (rest []string) {
	for _, piece := range w.pieces(text) {
		for _, id := range urlForm.FindAllString(piece, -1) {
			add(identifierURL, strings.TrimRight(id, ".,;:!?*_"))
		}
		rest = append(rest, urlForm.ReplaceAllString(piece, " "))
	}
	untagged := make([]string, len(rest))
	for i, piece := range rest {
		w.spend(len(piece))
		if untagged[i] = piece; strings.Contains(piece, "<") {
			untagged[i] = tagName.ReplaceAllString(piece, " ")
		}
		for _, id := range pathForm.FindAllString(untagged[i], -1) {
			if id = strings.TrimRight(id, ".,;:-+"); looksPath(id) {
				add(identifierPath, id)
			}
		}
	}
	for _, piece := range untagged {
		w.spend(len(piece))
		for _, id := range fileForm.FindAllString(pathForm.ReplaceAllString(piece, " "), -1) {
			add(identifierPath, id)
		}
	}
	for _, piece := range rest {
		w.spend(len(piece))
		for _, id := range hashForm.FindAllString(piece, -1) {
			if strings.ContainsAny(id, "0123456789") && strings.ContainsAny(id, "abcdef") {
				add(identifierHash, id)
			}
		}
	}
	return rest
}

// quotedIn returns the texts in quotation marks, without the marks. Marks next to a word, such as those of strings in a
// program, are not a pair if there is white space at an end, an escape or no word between them: they close one string
// and open the next.
func quotedIn(w *work, text string) []string {
	var all []string
	for at := 0; ; {
		m := quotedForm.FindStringIndex(text[at:])
		if m == nil {
			return all
		}
		from, to := at+m[0], at+m[1]
		w.spend(to - at)
		inside := unquote(text[from:to])
		if plain := text[from] == '"' || text[from] == '`'; plain && !quotes(text, from, to, inside) {
			at = from + 1 // its end may be the beginning of another
			continue
		}
		if inside = strings.TrimSpace(inside); inside != "" {
			all = append(all, inside)
		}
		at = to
	}
}

// quotes reports whether the marks at both ends of text[from:to], which are the same, are a pair.
func quotes(text string, from, to int, inside string) bool {
	if from > 0 && (asciiWord(text[from-1]) || strings.IndexByte("\\=`", text[from-1]) >= 0) {
		return false
	}
	if to < len(text) && (asciiWord(text[to]) || text[to] == '`') {
		return false
	}
	return strings.TrimSpace(inside) == inside && !strings.Contains(inside, `\n`) && !strings.Contains(inside, `\"`) &&
		!strings.HasSuffix(inside, `\`) &&
		strings.ContainsFunc(inside, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func asciiWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// looksPath reports whether s is a path rather than words with a slash between them, such as "read/write".
func looksPath(s string) bool {
	if !strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return false
	}
	return strings.ContainsAny(s[:1], "/~.") && len(s) > 2 || len(s) > 2 && s[1] == ':' ||
		strings.Count(s, "/")+strings.Count(s, `\`) > 1 || extension.MatchString(s)
}

// unquote removes the quotation marks from both ends.
func unquote(s string) string {
	runes := []rune(s)
	return string(runes[1 : len(runes)-1])
}
