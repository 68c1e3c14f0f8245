package pipeline

import "strings"

// segment is a piece of a message that is cut as a unit.
type segment struct {
	text  string
	chars int
	kind  segmentKind
	// glued reports that it follows the previous segment without a line break.
	glued bool
}

type segmentKind int

const (
	segmentText segmentKind = iota
	segmentQuery
	segmentCall
	segmentResult
)

func (k segmentKind) tool() bool { return k == segmentCall || k == segmentResult }

// element is one message in the result, or the user's words or the tool results of one message.
type element struct {
	message  int // index into the messages
	role     Role
	open     string // the opening tag, "" for a line alone
	close    string
	segments []segment
	body     int // chars between the tags
	summary  bool
	genuine  bool
	marker   bool // a line of ours, for tool calls that were dropped

	// room is what the body may take: body if whole, omitted if left out.
	room int
}

const omitted = -1

// wrap returns the size of the tags and line breaks of an element, in chars. Tags are ASCII.
func (e *element) wrap() int {
	if e.open == "" {
		return len("\n")
	}
	return len(e.open) + len(e.close) + len("\n\n\n")
}

func (e *element) full() int { return e.wrap() + e.body }

// measure counts the chars of the segments and of the body.
func (e *element) measure() {
	e.body = 0
	for i := range e.segments {
		s := &e.segments[i]
		if s.chars == 0 {
			s.chars = Chars(s.text)
		}
		e.body += s.chars
		if i > 0 && !s.glued {
			e.body++
		}
	}
	e.room = e.body
}

// query returns how much of the body the user's message marks as typed.
func (e *element) query() int {
	n := 0
	for _, s := range e.segments {
		if s.kind == segmentQuery {
			n += s.chars
		}
	}
	return n
}

// appendElement measures an element and adds it, unless it is empty.
func appendElement(to []element, e element) []element {
	if len(e.segments) == 0 {
		return to
	}
	e.measure()
	return append(to, e)
}

// splitQuery divides a text of a user message at its <user_query> blocks, which contain what the person typed.
func splitQuery(text string) []segment {
	const open, end = "<user_query>", "</user_query>"
	var segments []segment
	add := func(text string, kind segmentKind) {
		if text != "" {
			segments = append(segments, segment{text: text, kind: kind, glued: len(segments) > 0})
		}
	}
	for {
		from := strings.Index(text, open)
		if from < 0 {
			break
		}
		to := len(text)
		if n := strings.Index(text[from:], end); n >= 0 {
			to = from + n + len(end)
		}
		add(text[:from], segmentText)
		add(text[from:to], segmentQuery)
		text = text[to:]
	}
	add(text, segmentText)
	return segments
}

// write writes the element in the room that it has.
func (e *element) write(out *strings.Builder) {
	if e.open != "" {
		out.WriteString(e.open)
		out.WriteByte('\n')
	}
	if e.room < e.body {
		out.WriteString(e.cutBody())
	} else {
		for i, s := range e.segments {
			if i > 0 && !s.glued {
				out.WriteByte('\n')
			}
			out.WriteString(s.text)
		}
	}
	out.WriteByte('\n')
	if e.open != "" {
		out.WriteString(e.close)
		out.WriteByte('\n')
	}
}

func (e *element) joined() string {
	var out strings.Builder
	for i, s := range e.segments {
		if i > 0 && !s.glued {
			out.WriteByte('\n')
		}
		out.WriteString(s.text)
	}
	return out.String()
}
