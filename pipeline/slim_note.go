package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// layNote writes the note at the head with the largest possible numbers, or none if it would take over half of the
// budget.
func (s *slimmer) layNote() {
	s.noting = true
	s.hint = Truncate(s.escape(strings.Join(strings.Fields(s.in.TranscriptHint), " ")), 500)
	for _, hint := range []string{s.hint, ""} {
		s.hint = hint
		s.note = s.writeNote(len(s.in.Messages), len(s.in.Messages))
		if Chars(s.note) <= s.in.BudgetChars/2 {
			return
		}
	}
	s.noting, s.note = false, ""
}

// touchedShare is the share of the budget that the note may use for the files and tasks of the dropped calls, and
// maxTouched its maximum in chars. Without them a summarizer would not know which files the work was about and what is
// open.
const (
	touchedShare = 20
	maxTouched   = 4000
)

// layTouched adds to the note the files that the dropped calls touched last, and the agent's open tasks.
func (s *slimmer) layTouched() {
	if !s.noting {
		return
	}
	d := newDigest(s.work)
	for i, m := range s.in.Messages {
		s.spend(0)
		for _, p := range m.Parts {
			if s.dropped[i] && p.Kind == PartToolCall {
				d.call(p, false)
			}
		}
	}
	room := min(s.in.BudgetChars/touchedShare, maxTouched)
	open, _ := openTasks(s.work, s.in.Messages)
	tasks := s.lastThatFit(open, "; ", room/2)
	s.touched = listLine(" Open on the agent's list: ", tasks, "; ")
	files := s.lastThatFit(d.files.lines(), ", ", room-Chars(s.touched))
	s.touched += listLine(" Files that the omitted tool calls touched, the last ones last: ", files, ", ")
	s.note = s.writeNote(len(s.in.Messages), len(s.in.Messages))
	if Chars(s.note) > s.in.BudgetChars/2 {
		s.touched = ""
		s.note = s.writeNote(len(s.in.Messages), len(s.in.Messages))
	}
}

// lastThatFit returns the last items that fit into room chars, each on one line, without secrets and without tags.
func (s *slimmer) lastThatFit(items []string, between string, room int) []string {
	var kept []string
	for i := len(items) - 1; i >= 0; i-- {
		s.spend(len(items[i]))
		item := strings.Join(strings.Fields(items[i]), " ")
		if s.in.Redact != nil {
			item = s.in.Redact(item)
		}
		item = s.escape(item)
		if room -= Chars(item) + len(between); room < 0 {
			break
		}
		kept = append(kept, item)
	}
	slices.Reverse(kept)
	return kept
}

func listLine(title string, items []string, between string) string {
	if len(items) == 0 {
		return ""
	}
	return title + strings.Join(items, between) + "."
}

func (s *slimmer) writeNote(omitted, cut int) string {
	note := fmt.Sprintf(
		"[Note: of %d messages, %d were omitted and %d shortened for size; they may be anywhere in this record.",
		len(s.in.Messages), omitted, cut)
	if s.hint != "" {
		note += " The full transcript: " + s.hint
	}
	return note + s.touched + "]\n"
}
