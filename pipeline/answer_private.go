package pipeline

import (
	"regexp"
	"strings"
)

// privateTags are the names of the elements in which models write what is not part of their answer.
var privateTags = []string{"analysis", "thinking", "think", "reasoning", "scratchpad"}

var (
	privateOpen = regexp.MustCompile(`(?i)<\s*(` + strings.Join(privateTags, "|") + `)(\s[^<>]*)?>`)
	privateEnd  = regexp.MustCompile(`(?i)<\s*/\s*(` + strings.Join(privateTags, "|") + `)\s*>`)
)

// dropPrivate removes the analysis and the reasoning in front of the summary. An element that is never closed is
// removed up to the summary, or to the end.
//
// The cost is linear: the tags are found once. What is removed may leave the halves of another tag side by side, which
// then counts as one; only the last half tag in front of a gap can be such a half.
func dropPrivate(w *work, text string) string {
	p := privateParts{work: w, text: text}
	p.opens = findAll(privateOpen, w.tagPieces(text))
	if len(p.opens) == 0 {
		return strings.TrimSpace(text)
	}
	p.summaries = findAll(summaryOpen, w.tagPieces(text))
	p.ends = map[string][][]int{}
	for _, end := range findAll(privateEnd, w.tagPieces(text)) {
		name := privateName(text[end[2]:end[3]])
		p.ends[name] = append(p.ends[name], end)
	}
	for p.drop() {
		w.spend(0)
	}
	return strings.TrimSpace(string(p.kept) + text[p.at:])
}

// privateName returns the name of a private element as privateTags has it.
func privateName(name string) string {
	for _, tag := range privateTags {
		if strings.EqualFold(name, tag) {
			return tag
		}
	}
	return ""
}

// privateParts is a text whose private parts are being removed.
type privateParts struct {
	*work
	text string
	kept []byte
	at   int // the rest of the text begins here
	// brackets are the positions of all "<" and ">" in kept.
	brackets []int
	// opens, summaries and ends are the tags of the text that are not passed, ends by name.
	opens, summaries [][]int
	ends             map[string][][]int
}

// drop removes the next private element. It reports false if there is none in front of the summary.
func (p *privateParts) drop() bool {
	name, behind, found := p.joined()
	if !found {
		p.opens = passed(p.opens, p.at)
		p.summaries = passed(p.summaries, p.at)
		if len(p.opens) == 0 || len(p.summaries) > 0 && p.summaries[0][0] < p.opens[0][0] {
			return false
		}
		open := p.opens[0]
		p.keep(p.text[p.at:open[0]])
		name, behind = privateName(p.text[open[2]:open[3]]), open[1]
	}
	p.ends[name] = passed(p.ends[name], behind)
	p.summaries = passed(p.summaries, behind)
	switch {
	case name == "":
		return false
	case len(p.ends[name]) > 0:
		p.at = p.ends[name][0][1]
	case len(p.summaries) > 0:
		p.at = p.summaries[0][0]
	default:
		p.at = len(p.text)
	}
	return true
}

// joined looks for a tag that begins in what was kept and ends in the rest. If it opens a private element, it removes
// its beginning and returns the name and the position behind it; if it opens the summary, it returns no name.
func (p *privateParts) joined() (name string, behind int, found bool) {
	n := len(p.brackets)
	if n == 0 || p.kept[p.brackets[n-1]] != '<' {
		return "", 0, false
	}
	begin := p.brackets[n-1]
	end := strings.IndexAny(p.text[p.at:], "<>")
	if end < 0 || p.text[p.at+end] != '>' {
		return "", 0, false
	}
	behind = p.at + end + 1
	tag := string(p.kept[begin:]) + p.text[p.at:behind]
	p.spend(len(tag))
	if m := summaryOpen.FindStringIndex(tag); m != nil {
		return "", behind, true
	}
	m := privateOpen.FindStringSubmatch(tag)
	if m == nil {
		p.keep(p.text[p.at:behind]) // a tag of another kind
		p.at = behind
		return "", 0, false
	}
	p.kept, p.brackets = p.kept[:begin], p.brackets[:n-1]
	return privateName(m[1]), behind, true
}

// keep adds a text to what is kept.
func (p *privateParts) keep(text string) {
	p.spend(len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '<' || text[i] == '>' {
			p.brackets = append(p.brackets, len(p.kept)+i)
		}
	}
	p.kept = append(p.kept, text...)
}

// passed drops the tags in front of a position.
func passed(tags [][]int, at int) [][]int {
	for len(tags) > 0 && tags[0][0] < at {
		tags = tags[1:]
	}
	return tags
}
