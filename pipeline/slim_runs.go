package pipeline

import (
	"strconv"
	"strings"
)

// fitRuns keeps as many messages as there is useful room for, and writes one line for each run of the others. It
// reports whether any message could be kept.
func (s *slimmer) fitRuns(room int) bool {
	least, line := make([]int, len(s.elements)), s.runLine()
	left := room - s.gaps()*line
	keep := func(from int, genuine bool, limit int) {
		for i := from; i >= 0; i-- {
			s.spend(0)
			e := &s.elements[i]
			if e.summary || e.marker || e.genuine != genuine || e.room != omitted {
				continue
			}
			need := e.wrap() + min(e.body, s.useful())
			if left-need-line < limit {
				return
			}
			left -= need + line
			e.room, least[i] = need-e.wrap(), need
		}
	}
	for i := range s.elements {
		if e := &s.elements[i]; !e.summary {
			e.room = omitted
		}
	}
	newest := len(s.elements) - 1
	keep(newest, true, left/2) // the user's words first, the newest of them first, but not alone
	keep(newest, false, 0)
	keep(newest, true, 0)

	more := make([]int, len(s.elements))
	kept := false
	for i := range s.elements {
		if least[i] > 0 {
			more[i] = s.elements[i].full() - least[i]
			kept = true
		}
	}
	for i, n := range fairShare(more, left) {
		if least[i] > 0 {
			s.elements[i].room += n
		}
	}
	return kept
}

// fitOne is for a room in which nothing useful fits: it keeps as much as possible of the newest user message, or else
// of the newest message, without a line about the rest. If an earlier summary has room already, only the line about the
// rest is written.
func (s *slimmer) fitOne(room int) {
	pick := -1
	better := func(a, b *element) bool { // a is newer
		if a.summary != b.summary {
			return b.summary
		}
		return a.genuine || !b.genuine
	}
	for i := range s.elements {
		e := &s.elements[i]
		if e.summary && e.room != omitted {
			s.bare = room < s.gaps()*s.runLine()
			return
		}
		if !e.marker && (pick < 0 || better(e, &s.elements[pick])) {
			pick = i
		}
	}
	s.bare = true
	if pick < 0 {
		return
	}
	e := &s.elements[pick]
	if room > e.wrap() {
		room -= e.wrap()
	} else {
		// The text alone: nothing in it can be mistaken for structure.
		e.open, e.close = "", ""
	}
	if room > 0 {
		e.room = min(room, e.body)
	}
}

// gaps returns the number of runs if every message except the summaries that have room is omitted.
func (s *slimmer) gaps() int {
	n, inside := 0, false
	for i := range s.elements {
		if e := &s.elements[i]; e.summary && e.room != omitted {
			inside = false
			continue
		}
		if !inside {
			n++
		}
		inside = true
	}
	return n
}

// omittedLine returns the line in place of one element.
func omittedLine(e *element) string {
	return "[omitted " + string(e.role) + " message, " + strconv.Itoa(e.body) + " chars]"
}

// omittedRunLine returns the line in place of several messages.
func omittedRunLine(messages, chars int) string {
	return "[omitted " + strconv.Itoa(messages) + " messages, " + strconv.Itoa(chars) + " chars]"
}

// runLine returns the most that the line for a run of omitted messages takes, in chars.
func (s *slimmer) runLine() int {
	total := sum(s.chars)
	one := omittedLine(&element{role: RoleAssistant, body: total})
	return max(len(one), len(omittedRunLine(len(s.in.Messages), total))) + len("\n")
}

// omittedRun collects adjacent omitted elements for one line.
type omittedRun struct {
	first    *element
	elements int
	messages int
	last     int
	chars    int
}

func (r *omittedRun) add(e *element) {
	if e.marker {
		return
	}
	if r.first == nil {
		r.first = e
	}
	if r.elements == 0 || r.last != e.message {
		r.messages++
	}
	r.elements, r.last, r.chars = r.elements+1, e.message, r.chars+e.body
}

func (r *omittedRun) flush(out *strings.Builder) {
	switch {
	case r.elements == 1:
		out.WriteString(omittedLine(r.first) + "\n")
	case r.elements > 1:
		out.WriteString(omittedRunLine(r.messages, r.chars) + "\n")
	}
	*r = omittedRun{}
}
