package pipeline

import "strings"

// markerRoom is the size of the longest marker of a cut, with its line break.
const markerRoom = 40

// cutBody returns the body cut to the room of the element. What the user marked as typed stays whole first, and the
// other segments share the rest fairly. A segment that would keep next to nothing is dropped, and counted by the marker
// at the end.
func (e *element) cutBody() string {
	if len(e.segments) == 1 {
		return e.segments[0].cut(e.room, e.summary)
	}
	room := e.room - markerRoom - len(e.segments)
	sizes := [2][]int{make([]int, len(e.segments)), make([]int, len(e.segments))}
	for i, s := range e.segments {
		if s.kind == segmentQuery {
			sizes[0][i] = s.chars
		} else {
			sizes[1][i] = s.chars
		}
	}
	shares := fairShare(sizes[0], room)
	for i, n := range fairShare(sizes[1], room-sum(shares)) {
		shares[i] += n
	}
	var out strings.Builder
	dropped := 0
	for i, s := range e.segments {
		if shares[i] < s.chars && shares[i] < markerRoom {
			dropped += s.chars
			continue
		}
		if out.Len() > 0 && !s.glued {
			out.WriteByte('\n')
		}
		out.WriteString(s.cut(shares[i], e.summary))
	}
	if out.Len() == 0 {
		return truncateCounted(e.joined(), e.body, e.room)
	}
	if dropped > 0 {
		out.WriteString("\n" + truncatedMarker(dropped))
	}
	return out.String()
}

// cut returns the segment in at most room chars: both ends of a tool result and of an earlier summary, the start of
// anything else.
func (s segment) cut(room int, ends bool) string {
	switch {
	case room >= s.chars:
		return s.text
	case ends || s.kind == segmentResult:
		return headAndTailCounted(s.text, s.chars, room)
	}
	return truncateCounted(s.text, s.chars, room)
}
