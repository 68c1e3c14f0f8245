package pipeline

import (
	"cmp"
	"slices"
	"strings"
)

// digest is the material of a digest.
type digest struct {
	*work
	earlier  element
	user     []element
	todo     string
	said     []element
	files    recentList
	changed  map[string]bool // files that were changed, not only read
	commands recentList
}

func newDigest(w *work) *digest { return &digest{work: w, changed: map[string]bool{}} }

func collectDigest(w *work, ms []Message) *digest {
	d := newDigest(w)
	failed := failedCalls(w, ms)
	said := -1 // the last message of the assistant with text in this turn
	endTurn := func() {
		if said >= 0 {
			d.said = d.appendQuote(d.said, ms[said], said)
		}
		said = -1
	}
	for i, m := range ms {
		w.spend(0)
		switch {
		case m.Kind == KindSummary:
			d.fold(RenderMessage(m))
		case m.Genuine():
			endTurn()
			d.user = d.appendQuote(d.user, m, i)
		case m.Role == RoleAssistant:
			for j, p := range m.Parts {
				w.spend(0)
				switch {
				case p.Kind == PartToolCall:
					d.call(p, failed[[2]int{i, j}])
				case p.Kind == PartText && strings.TrimSpace(p.Text) != "":
					said = i
				}
			}
		}
	}
	endTurn()
	d.earlier.measure()
	return d
}

// failedCalls returns the calls, by message and part, whose results are errors.
func failedCalls(w *work, ms []Message) map[[2]int]bool {
	failed := map[[2]int]bool{}
	for _, pair := range pair(w, ms).Pairs {
		if ms[pair.Result.Message].Parts[pair.Result.Part].IsError {
			failed[[2]int{pair.Call.Message, pair.Call.Part}] = true
		}
	}
	return failed
}

// appendQuote adds the text of a message, without its calls, results and reasoning.
func (d *digest) appendQuote(quotes []element, m Message, index int) []element {
	e := element{
		message: index, role: m.Role, open: openTag(quoteTag, m.Seq, renderRole(m)),
		close: "</" + quoteTag + ">", genuine: m.Genuine(),
	}
	for _, p := range m.Parts {
		if p.Kind == PartToolCall || p.Kind == PartToolResult {
			continue
		}
		d.spend(partBytes(p))
		text, _ := renderPart(p, "")
		if text = escapeDigest(text); text != "" {
			e.segments = append(e.segments, splitQuery(text)...)
		}
	}
	return appendElement(quotes, e)
}

// recentList is a list of distinct lines; the line that was added last is at the end.
type recentList struct {
	last  map[string]int
	count int
}

func (l *recentList) add(line string) {
	if l.last == nil {
		l.last = map[string]int{}
	}
	l.count++
	l.last[line] = l.count
}

func (l *recentList) lines() []string {
	lines := make([]string, 0, len(l.last))
	for line := range l.last {
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(l.last[a], l.last[b]) })
	return lines
}

// oneLine returns the first line of a text, of bounded length.
func oneLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.TrimSpace(line)
	if strings.TrimSpace(rest) != "" {
		line += " …"
	}
	return escapeDigest(toolName(line))
}
