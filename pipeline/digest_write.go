package pipeline

import (
	"fmt"
	"strings"
)

// write returns the digest in at most budget chars.
func (d *digest) write(budget int) string {
	room := budget - len(digestHead) - len("\n")
	if room < 2*digestUseful {
		return d.writeTiny(budget)
	}
	files := d.files.lines()
	for i, path := range files {
		d.spend(0)
		if d.changed[path] {
			files[i] += changedNote
		}
	}
	var earlier []element
	if len(d.earlier.segments) > 0 {
		earlier = []element{d.earlier}
	}
	var todo []element
	if d.todo != "" {
		todo = appendElement(nil, element{segments: []segment{{text: d.todo}}})
	}
	sections := []digestSection{
		{title: sectionEarlier, quotes: earlier},
		{title: sectionUser, quotes: d.user},
		{title: sectionTodo, quotes: todo},
		{title: sectionSaid, quotes: d.said},
		{title: sectionFiles, lines: files},
		{title: sectionCommands, lines: d.commands.lines()},
	}
	var out strings.Builder
	out.WriteString(digestHead + "\n")
	for i, n := range digestRooms(sections, room) {
		out.WriteString(sections[i].write(d.work, n))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// digestRooms divides the room among the sections, in order of importance.
func digestRooms(sections []digestSection, room int) []int {
	needs := make([]int, len(sections))
	for i, s := range sections {
		needs[i] = s.need()
	}
	if sum(needs) <= room {
		return needs
	}
	rooms := make([]int, len(sections))
	// The earlier summary stays whole, except for a minimum for the user's words since.
	rooms[0] = min(needs[0], room-min(needs[1], room/8))
	room -= rooms[0]
	rooms[2] = min(needs[2], room/8)
	room -= rooms[2]
	// The user's words may take three quarters of what is left, and what the other sections do not need.
	copy(rooms[3:], fairShare(needs[3:], room-min(needs[1], room-room/4)))
	rooms[1] = min(needs[1], room-sum(rooms[3:]))
	return rooms
}

// writeTiny returns a digest for a budget that is too small for its head: the newest words of the user, or else
// whatever there is.
func (d *digest) writeTiny(budget int) string {
	var text string
	for _, quotes := range [][]element{d.user, {d.earlier}, d.said} {
		if n := len(quotes); n > 0 && quotes[n-1].body > 0 {
			text = quotes[n-1].joined()
			break
		}
	}
	return Truncate("[Digest] "+text, max(budget, 0))
}

// digestSection is a title over quotes or lines, the newest last.
type digestSection struct {
	title  string
	quotes []element
	lines  []string
}

// need returns the size of the whole section, in chars; 0 if it is empty.
func (s digestSection) need() int {
	n := 0
	for i := range s.quotes {
		n += s.quotes[i].full()
	}
	for _, line := range s.lines {
		n += Chars(line) + len("- \n")
	}
	if n > 0 {
		n += s.frame()
	}
	return n
}

func (s digestSection) frame() int { return len("\n" + s.title + "\n") }

// leftOut returns the line for entries that were left out.
func leftOut(n int) string { return fmt.Sprintf("[%d earlier left out for size]\n", n) }

// write returns the section in at most room chars: every quote, or the newest ones, cut to fair shares; the newest
// lines.
func (s digestSection) write(w *work, room int) string {
	if room <= s.frame() {
		return ""
	}
	var out strings.Builder
	out.WriteString("\n" + s.title + "\n")
	need := s.need()
	body := room - s.frame()
	if need > room {
		body -= len(leftOut(len(s.quotes) + len(s.lines)))
	}
	sizes, least := make([]int, len(s.quotes)), make([]int, len(s.quotes))
	for i := range s.quotes {
		w.spend(0)
		e := &s.quotes[i]
		sizes[i], least[i] = e.full(), min(e.full(), e.wrap()+digestUseful)
	}
	shares := usefulShares(sizes, least, body)
	skipped := 0
	for skipped < len(shares) && shares[skipped] < least[skipped] {
		skipped++
	}
	keepFrom := len(s.lines)
	for keepFrom > 0 && body-Chars(s.lines[keepFrom-1])-len("- \n") >= 0 {
		keepFrom--
		body -= Chars(s.lines[keepFrom]) + len("- \n")
	}
	switch {
	case skipped+keepFrom == len(s.quotes)+len(s.lines):
		return ""
	case skipped+keepFrom > 0:
		out.WriteString(leftOut(skipped + keepFrom))
	}
	for i := skipped; i < len(s.quotes); i++ {
		e := s.quotes[i]
		w.spend(e.body)
		e.room = min(e.body, shares[i]-e.wrap())
		e.write(&out)
	}
	for _, line := range s.lines[keepFrom:] {
		w.spend(len(line))
		out.WriteString("- " + line + "\n")
	}
	return out.String()
}
