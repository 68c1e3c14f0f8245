package pipeline

import "strings"

// Fate is what happened to a message that a summarizer does not see whole.
type Fate string

// The fates.
const (
	FateCut          Fate = "cut"           // its start, or both ends, are shown
	FateOmitted      Fate = "omitted"       // a placeholder replaces it, alone or with adjacent messages
	FateToolsDropped Fate = "tools_dropped" // its tool calls or results were dropped; its text stayed
)

// Omission is one message that a summarizer does not see whole.
type Omission struct {
	Seq  int64 `json:"seq"`
	Role Role  `json:"role"`
	// Chars is the size of the message as rendered.
	Chars int  `json:"chars"`
	Fate  Fate `json:"fate"`
}

// result writes the text and counts what happened to the messages.
func (s *slimmer) result() Slimmed {
	const (
		whole = 1 << iota
		cut
		dropped
	)
	fates := make([]int, len(s.in.Messages))
	var out strings.Builder
	out.Grow(s.bytes())
	var run omittedRun
	for i := range s.elements {
		e := &s.elements[i]
		s.spend(max(e.room, 0))
		if e.room == omitted {
			fates[e.message] |= dropped
			if !s.runs {
				out.WriteString(omittedLine(e) + "\n")
			} else if !s.bare {
				run.add(e)
			}
			continue
		}
		run.flush(&out)
		switch {
		case e.marker:
		case e.room < e.body:
			fates[e.message] |= cut
		default:
			fates[e.message] |= whole
		}
		e.write(&out)
	}
	run.flush(&out)

	leftOut := 0
	for i, m := range s.in.Messages {
		s.spend(0)
		fate := Fate("")
		switch {
		case fates[i] == dropped:
			s.out.Placeholders++
			leftOut++
			fate = FateOmitted
		case fates[i]&(cut|dropped) != 0:
			s.out.Cut++
			fate = FateCut
		case s.dropped[i]:
			s.out.DroppedTools++
			fate = FateToolsDropped
			if fates[i] == 0 {
				leftOut++
			}
		case fates[i] != 0:
			s.out.Whole++
		}
		if fate != "" {
			s.out.Omitted = append(s.out.Omitted, Omission{Seq: m.Seq, Role: m.Role, Chars: s.chars[i], Fate: fate})
		}
	}
	text := out.String()
	if n := len(s.out.Omitted); n > 0 && s.noting {
		text = s.writeNote(leftOut, n-leftOut) + text
	}
	s.out.Text = strings.TrimSuffix(text, "\n")
	s.out.Chars = Chars(s.out.Text)
	return s.out
}

// bytes returns about how long the result gets.
func (s *slimmer) bytes() int {
	n := 0
	for i := range s.elements {
		if e := &s.elements[i]; e.room == e.body {
			for _, seg := range e.segments {
				n += len(seg.text)
			}
		} else {
			n += 2 * max(e.room, 0)
		}
		n += 64
	}
	return n
}
