package pipeline

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const extensions = `go|py|ts|tsx|js|jsx|mjs|cjs|java|kt|rs|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|sh|bash|zsh|ps1|sql|md|txt|rst|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|lock|log|csv|tsv|xml|html|css|scss|vue|svelte|proto|tf|mod|sum|ipynb|pdf|png|jpg|svg|gz|zip|tar|diff|patch|gradle|lua|ex|exs|erl|hs|ml|dart|r|jl|pl|xlsx|docx`

// The forms of identifiers: what a summary must not get wrong, and a program can check.
var (
	urlForm    = regexp.MustCompile(`https?://[^\s<>"'` + "`" + `()\[\]{}「」『』，。、]+`)
	pathForm   = regexp.MustCompile(`(?:[A-Za-z]:\\|~/|\.{1,2}/|/)?(?:[\w.@+-]+[/\\])+[\w.@+-]+|(?:~/|\.{1,2}/|/)[\w.@+-]+`)
	fileForm   = regexp.MustCompile(`\b[\w-]+(?:\.[\w-]+)*\.(?:` + extensions + `)\b`)
	hashForm   = regexp.MustCompile(`\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{7,64})\b`)
	unitForm   = regexp.MustCompile(`(?i)(?:[$€£]\s?)?\b\d[\d.,_]*\s?(?:ms|µs|ns|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|[kmgt]i?b|bytes?|%|px|rpm|rps|qps|tokens?|rows?|lines?|requests?|retries|errors?|tests?|files?|usd|eur|dollars?|euros?|€|°c)(?:\b|$|\s)|[$€£]\s?\d[\d.,_]*`)
	quotedForm = regexp.MustCompile("\"[^\"\\n]{3,200}\"|“[^”\\n]{3,200}”|«[^»\\n]{3,200}»|「[^」\\n]{2,200}」|`[^`\\n]{2,200}`")
	extension  = regexp.MustCompile(`\.(?:` + extensions + `)$`)
)

// identifiersIn gives the identifiers in a text, each once, in order of their kinds, at most limit.
func identifiersIn(text string, limit int) []string {
	var found []string
	seen := map[string]bool{}
	add := func(id string) {
		if id != "" && !seen[id] && len(found) < limit {
			seen[id] = true
			found = append(found, id)
		}
	}
	for _, id := range urlForm.FindAllString(text, -1) {
		add(strings.TrimRight(id, ".,;:!?*_"))
	}
	rest := urlForm.ReplaceAllString(text, " ")
	for _, id := range pathForm.FindAllString(rest, -1) {
		if id = strings.TrimRight(id, ".,;:-+"); looksPath(id) {
			add(id)
		}
	}
	for _, id := range fileForm.FindAllString(pathForm.ReplaceAllString(rest, " "), -1) {
		add(id)
	}
	for _, id := range hashForm.FindAllString(rest, -1) {
		if strings.ContainsAny(id, "0123456789") && strings.ContainsAny(id, "abcdef") {
			add(id)
		}
	}
	for _, id := range unitForm.FindAllString(rest, -1) {
		add(strings.TrimSpace(id))
	}
	for _, id := range quotedForm.FindAllString(rest, -1) {
		add(strings.TrimSpace(unquote(id)))
	}
	return found
}

// looksPath tells a path from words with a slash between them, such as "read/write".
func looksPath(s string) bool {
	if !strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return false
	}
	return strings.ContainsAny(s[:1], "/~.") && len(s) > 2 || len(s) > 2 && s[1] == ':' ||
		strings.Count(s, "/")+strings.Count(s, `\`) > 1 || extension.MatchString(s)
}

// unquote takes the quotation marks off both ends.
func unquote(s string) string {
	runes := []rune(s)
	return string(runes[1 : len(runes)-1])
}

// sourceTexts is everything that a summary may rest on, made to be searched.
type sourceTexts struct {
	raw string
	// flat is raw in lower case with single spaces, made when first asked for.
	flat string
	// users are the texts of genuine user messages and of earlier summaries, flattened.
	users []string
}

func newSource(messages []Message) *sourceTexts {
	var all strings.Builder
	s := &sourceTexts{}
	for _, m := range messages {
		for _, text := range textsOf(m) {
			all.WriteString(text)
			all.WriteByte('\n')
		}
		for _, p := range m.Parts {
			if p.Kind == PartText && (m.Genuine() || m.Kind == KindSummary) {
				s.users = append(s.users, flatten(p.Text))
			}
		}
	}
	s.raw = all.String()
	return s
}

// textsOf gives every text in a message: what was said, names and arguments of calls, results. Reasoning is
// no source.
func textsOf(m Message) []string {
	var texts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case PartReasoning:
		case PartOpaque:
			texts = append(texts, string(p.Raw))
		default:
			texts = append(texts, p.Name, p.Text, p.Input)
			for _, c := range p.Content {
				texts = append(texts, c.Name, c.Text)
			}
		}
	}
	return texts
}

// has says whether an identifier occurs, as it is, escaped as in JSON, or with other spacing and case.
func (s *sourceTexts) has(id string) bool {
	if strings.Contains(s.raw, id) {
		return true
	}
	if escaped := jsonEscaped(id); escaped != id && strings.Contains(s.raw, escaped) {
		return true
	}
	if !strings.ContainsFunc(id, unicode.IsSpace) && !numberUnit.MatchString(id) {
		return false // a path, an address, a hash: it is that or it is not
	}
	if s.flat == "" {
		s.flat = strings.ToLower(strings.Join(strings.Fields(s.raw), " "))
	}
	low := strings.ToLower(strings.Join(strings.Fields(id), " "))
	if strings.Contains(s.flat, low) {
		return true
	}
	if tight := strings.ReplaceAll(low, " ", ""); tight != low {
		return strings.Contains(s.flat, tight)
	}
	spaced := numberUnit.ReplaceAllString(low, "$1 $2")
	return spaced != low && strings.Contains(s.flat, spaced)
}

var numberUnit = regexp.MustCompile(`^([\d.,_]+)([^\d.,_\s]+)$`)

// jsonEscaped is how a text stands inside of a JSON string.
func jsonEscaped(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(quoted[1 : len(quoted)-1])
}

// unsupported gives the identifiers of a summary that neither source has.
func unsupported(summary string, before, behind *sourceTexts) []string {
	var missing []string
	for _, id := range identifiersIn(summary, maxIdentifiers) {
		if !before.has(id) && !behind.has(id) {
			missing = append(missing, id)
		}
	}
	return missing
}

var (
	saidForm = regexp.MustCompile(`(?i)\busers?(?:'s|’s|')?\b[^\n]*`)
	quote    = regexp.MustCompile(`"([^"\n]{3,600})"|“([^”\n]{3,600})”|«([^»\n]{3,600})»`)
	clause   = regexp.MustCompile(`(?i)[.!?;]\s|\b(assistant|agent|model|tool|error|output)\b`)
	saidCJK  = regexp.MustCompile(`(?:用户|使用者|ユーザー|사용자)[^"“「『\n]{0,40}["“「『]([^"”」』\n]{2,600})["”」』]`)
	saidLine = regexp.MustCompile(`(?im)^[\s>*-]*(?:\*\*)?(?:user|human|用户|ユーザー|사용자|usuario|usuário|utilisateur|benutzer|nutzer|utente|пользователь)(?:\*\*)?\s*[:：](?:\*\*)?\s*(\S.*)$`)
	ellipsis = regexp.MustCompile(`\.\.\.|…|\[[^\]]*\]`)
)

// misattributed gives the quotes that a summary puts into the user's mouth and no user message contains.
func misattributed(summary string, before, behind *sourceTexts) []string {
	var wrong []string
	seen := map[string]bool{}
	check := func(quote string) {
		quote = strings.TrimSpace(quote)
		if !seen[quote] && !before.userSaid(quote) && !behind.userSaid(quote) {
			wrong = append(wrong, quote)
		}
		seen[quote] = true
	}
	for _, rest := range saidForm.FindAllString(summary, -1) {
		at := 0
		for _, m := range quote.FindAllStringSubmatchIndex(rest, -1) {
			if clause.MatchString(rest[at:m[0]]) {
				break // the sentence has ended, or goes on about somebody else
			}
			q := strings.Trim(rest[m[0]:m[1]], "\"“”«»")
			if strings.Contains(q, " ") || !strings.ContainsAny(q, "./_-()") {
				check(q) // what is no name of a file or a function
			}
			at = m[1]
		}
	}
	for _, m := range saidCJK.FindAllStringSubmatch(summary, -1) {
		check(m[1])
	}
	for _, m := range saidLine.FindAllStringSubmatch(summary, -1) {
		check(strings.Trim(m[1], "\"“”«»「」*` "))
	}
	if section, ok := findUserSection(summary); ok {
		for _, m := range quotedForm.FindAllString(summary[section.body:section.end], -1) {
			check(unquote(m))
		}
	}
	return wrong
}

// userSaid says whether every piece of a quote, between its ellipses, stands in one user message.
func (s *sourceTexts) userSaid(quote string) bool {
	var pieces []string
	for _, piece := range ellipsis.Split(quote, -1) {
		if piece = strings.Trim(flatten(piece), " .,;:!?\"'"); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	for _, user := range s.users {
		all := true
		for _, piece := range pieces {
			all = all && strings.Contains(user, piece)
		}
		if all {
			return true
		}
	}
	return len(pieces) == 0
}

// lookAhead gives what the agent has used in tail and what stands only in the source and not in the summary:
// each identifier with the line that it stands in.
func (s *sourceTexts) lookAhead(summary string, tail []Message) []string {
	var used, texts []string
	seen := map[string]bool{}
	for i, m := range tail {
		texts = append(texts, strings.Join(textsOf(m), "\n"))
		if m.Role != RoleAssistant {
			continue
		}
		for _, id := range identifiersIn(texts[i], maxIdentifiers) {
			if seen[id] || len(seen) == maxIdentifiers || len(used) == maxLookAhead {
				continue
			}
			seen[id] = true
			if !strings.Contains(summary, id) && strings.Contains(s.raw, id) && !anyContains(texts[:i], id) {
				used = append(used, "`"+id+"`: "+s.lineOf(id))
			}
		}
	}
	return used
}

func anyContains(texts []string, s string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, s) })
}

// lineOf is the first line of the source that has the identifier, cut around it.
func (s *sourceTexts) lineOf(id string) string {
	at := strings.Index(s.raw, id)
	from := strings.LastIndexByte(s.raw[:at], '\n') + 1
	to := len(s.raw)
	if end := strings.IndexByte(s.raw[at:], '\n'); end >= 0 {
		to = at + end
	}
	line := strings.TrimSpace(s.raw[from:to])
	if Chars(line) <= maxLookAheadLine {
		return line
	}
	// Begin near the identifier, at the start of a char.
	start := max(from, at-maxLookAheadLine/2)
	for start < at && s.raw[start]&0xC0 == 0x80 {
		start++
	}
	return Truncate(strings.TrimSpace(s.raw[start:to]), maxLookAheadLine)
}
