package pipeline

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

const extensions = `go|py|ts|tsx|js|jsx|mjs|cjs|java|kt|rs|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|sh|bash|zsh|ps1|sql|md|txt|rst|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|lock|log|csv|tsv|xml|html|css|scss|vue|svelte|proto|tf|mod|sum|ipynb|pdf|png|jpg|svg|gz|zip|tar|diff|patch|gradle|lua|ex|exs|erl|hs|ml|dart|r|jl|pl|xlsx|docx`

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
		`kmgt]i?b|bytes?|%|px|rpm|rps|qps|tokens?|rows?|lines?|requests?|retries|errors?|tests?|files?|usd|eur|dollars?|euros?|€|°c)(?:\b|$|\s)|[$€£]\s?\d[\d.,_]*`)
	quotedForm = regexp.MustCompile(
		"\"[^\"\\n]{3,200}\"|“[^”\\n]{3,200}”|«[^»\\n]{3,200}»|「[^」\\n]{2,200}」|`[^`\\n]{2,200}`")
	extension = regexp.MustCompile(`\.(?:` + extensions + `)$`)
)

// tagName is where a tag begins, which is no path: "</ide_opened_file>".
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

// identifiersIn gives the identifiers in a text, each once, in order of their kinds, at most limit.
func identifiersIn(text string, limit int) []string {
	var found []string
	seen := map[string]bool{}
	eachIdentifier(text, func(_ identifierKind, id string) {
		if id != "" && !seen[id] && len(found) < limit {
			seen[id] = true
			found = append(found, id)
		}
	})
	return found
}

// eachIdentifier finds the identifiers in a text, by kind. The same one may come more than once.
func eachIdentifier(text string, add func(kind identifierKind, id string)) {
	eachName(text, add)
	rest := urlForm.ReplaceAllString(text, " ")
	for _, id := range unitForm.FindAllString(rest, -1) {
		add(identifierNumber, strings.TrimSpace(id))
	}
	for _, id := range quotedIn(rest) {
		add(identifierQuoted, id)
	}
}

// eachName finds the addresses, paths and hashes in a text: what is one in a program's text as well.
func eachName(text string, add func(kind identifierKind, id string)) {
	for _, id := range urlForm.FindAllString(text, -1) {
		add(identifierURL, strings.TrimRight(id, ".,;:!?*_"))
	}
	rest := urlForm.ReplaceAllString(text, " ")
	untagged := rest
	if strings.Contains(rest, "<") {
		untagged = tagName.ReplaceAllString(rest, " ")
	}
	for _, id := range pathForm.FindAllString(untagged, -1) {
		if id = strings.TrimRight(id, ".,;:-+"); looksPath(id) {
			add(identifierPath, id)
		}
	}
	for _, id := range fileForm.FindAllString(pathForm.ReplaceAllString(untagged, " "), -1) {
		add(identifierPath, id)
	}
	for _, id := range hashForm.FindAllString(rest, -1) {
		if strings.ContainsAny(id, "0123456789") && strings.ContainsAny(id, "abcdef") {
			add(identifierHash, id)
		}
	}
}

// quotedIn gives what stands in quotation marks, without them. Marks that stand next to a word, as those of a string in
// a program do, and between which there is white space at an end, an escape or no word at all, are none: they close one
// string and open the next.
func quotedIn(text string) []string {
	var all []string
	for at := 0; ; {
		m := quotedForm.FindStringIndex(text[at:])
		if m == nil {
			return all
		}
		from, to := at+m[0], at+m[1]
		inside := unquote(text[from:to])
		if plain := text[from] == '"' || text[from] == '`'; plain && !quotes(text, from, to, inside) {
			at = from + 1 // its end may be where another begins
			continue
		}
		if inside = strings.TrimSpace(inside); inside != "" {
			all = append(all, inside)
		}
		at = to
	}
}

// quotes says whether the marks at both ends of text[from:to], which are the same, are a pair.
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

// flattened is all of the source in lower case, with single spaces.
func (s *sourceTexts) flattened() string {
	if s.flat == "" {
		s.flat = strings.ToLower(strings.Join(strings.Fields(s.raw), " "))
	}
	return s.flat
}

// occurring says for each identifier whether one of the sources has it: as it is, escaped as in JSON, or with other
// spacing and case.
func occurring(ids []string, sources ...*sourceTexts) []bool {
	var exact, loose forms
	for i, id := range ids {
		exact.add(i, id)
		exact.add(i, jsonEscaped(id))
		if !strings.ContainsFunc(id, unicode.IsSpace) && !numberUnit.MatchString(id) {
			continue // a path, an address, a hash: it is that or it is not
		}
		low := strings.ToLower(strings.Join(strings.Fields(id), " "))
		loose.add(i, low)
		loose.add(i, strings.ReplaceAll(low, " ", ""))
		loose.add(i, numberUnit.ReplaceAllString(low, "$1 $2"))
	}
	has := make([]bool, len(ids))
	look := newSearch(exact.texts)
	for _, s := range sources {
		exact.mark(look.places(s.raw), has)
	}
	if loose.drop(has); len(loose.texts) > 0 {
		look = newSearch(loose.texts)
		for _, s := range sources {
			loose.mark(look.places(s.flattened()), has)
		}
	}
	return has
}

// forms are the ways in which identifiers may be written.
type forms struct {
	texts []string
	of    []int // the identifier of each
}

func (f *forms) add(id int, text string) {
	if n := len(f.of); n > 0 && f.of[n-1] == id && f.texts[n-1] == text {
		return
	}
	f.texts, f.of = append(f.texts, text), append(f.of, id)
}

// drop forgets those of identifiers that are found.
func (f *forms) drop(has []bool) {
	var left forms
	for i, id := range f.of {
		if !has[id] {
			left.add(id, f.texts[i])
		}
	}
	*f = left
}

// mark notes which identifiers have a place in a text.
func (f *forms) mark(places []int, has []bool) {
	for i, at := range places {
		has[f.of[i]] = has[f.of[i]] || at >= 0
	}
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
	ids := identifiersIn(summary, maxIdentifiers)
	for i, has := range occurring(ids, before, behind) {
		if !has {
			missing = append(missing, ids[i])
		}
	}
	return missing
}

var (
	saidForm = regexp.MustCompile(`(?i)\busers?(?:'s|’s|')?\b[^\n]*`)
	quote    = regexp.MustCompile(`"([^"\n]{3,600})"|“([^”\n]{3,600})”|«([^»\n]{3,600})»`)
	clause   = regexp.MustCompile(`(?i)[.!?;]\s|\b(assistant|agent|model|tool|error|output)\b`)
	saidCJK  = regexp.MustCompile(`(?:用户|使用者|ユーザー|사용자)[^"“「『\n]{0,40}["“「『]([^"”」』\n]{2,600})["”」』]`)
	saidLine = regexp.MustCompile(
		`(?im)^[\s>*-]*(?:\*\*)?(?:user|human|用户|ユーザー|사용자|usuario|usuário|utilisateur|benutzer|nutzer|utente|пользователь)(?:\*\*)?\s*[:：](?:\*\*)?\s*(\S.*)$`)
	ellipsis = regexp.MustCompile(`\.\.\.|…|\[[^\]]*\]`)
)

// misattributed gives the quotes that a summary puts into the user's mouth and no user message contains.
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

// attributed gives the quotes that a summary puts into the user's mouth, each once.
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
				break // the sentence has ended, or goes on about somebody else
			}
			q := strings.Trim(rest[m[0]:m[1]], "\"“”«»")
			if strings.Contains(q, " ") || !strings.ContainsAny(q, "./_-()") {
				add(q) // what is no name of a file or a function
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

// usersSaid says for each quote whether every piece of it, between its ellipses, stands in one user message.
func usersSaid(quotes []string, sources ...*sourceTexts) []bool {
	said := make([]bool, len(quotes))
	pieces := forms{} // by quote
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

// maxArgument is the longest argument in which names are looked for, in chars: what is longer is a document.
const maxArgument = 2000

// eachUse finds the identifiers that an assistant's message uses: those in what it says outside of fences, and those in
// the values of its calls. Keys of arguments and names of tools are none. The same one may come more than once.
func eachUse(m Message, add func(kind identifierKind, id string)) {
	values := func(input string) {
		for _, a := range argumentsOf(input) {
			if a.text && named(a.value) {
				add(valueKind(a.value), a.value)
			} else if a.text && len(a.value) <= maxArgument {
				eachName(a.value, add)
			}
		}
	}
	for _, p := range m.Parts {
		switch {
		case p.Kind == PartToolCall:
			values(p.Input)
		case p.Kind == PartText && isObject(p.Text):
			values(p.Text)
		case p.Kind == PartText:
			eachIdentifier(withoutFences(p.Text), add)
		}
	}
}

// valueKind is the kind of a whole argument that is a name.
func valueKind(value string) identifierKind {
	switch {
	case strings.Contains(value, "://"):
		return identifierURL
	case looksPath(value):
		return identifierPath
	}
	return identifierQuoted
}

// usedIn lists the identifiers that an assistant's message uses, but for quotes of no more than a word.
func usedIn(m Message) []string {
	var ids []string
	eachUse(m, func(kind identifierKind, id string) {
		if kind != identifierQuoted || !plainWord(id) {
			ids = append(ids, id)
		}
	})
	return ids
}

// isObject says whether a text is a JSON object, as agents write that answer in a form.
func isObject(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}

// plainWord says whether a quote is no more than a word of the language.
func plainWord(s string) bool {
	for i, r := range s {
		if r >= unicode.MaxASCII || !unicode.IsLetter(r) || i > 0 && unicode.IsUpper(r) {
			return false
		}
	}
	return true
}

// named says whether a whole argument is a name: one word with a digit in it, and more than a small number.
func named(value string) bool {
	const shortest, longest = 4, 200
	letters, digits := 0, 0
	for _, r := range value {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		case unicode.IsSpace(r) || strings.ContainsRune("{}()<>\"'`$|&;*?[]", r):
			return false
		}
	}
	return digits > 0 && (letters > 0 || digits > shortest) && len(value) >= shortest && len(value) <= longest
}

// readable is all that messages hold, to be quoted by its lines: what was said and what came back first, then the
// calls, a value a line with the names of its tool and its argument.
func readable(messages []Message) string {
	var said, calls strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Kind != PartToolCall {
				for _, text := range textsOf(Message{Parts: []Part{p}}) {
					said.WriteString(text + "\n")
				}
				continue
			}
			for _, a := range argumentsOf(p.Input) {
				calls.WriteString(strings.TrimSpace(p.Name+" "+a.key) + ": " + a.value + "\n")
			}
		}
	}
	return said.String() + calls.String()
}

// lookAhead gives what the agent has used in tail and what stands only in the source and not in the summary:
// each identifier with the line that it stands in.
func lookAhead(summary string, source, tail []Message) []string {
	var ids []string
	var users []int // where the message of the tail begins that uses it first
	var all strings.Builder
	seen := map[string]bool{}
	for _, m := range tail {
		begin := all.Len()
		all.WriteString(readable([]Message{m}))
		if m.Role != RoleAssistant {
			continue
		}
		for _, id := range usedIn(m) {
			if !seen[id] && len(ids) < maxIdentifiers && !strings.HasPrefix(id, "/dev/") {
				seen[id] = true
				ids, users = append(ids, id), append(users, begin)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	text := readable(source)
	look := newSearch(ids)
	inTail, inSummary, inSource := look.places(all.String()), look.places(summary), look.places(text)
	var used []string
	for i, id := range ids {
		if inTail[i] >= users[i] && inSummary[i] < 0 && inSource[i] >= 0 && len(used) < maxLookAhead {
			used = append(used, "`"+id+"`: "+lineAt(text, inSource[i]))
		}
	}
	return used
}

// lineAt is the line of a text with what stands at at, cut around it.
func lineAt(text string, at int) string {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
		to = at + end
	}
	line := strings.TrimSpace(text[from:to])
	if Chars(line) <= maxLookAheadLine {
		return line
	}
	// Begin near the identifier, at the start of a char.
	start := max(from, at-maxLookAheadLine/2)
	for start < at && text[start]&0xC0 == 0x80 {
		start++
	}
	return Truncate(strings.TrimSpace(text[start:to]), maxLookAheadLine)
}
