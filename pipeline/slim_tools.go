package pipeline

import "fmt"

// dropTools removes all tool calls and results, so that no pair is separated. It reports whether it did.
func (s *slimmer) dropTools() bool {
	tools, all := 0, 0
	for _, m := range s.in.Messages {
		switch {
		case m.Role == RoleSystem || m.Kind == KindUserInfo || m.Kind == KindSummary:
			continue
		case m.Role == RoleTool:
			tools++
		}
		all++
	}
	if tools == 0 || float64(tools) < s.in.ToolDropThreshold*float64(all) || !s.hasProse() {
		return false
	}
	// A run of messages with nothing but tool calls and results becomes one line.
	var kept []element
	calls, results, marker, said := 0, 0, -1, false
	endTurn := func() {
		if marker >= 0 && !said {
			line := fmt.Sprintf("[%d tool calls and %d results omitted]", calls, results)
			kept[marker].segments = []segment{{text: line}}
			kept[marker].measure()
		}
		calls, results, marker, said = 0, 0, -1, false
	}
	for _, e := range s.elements {
		s.spend(0)
		if e.genuine {
			endTurn()
		}
		var rest []segment
		for _, seg := range e.segments {
			switch seg.kind {
			case segmentCall:
				calls++
			case segmentResult:
				results++
			default:
				rest = append(rest, seg)
			}
		}
		if len(rest) < len(e.segments) {
			s.dropped[e.message] = true
			if marker < 0 {
				marker = len(kept)
				kept = append(kept, element{message: e.message, role: e.role, marker: true})
			}
		}
		if len(rest) == 0 {
			continue
		}
		said = said || e.role == RoleAssistant
		e.segments = rest
		e.measure()
		kept = append(kept, e)
	}
	endTurn()
	s.elements = kept[:0]
	for _, e := range kept {
		if len(e.segments) > 0 {
			s.elements = append(s.elements, e)
		}
	}
	return true
}

// hasProse reports whether there is text besides tools and summaries.
func (s *slimmer) hasProse() bool {
	for _, e := range s.elements {
		if e.summary || e.role != RoleUser && e.role != RoleAssistant {
			continue
		}
		for _, seg := range e.segments {
			if !seg.kind.tool() {
				return true
			}
		}
	}
	return false
}
