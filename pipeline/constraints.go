package pipeline

import (
	"regexp"
	"strings"
)

// strongLimit is what a sentence has in it that sets a limit, in any position. weakLimit is what also stands
// in plain statements ("I do not know why"), and counts where the sentence does not begin like one.
var (
	strongLimit = regexp.MustCompile(`(?i)` + strings.Join([]string{
		`\b(never|always|must|mustn['’]?t|shall not|shan['’]?t|should not|shouldn['’]?t|may not|unless|without (asking|my|our|approval)|ask (me|us|for|first|before)|make sure|ensure|forbidden|prohibited|not allowed|off[- ]limits|under no circumstances|at all costs|hands off|read[- ]only|confidential|no more than|at most|at least)\b`,
		`\b(nie|niemals|immer|keinesfalls|auf (gar )?keinen fall|darf|darfst|dürfen|muss|musst|müssen|sollst|nur|ausschließlich|verboten|unbedingt|höchstens|mindestens)\b`,
		`\b(jamais|toujours|il faut|il ne faut|doit|doivent|seulement|uniquement|interdit|sans (demander|mon accord)|surtout pas)\b`,
		`\b(nunca|jamás|siempre|debes|debe|deben|sólo|únicamente|prohibido|sin preguntar)\b`,
		`\b(sempre|apenas|somente|deve|devem|proibido|sem perguntar|devi|devono|soltanto|vietato|senza chiedere)\b`,
		`\b(nooit|altijd|moet|alleen|verboden)\b`,
		`\b(nigdy|zawsze|nie wolno|tylko|musisz)\b`,
		`\b(asla|her zaman|sadece|yasak|mutlaka)\b`,
		`(никогда|всегда|нельзя|только|обязательно|долж(ен|на|но|ны)|запрещ)`,
		`(不要|不得|不许|不許|禁止|绝不|絕不|永远不|永不|必须|必須|务必|務必|只能|只准|仅限|僅限|一定要|总是|總是|切勿|请勿|請勿|严禁)`,
		`(しないで|するな|ないでください|必ず|絶対|決して|のみ|いけません|べからず|触らない|禁じ)`,
		`(하지 ?마|마세요|마십시오|금지|반드시|절대|항상|해야)`,
		`(يجب|دائم|أبد|فقط|ممنوع|لا ت)`,
		`(कभी नहीं|कभी भी|हमेशा|केवल|सिर्फ|ज़रूर)`,
	}, "|"))
	weakLimit = regexp.MustCompile(`(?i)` + strings.Join([]string{
		`\b(do not|don['’]?t|dont|only|except|avoid|refrain|keep (out|away)|stay (out|away)|leave|no|not)\b`,
		`\b(nicht|nichts|kein|keine|keinen|keinem|keiner|ohne)\b`,
		`\b(ne|n['’]|pas|aucun|aucune)\b`, `n['’]\S+`,
		`\b(no|solo|salvo|excepto|sin)\b`,
		`\b(não|nao|sem|non|mai|solo|senza)\b`,
		`\b(niet|geen|zonder)\b`,
		`(^|\s)не(т)?\s`,
		`(不能|不可|别|別|勿)`,
		`(だけ|ないで)`,
	}, "|"))
	// statement is how a sentence begins that tells or asks, and orders nothing.
	statement = regexp.MustCompile(`(?i)^["'“«(\s]*(` + strings.Join([]string{
		`(i|we|it|he|she|they|there|that|this|these|those|the|a|an|my|our|your|why|what|how|when|where|who|which|is|are|was|were|does|did|do you|do we|can|could|would|will|yes|no|nope|not sure|still|looks|seems|because|since|so|but|and it|ok|okay|thanks|thank you|if it|nothing)\b`,
		`i['’]\w+`, `it['’]s`, `that['’]s`, `there['’]s`, `we['’]\w+`, `they['’]\w+`,
		`(ich|wir|es|er|sie|das|der|die|dies|ein|eine|warum|wieso|weshalb|was|wie|wann|wo|wer|ist|sind|hat|nein|ja|nicht sicher|leider)\b`,
		`(je|j['’]|nous|il|elle|on|ça|ca|c['’]|cela|ce|le|la|les|un|une|pourquoi|comment|quand|oui|non)`,
		`(yo|nosotros|él|ella|eso|esto|el|la|los|las|un|una|por qué|porque|cómo|sí)\b`,
		`(eu|nós|ele|ela|isso|isto|o|os|as|um|uma|por que|porquê|como|sim)\b`,
		`(io|noi|lui|lei|questo|quello|il|lo|gli|le|perché|come|sì)\b`,
		`(ik|wij|we|het|dat|dit|de|een|waarom|hoe|ja|nee)\b`,
		`(я|мы|он|она|оно|это|почему|как|да|нет)(\s|,|$)`,
		`(我|我们|它|他|她|这|那|为什么|怎么)`,
		`(私|僕|これ|それ|なぜ|どうして)`,
	}, "|") + `)`)
)

// setsLimit says whether a sentence of the user's sets a limit. A question does not.
func setsLimit(sentence string) bool {
	if strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "？") {
		return false
	}
	return strongLimit.MatchString(sentence) || weakLimit.MatchString(sentence) && !statement.MatchString(sentence)
}

// constraints gives the sentences of genuine user messages that set a limit, and those that an earlier
// summary lists in its section of them, each once, in order.
func constraints(source []Message) []string {
	var all []string
	seen := map[string]bool{}
	add := func(sentence string) {
		if key := flat(sentence); key != "" && !seen[key] {
			seen[key] = true
			all = append(all, sentence)
		}
	}
	for _, m := range source {
		for _, p := range m.Parts {
			switch {
			case p.Kind != PartText:
			case m.Kind == KindSummary:
				for _, item := range sectionItems(p.Text, constraintsTitle) {
					add(item)
				}
			case m.Genuine():
				for _, s := range sentences(withoutFences(p.Text)) {
					if Chars(s) <= maxConstraintChars && setsLimit(s) {
						add(s)
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
	sentenceEnd  = regexp.MustCompile(`[.!?…]+["'”’)\]]*\s+|[。！？｡]+[」』”）]*|\n+`)
	abbreviation = regexp.MustCompile(`(?i)(^|[\s(])(e\.g|i\.e|etc|vs|cf|no|nr|bzw|z\.\s?b|d\.\s?h|u\.\s?a|approx|p\.\s?ex|par ex|ej|mr|ms|dr|st)\.\s*$`)
	listMark     = regexp.MustCompile(`^([-*+•]|\d{1,3}[.)])\s+`)
)

// sentences divides a text, without list marks and surrounding white space. A line that ends in a colon keeps
// the list below it: it says nothing without.
func sentences(text string) []string {
	var all []string
	for lines := strings.Split(text, "\n"); len(lines) > 0; {
		line := strings.TrimSpace(lines[0])
		lines = lines[1:]
		if strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：") {
			for len(lines) > 0 && listMark.MatchString(strings.TrimSpace(lines[0])) {
				line += "\n" + strings.TrimSpace(lines[0])
				lines = lines[1:]
			}
			all = append(all, trimListMark(line))
			continue
		}
		at := 0
		for _, m := range sentenceEnd.FindAllStringIndex(line, -1) {
			if abbreviation.MatchString(line[at:m[1]]) {
				continue
			}
			all = append(all, trimListMark(line[at:m[1]]))
			at = m[1]
		}
		all = append(all, trimListMark(line[at:]))
	}
	kept := all[:0]
	for _, s := range all {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

func trimListMark(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(listMark.ReplaceAllString(s, ""))
}
