package layout

import (
	"slices"
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
	default: // reminders only, blank, or no content at all
		m.Kind = pipeline.KindReminder
	}
	return m
}

// What Claude Code writes into user messages, in its files and in its requests. Wrappers of commands that expand into
// a prompt begin with <command-message> and contain the input of the user (or of `claude -p`): those are genuine.
// Wrappers of commands that run in the client begin with <command-name>.
var (
	reminderTags = []string{
		"system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics",
		"local-command-caveat",
	}
	syntheticTags = []string{
		"command-name", "local-command-stdout", "local-command-stderr", "task-notification",
		"bash-input", "bash-stdout", "bash-stderr", "user-memory-input",
	}
	interruptions = []string{"[Request interrupted by user]", "[Request interrupted by user for tool use]"}
)

// textKind returns the kind of a text of role user.
func textKind(s string) pipeline.Kind {
	s = strings.TrimSpace(s)
	switch {
	case s == "", slices.ContainsFunc(reminderTags, func(tag string) bool { return Enclosed(s, tag) }):
		return pipeline.KindReminder
	case slices.ContainsFunc(syntheticTags, func(tag string) bool {
		return Enclosed(s, tag) || tag == "command-name" && strings.HasPrefix(s, "<"+tag+">")
	}),
		slices.Contains(interruptions, s):
		return pipeline.KindSynthetic
	}
	return pipeline.KindOrdinary
}

// Enclosed reports whether a text begins with the opening tag and ends with the closing one.
func Enclosed(s, tag string) bool {
	return strings.HasPrefix(s, "<"+tag+">") && strings.HasSuffix(s, "</"+tag+">")
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
