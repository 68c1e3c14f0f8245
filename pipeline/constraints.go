package pipeline

import (
	"regexp"
	"strings"
)

// constraint is a sentence that sets a limit.
type constraint struct {
	text string
	// messageChars is the size of its message, 0 for one from an earlier summary.
	messageChars int
}

// constraints returns the sentences of genuine user messages that set a limit, and those that an earlier summary has in
// its section of limits or in its list of the user's messages, each once, in order.
func constraints(source []Message) []constraint {
	var all []constraint
	seen := map[string]bool{}
	add := func(sentence string, messageChars int) {
		if key := flat(sentence); key != "" && !seen[key] {
			seen[key] = true
			all = append(all, constraint{sentence, messageChars})
		}
	}
	addSaid := func(text string) {
		for _, s := range saidSentences(text) {
			if Chars(s) <= maxConstraintChars && setsLimit(s) {
				add(s, Chars(text))
			}
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
				for _, said := range listedUsers(p.Text) {
					addSaid(said)
				}
			case m.Genuine():
				addSaid(p.Text)
			}
		}
	}
	return all
}

// saidSentences divides the user's words in a text into sentences, without what was pasted or added by a program.
func saidSentences(text string) []string {
	all := sentences(withoutPrinted(withoutFences(saidText(text))))
	for i, s := range all {
		all[i] = withoutTags(s)
	}
	return all
}

// sectionItems returns the list of a section that appendSection wrote.
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

// withoutFences returns a text without what was pasted between fences.
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
	abbreviation = regexp.MustCompile(
		`(?i)(^|[\s(])(e\.g|i\.e|etc|vs|cf|no|nr|bzw|z\.\s?b|d\.\s?h|u\.\s?a|approx|p\.\s?ex|par ` +
			`ex|ej|mr|ms|dr|st)\.\s*$`)
	listMark = regexp.MustCompile(`^([-*+•]|\d{1,3}[.)])\s+`)
)

// sentences divides a text, without list marks and surrounding white space. A line that ends in a colon keeps the list
// below it, since it has no meaning without.
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
			if !abbreviated(line[at:m[1]]) {
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

// abbreviated reports whether a text ends in an abbreviation. The longest of them is short.
func abbreviated(s string) bool {
	const end = 24
	if len(s) > end {
		s = "x" + s[len(s)-end:]
	}
	return abbreviation.MatchString(s)
}

func trimListMark(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(listMark.ReplaceAllString(s, ""))
}
