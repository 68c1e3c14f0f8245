package pipeline

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The words that tell a sentence which sets a limit, by language. Those of writing without spaces, and stems,
// count anywhere in a sentence, the others as whole words: see foldWords.
var (
	// strongWords set a limit in any position.
	strongWords = phrases(
		"never|always|must|mustn't|shall not|shan't|should not|shouldn't|may not|unless|make sure|ensure|forbidden|prohibited",
		"not allowed|off limits|under no circumstances|at all costs|hands off|read only|confidential|no more than|at most|at least",
		"without asking|without my|without our|without approval|ask me|ask us|ask first|ask before",
		"nie|niemals|immer|keinesfalls|auf keinen fall|auf gar keinen fall|darf|darfst|dürfen|muss|musst|müssen|sollst|nur",
		"ausschließlich|verboten|unbedingt|höchstens|mindestens",
		"jamais|toujours|il faut|il ne faut|doit|doivent|seulement|uniquement|interdit|sans demander|sans mon accord|surtout pas",
		"nunca|jamás|siempre|debes|debe|deben|sólo|únicamente|prohibido|sin preguntar",
		"sempre|apenas|somente|deve|devem|proibido|sem perguntar|devi|devono|soltanto|vietato|senza chiedere",
		"nooit|altijd|moet|alleen", "nigdy|zawsze|nie wolno|tylko|musisz", "asla|her zaman|sadece|yasak|mutlaka",
		"никогда|всегда|нельзя|только|обязательно|должен|должна|должно|должны",
	)
	strongStems = stems(
		"запрещ",
		"不要|不得|不许|不許|禁止|绝不|絕不|永远不|永不|必须|必須|务必|務必|只能|只准|仅限|僅限|一定要|总是|總是|切勿|请勿|請勿|严禁",
		"しないで|するな|ないでください|必ず|絶対|決して|のみ|いけません|べからず|触らない|禁じ",
		"하지 마|하지마|마세요|마십시오|금지|반드시|절대|항상|해야",
		"يجب|دائم|أبد|فقط|ممنوع|لا ت", "कभी नहीं|कभी भी|हमेशा|केवल|सिर्फ|ज़रूर",
	)
	// weakWords stand in plain statements as well ("I do not know why"), and count where their clause does not
	// begin like one.
	weakWords = phrases(
		"do not|don't|dont|only|except|avoid|refrain|keep out|keep away|stay out|stay away|leave|no|not",
		"nicht|nichts|kein|keine|keinen|keinem|keiner|ohne", "ne|pas|aucun|aucune", "solo|salvo|excepto|sin",
		"não|nao|sem|non|mai|senza", "niet|geen|zonder", "не",
	)
	weakStems = stems(" n'", "不能|不可|别|別|勿", "だけ|ないで")
	// statementWords begin a clause that tells or asks, and orders nothing.
	statementWords = phrases(
		"i|we|it|he|she|they|there|that|this|these|those|the|a|an|my|our|your|why|what|how|when|where|who|which|is|are|was|were",
		"does|did|do you|do we|can|could|would|will|not sure|still|looks|seems|because|since|if|no idea|no problem|nothing",
		"i'm|i've|i'd|i'll|it's|that's|there's|what's|we're|we've|they're|he's|she's|you're",
		"ich|wir|es|er|sie|das|der|die|dies|ein|eine|warum|wieso|weshalb|was|wie|wann|wo|wer|ist|sind|hat|leider",
		"je|nous|il|elle|on|ça|ca|cela|ce|le|la|les|un|une|pourquoi|comment|quand",
		"yo|nosotros|él|ella|eso|esto|el|los|las|una|por qué|porque|cómo|no sé|no se|no lo sé|no funciona|no puedo|no entiendo|no hay|no es|no está",
		"eu|nós|ele|ela|isso|isto|o|os|as|um|uma|por que|como|não sei|não funciona|não consigo|não há|não é",
		"io|noi|lui|lei|questo|quello|lo|gli|come|non so|non funziona|non capisco|non riesco|non è",
		"ik|wij|we|het|dat|dit|de|een|waarom|hoe", "я|мы|он|она|оно|это|почему|как",
	)
	statementStems = stems("j'|c'", "我|它|他|她|这|那|为什么|怎么", "私|僕|これ|それ|なぜ|どうして")
	// conjunctions stand in front of a clause and say nothing about it.
	conjunctions = phrases("and|but|so|or|then|also|please|just|und|aber|oder|bitte|y|pero|et|mais|e|mas|ma|и|но")
)

// phrases lists phrases, divided by "|", each between spaces as foldWords leaves them.
func phrases(lists ...string) []string {
	all := stems(lists...)
	for i, p := range all {
		all[i] = " " + p + " "
	}
	return all
}

// stems lists what is divided by "|".
func stems(lists ...string) []string { return strings.Split(strings.Join(lists, "|"), "|") }

// foldWords gives the words of a text in lower case, with single spaces between them and at both ends. An
// apostrophe is part of its word.
func foldWords(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	space := true
	b.WriteByte(' ')
	for _, r := range s {
		switch {
		case r == '’':
			r = '\''
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || r == '\'':
			r = unicode.ToLower(r)
		default:
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		b.WriteRune(r)
		space = false
	}
	if !space {
		b.WriteByte(' ')
	}
	return b.String()
}

func hasAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

func beginsWithAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(s, p) })
}

// setsLimit says whether a sentence of the user's sets a limit. A question does not.
func setsLimit(sentence string) bool {
	if strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "？") {
		return false
	}
	words := foldWords(sentence)
	if hasAny(words, strongWords) || hasAny(words, strongStems) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(sentence, endsClause), orders)
}

func endsClause(r rune) bool { return strings.ContainsRune(",;:()—–，；：、", r) }

// orders says whether a clause with a weak word in it orders something.
func orders(clause string) bool {
	words := foldWords(clause)
	if !hasAny(words, weakWords) && !hasAny(words, weakStems) {
		return false
	}
	for i := 0; i < len(conjunctions); i++ {
		if strings.HasPrefix(words, conjunctions[i]) {
			words = words[len(conjunctions[i])-1:]
			i = -1
		}
	}
	bare := strings.TrimSpace(words)
	if hasAny(words, weakWords) && !strings.Contains(bare, " ") {
		return false // "No" is an answer
	}
	return !beginsWithAny(words, statementWords) && !beginsWithAny(bare, statementStems)
}

// constraint is a sentence that sets a limit.
type constraint struct {
	text string
	// messageChars is the size of the message that it stands in, 0 for one from an earlier summary.
	messageChars int
}

// constraints gives the sentences of genuine user messages that set a limit, and those that an earlier
// summary lists in its section of them, each once, in order.
func constraints(source []Message) []constraint {
	var all []constraint
	seen := map[string]bool{}
	add := func(sentence string, messageChars int) {
		if key := flat(sentence); key != "" && !seen[key] {
			seen[key] = true
			all = append(all, constraint{sentence, messageChars})
		}
	}
	for _, m := range source {
		for _, p := range m.Parts {
			switch {
			case p.Kind != PartText:
			case m.Kind == KindSummary:
				for _, item := range sectionItems(p.Text, constraintsTitle) {
					add(item, 0)
				}
			case m.Genuine():
				for _, s := range sentences(withoutFences(p.Text)) {
					if Chars(s) <= maxConstraintChars && setsLimit(s) {
						add(s, Chars(p.Text))
					}
				}
			}
		}
	}
	return all
}

// sectionItems gives the list of a section that appendSection wrote.
func sectionItems(text, title string) []string {
	_, rest, found := strings.Cut(text, title)
	if !found {
		return nil
	}
	var items []string
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\r\n")
		if item, listed := strings.CutPrefix(line, "- "); listed {
			items = append(items, item)
		} else if more, continued := strings.CutPrefix(line, "  "); continued && len(items) > 0 {
			items[len(items)-1] += "\n" + more
		} else if strings.TrimSpace(line) != "" {
			break
		}
	}
	return items
}

// withoutFences is a text without what was pasted between fences.
func withoutFences(text string) string {
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return text
	}
	var kept strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		start := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(start, "```"):
			fence = "```"
		case fence == "" && strings.HasPrefix(start, "~~~"):
			fence = "~~~"
		case fence == "":
			kept.WriteString(line)
		case strings.HasPrefix(start, fence):
			fence = ""
		}
	}
	return kept.String()
}

var (
	sentenceEnd  = regexp.MustCompile(`[.!?…]+["'”’)\]]*\s+|[。！？｡]+[」』”）]*`)
	abbreviation = regexp.MustCompile(`(?i)(^|[\s(])(e\.g|i\.e|etc|vs|cf|no|nr|bzw|z\.\s?b|d\.\s?h|u\.\s?a|approx|p\.\s?ex|par ex|ej|mr|ms|dr|st)\.\s*$`)
	listMark     = regexp.MustCompile(`^([-*+•]|\d{1,3}[.)])\s+`)
)

// sentences divides a text, without list marks and surrounding white space. A line that ends in a colon keeps
// the list below it: it says nothing without.
func sentences(text string) []string {
	var all []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	for lines := strings.Split(text, "\n"); len(lines) > 0; {
		line := trimListMark(lines[0])
		lines = lines[1:]
		at := 0
		for _, m := range sentenceEnd.FindAllStringIndex(line, -1) {
			if !abbreviation.MatchString(line[at:m[1]]) {
				add(line[at:m[1]])
				at = m[1]
			}
		}
		last := line[at:]
		if strings.HasSuffix(last, ":") || strings.HasSuffix(last, "：") {
			for len(lines) > 0 && listMark.MatchString(strings.TrimSpace(lines[0])) {
				last += "\n" + strings.TrimSpace(lines[0])
				lines = lines[1:]
			}
		}
		add(last)
	}
	return all
}

func trimListMark(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(listMark.ReplaceAllString(s, ""))
}
