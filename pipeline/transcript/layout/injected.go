package layout

import (
	"regexp"
	"slices"
	"strings"

	"precis/pipeline"
)

// A text of role user may have what a program wrote for the user: reminders, the state of an editor, the output of a
// command. Such matter is in elements. They are taken out wherever they are, if they are balanced; whatever is left is
// the user's.

// injected are the elements that programs write into user messages, with the kind of a message that has nothing else.
// Names are in lower case and have dashes.
var injected = map[string]pipeline.Kind{
	"system-reminder":      pipeline.KindReminder,
	"system-notification":  pipeline.KindReminder,
	"system-message":       pipeline.KindReminder,
	"reminder":             pipeline.KindReminder,
	"current-datetime":     pipeline.KindReminder,
	"ide-opened-file":      pipeline.KindReminder,
	"ide-selection":        pipeline.KindReminder,
	"ide-diagnostics":      pipeline.KindReminder,
	"local-command-caveat": pipeline.KindReminder,
	"environment-details":  pipeline.KindReminder,

	"command-name":            pipeline.KindSynthetic,
	"local-command-stdout":    pipeline.KindSynthetic,
	"local-command-stderr":    pipeline.KindSynthetic,
	"task-notification":       pipeline.KindSynthetic,
	"bash-input":              pipeline.KindSynthetic,
	"bash-stdout":             pipeline.KindSynthetic,
	"bash-stderr":             pipeline.KindSynthetic,
	"user-memory-input":       pipeline.KindSynthetic,
	"user-prompt-submit-hook": pipeline.KindSynthetic,

	"environment-context": pipeline.KindUserInfo,
	"user-instructions":   pipeline.KindUserInfo,
	"session-context":     pipeline.KindUserInfo,
	"available-skills":    pipeline.KindUserInfo,
}

// ofCommand are elements that belong to the wrapper of a command which runs in the client. Alone they are the wrapper
// of a command that expands into a prompt, whose arguments are the user's words.
var ofCommand = []string{"command-message", "command-args", "command-contents"}

// interruptions are the texts that Claude Code writes for the user when the user interrupts it.
var interruptions = []string{"[Request interrupted by user]", "[Request interrupted by user for tool use]"}

var (
	// anyTag matches an opening or a closing tag, with any attributes and blanks.
	anyTag = regexp.MustCompile(`<\s*(/?)\s*([A-Za-z][A-Za-z0-9_-]*)(?:\s[^<>]*)?>`)
	// rulesHeading is what Codex writes in front of the rules of a project.
	rulesHeading = regexp.MustCompile(`^# AGENTS\.md instructions(?: for [^\n]*)?\s*<INSTRUCTIONS>`)
)

// Injected returns the kind of a text of role user that has nothing but elements which programs inject, those of more
// among them. It reports false if anything is left of the text when each balanced element is taken out: that is the
// user's. A blank text has nothing left, and the kind of a reminder.
func Injected(text string, more map[string]pipeline.Kind) (kind pipeline.Kind, ok bool) {
	kind = pipeline.KindReminder
	command := false
	for {
		if text = strings.TrimSpace(text); text == "" {
			return kind, true
		}
		found, name, from := pipeline.KindUserInfo, "instructions", 0
		if at := rulesHeading.FindStringIndex(text); at != nil {
			from = at[1]
		} else {
			at := anyTag.FindStringSubmatchIndex(text)
			if at == nil || at[0] > 0 || at[3] > at[2] {
				return "", false
			}
			name, from = elementName(text[at[4]:at[5]]), at[1]
			if found = more[name]; found == "" {
				found = injected[name]
			}
			if found == "" && command && slices.Contains(ofCommand, name) {
				found = pipeline.KindSynthetic
			}
		}
		end := elementEnd(text, from, name)
		if found == "" || end < 0 {
			return "", false
		}
		command = command || name == "command-name"
		if kind != pipeline.KindSynthetic && found != pipeline.KindReminder {
			kind = found
		}
		text = text[end:]
	}
}

// elementName returns the name of an element in the spelling of injected.
func elementName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// elementEnd returns the end of an element whose opening tag ends at from, -1 if it is not closed. Elements of the same
// name inside of it are skipped.
func elementEnd(text string, from int, name string) int {
	depth := 1
	for at := from; ; {
		m := anyTag.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return -1
		}
		start := at
		at += m[1]
		if elementName(text[start+m[4]:start+m[5]]) != name {
			continue
		}
		if m[3] > m[2] {
			depth--
		} else {
			depth++
		}
		if depth == 0 {
			return at
		}
	}
}

// textKind returns the kind of a text of role user.
func textKind(s string) pipeline.Kind {
	if slices.Contains(interruptions, strings.TrimSpace(s)) {
		return pipeline.KindSynthetic
	}
	if kind, ok := Injected(s, nil); ok {
		return kind
	}
	return pipeline.KindOrdinary
}
