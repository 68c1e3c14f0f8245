package pipeline

import (
	"cmp"
	"regexp"
	"slices"
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
func constraints(w *work, source []Message) []constraint {
	var all []constraint
	seen, tried := map[string]bool{}, map[string]bool{}
	add := func(sentence string, messageChars int) {
		if key := flat(w, sentence); key != "" && !seen[key] {
			seen[key] = true
			all = append(all, constraint{sentence, messageChars})
		}
	}
	addSaid := func(text string) {
		size := Chars(text)
		for _, s := range saidSentences(w, text) {
			if tried[s] || Chars(s) > maxConstraintChars {
				continue
			}
			w.spend(limitCost * len(s))
			if tried[s] = true; setsLimit(s) {
				add(s, size)
			}
		}
	}
	for _, m := range source {
		w.spend(0)
		for _, p := range m.Parts {
			switch {
			case p.Kind != PartText:
			case m.Kind == KindSummary:
				for _, item := range sectionItems(w, p.Text, constraintsTitle) {
					add(item, 0)
				}
				for _, said := range listedUsers(w, p.Text) {
					addSaid(said)
				}
			case m.Genuine():
				addSaid(p.Text)
			}
		}
	}
	return mostLikely(all)
}

// limitCost is how many times the work of reading a sentence it is to judge whether it sets a limit.
const limitCost = 16

// mostLikely keeps maxConstraints limits, in order: the first ones by likelier.
func mostLikely(all []constraint) []constraint {
	if len(all) <= maxConstraints {
		return all
	}
	order := byLikelihood(all)[:maxConstraints]
	slices.Sort(order)
	kept := make([]constraint, 0, maxConstraints)
	for _, i := range order {
		kept = append(kept, all[i])
	}
	return kept
}

// byLikelihood returns the indexes of limits: those of short messages first, since a long message is probably pasted,
// and among them the short sentences.
func byLikelihood(limits []constraint) []int {
	order, chars := make([]int, len(limits)), make([]int, len(limits))
	for i, c := range limits {
		order[i], chars[i] = i, Chars(c.text)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(limits[a].messageChars, limits[b].messageChars), cmp.Compare(chars[a], chars[b]))
	})
	return order
}

// saidSentences divides the user's words in a text into sentences, without what was pasted or added by a program.
func saidSentences(w *work, text string) []string {
	all := sentences(w, withoutPrinted(w, withoutFences(w, saidText(w, text))))
	for i, s := range all {
		w.spend(len(s))
		all[i] = withoutTags(s)
	}
	return all
}

// sectionItems returns the list of a section that appendSection wrote.
func sectionItems(w *work, text, title string) []string {
	_, rest, found := strings.Cut(text, title)
	if !found {
		return nil
	}
	var items listItems
	for line := range strings.Lines(rest) {
		w.spend(len(line))
		line = strings.TrimRight(line, "\r\n")
		if !items.add(line) && strings.TrimSpace(line) != "" {
			break
		}
	}
	return items.all()
}

// listItems collects the entries of a list that listItem wrote.
type listItems struct {
	done []string
	last strings.Builder
	any  bool
}

// add adds a line and reports whether it belongs to the list.
func (l *listItems) add(line string) bool {
	if item, listed := strings.CutPrefix(line, "- "); listed {
		l.end()
		l.any = true
		l.last.WriteString(item)
		return true
	}
	more, continued := strings.CutPrefix(line, "  ")
	if !continued || !l.any {
		return false
	}
	l.last.WriteString("\n" + more)
	return true
}

func (l *listItems) end() {
	if l.any {
		l.done = append(l.done, l.last.String())
	}
	l.last.Reset()
	l.any = false
}

// all returns the entries.
func (l *listItems) all() []string {
	l.end()
	return l.done
}

// withoutFences returns a text without what was pasted between fences.
func withoutFences(w *work, text string) string {
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return text
	}
	var kept strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		w.spend(len(line))
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
func sentences(w *work, text string) []string {
	var all []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	for more := true; more; {
		var line string
		line, text, more = strings.Cut(text, "\n")
		line = trimListMark(line)
		at := 0
		for _, m := range findAll(sentenceEnd, w.pieces(line)) {
			if !abbreviated(line[at:m[1]]) {
				add(line[at:m[1]])
				at = m[1]
			}
		}
		last := line[at:]
		if strings.HasSuffix(last, ":") || strings.HasSuffix(last, "：") {
			var list strings.Builder
			list.WriteString(last)
			for more {
				next, rest, behind := strings.Cut(text, "\n")
				w.spend(len(next))
				if next = strings.TrimSpace(next); !listMark.MatchString(next) {
					break
				}
				list.WriteString("\n" + next)
				text, more = rest, behind
			}
			last = list.String()
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
