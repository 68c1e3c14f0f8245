package layout

import (
	"strings"

	"precis/pipeline"
)

// Message returns the decoded message, with role and kind by meaning.
func (l *Layout) Message() pipeline.Message {
	m := pipeline.Message{Native: l.Native, Role: pipeline.Role(l.Role), Parts: parts(l.Nodes)}
	if l.fixed {
		m.Role, m.Kind = l.speaker, l.kind
	}
	if l.fixed || m.Role != pipeline.RoleUser {
		return m
	}
	results, others := 0, 0
	texts := map[pipeline.Kind]int{}
	for _, p := range m.Parts {
		switch p.Kind {
		case pipeline.PartToolResult:
			results++
		case pipeline.PartText:
			texts[textKind(p.Text)]++
		default:
			others++
		}
	}
	switch {
	case texts[pipeline.KindOrdinary] > 0:
	case results > 0: // an image or a file beside results, without text, is from a tool
		m.Role = pipeline.RoleTool
	case others > 0:
	case texts[pipeline.KindSynthetic] > 0:
		m.Kind = pipeline.KindSynthetic
	case texts[pipeline.KindUserInfo] > 0:
		m.Kind = pipeline.KindUserInfo
	default: // reminders only, blank, or no content at all
		m.Kind = pipeline.KindReminder
	}
	return m
}

// The first words of summaries: the element that precis writes, the element of Gemini CLI, and the sentence of Claude
// Code.
const (
	summaryTag      = "conversation_summary"
	geminiSnapshot  = "<state_snapshot>"
	claudeCodeRecap = "This session is being continued from a previous conversation that ran out of context"
)

// LooksLikeSummary reports whether the first text of a message is the summary of an earlier compaction.
func LooksLikeSummary(m pipeline.Message) bool {
	for _, p := range m.Parts {
		if p.Kind != pipeline.PartText || textKind(p.Text) != pipeline.KindOrdinary {
			continue
		}
		s := strings.TrimSpace(p.Text)
		return strings.HasPrefix(s, "<"+summaryTag) && strings.Contains(s, "</"+summaryTag+">") ||
			strings.HasPrefix(s, geminiSnapshot) || strings.HasPrefix(s, claudeCodeRecap)
	}
	return false
}
