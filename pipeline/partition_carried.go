package pipeline

import (
	"slices"
	"strings"
)

// minWorthTokens is the least that is worth a summary if it contains no user message: the frame of the summary message
// alone costs about as much.
const minWorthTokens = 64

// carried lists the user messages in front of the split that stay verbatim. User messages without an answer are never
// in front of it.
func (d *division) carried(split int) []int {
	if d.lastUser >= 0 && d.lastUser < split {
		return []int{d.lastUser}
	}
	return nil
}

// worthIt reports whether a summary of the messages in front of the split would replace anything that does not stay
// anyway.
func (d *division) worthIt(split int, carried []int) bool {
	tokens := 0
	for p := 0; p < split; p++ {
		m := d.conv[p]
		d.spend(0)
		if slices.Contains(carried, p) || m.Kind != KindOrdinary || !hasContent(m) {
			continue
		}
		if m.Genuine() {
			return true
		}
		tokens += d.after[p] - d.after[p+1]
	}
	if d.in.Again && d.hasPrior() && split > 0 {
		return true
	}
	return tokens >= minWorthTokens
}

func (d *division) anyContent() bool {
	for _, m := range d.conv {
		d.spend(bytesOf(m))
		if hasContent(m) {
			return true
		}
	}
	return false
}

// hasContent reports whether a message has any content.
func hasContent(m Message) bool {
	for _, p := range m.Parts {
		if p.Kind != PartText && p.Kind != PartReasoning || strings.TrimSpace(p.Text) != "" {
			return true
		}
	}
	return false
}
