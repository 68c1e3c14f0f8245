package layout

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis/pipeline"
)

func TestTextKind(t *testing.T) {
	t.Parallel()
	const (
		ordinary  = pipeline.KindOrdinary
		reminder  = pipeline.KindReminder
		synthetic = pipeline.KindSynthetic
		info      = pipeline.KindUserInfo
	)
	for text, want := range map[string]pipeline.Kind{
		"": reminder, " \n\t": reminder,
		"<system-reminder>a</system-reminder>":                                               reminder,
		"<system-reminder source=\"hook\">a</system-reminder>":                               reminder,
		"<System-Reminder>a</System-Reminder>":                                               reminder,
		"<system_reminder>a</system_reminder>":                                               reminder,
		"< system-reminder >a</ system-reminder >":                                           reminder,
		"<system-reminder>a</system-reminder>\n<ide_selection>b</ide_selection>":             reminder,
		"<system-reminder>a<system-reminder>b</system-reminder>c</system-reminder>":          reminder,
		"<system-reminder>a</system-reminder>b<system-reminder>c</system-reminder>":          ordinary,
		"<system-reminder>a</system-reminder>\nb":                                            ordinary,
		"b\n<system-reminder>a</system-reminder>":                                            ordinary,
		"<system-reminder>a":                                                                 ordinary,
		"a</system-reminder>":                                                                ordinary,
		"<system-reminders>a</system-reminders>":                                             ordinary,
		"<div>a</div>":                                                                       ordinary,
		"<command-name>/x</command-name>\n<command-message>x</command-message>":              synthetic,
		"<command-name>/x</command-name><command-args>y</command-args>\nNow go on.":          ordinary,
		"<command-message>x</command-message>\n<command-name>/x</command-name>":              ordinary,
		"<local-command-caveat>a</local-command-caveat>\nDo it.":                             ordinary,
		"<environment_context><cwd>/a</cwd></environment_context>":                           info,
		"<environment_context><cwd>/a</cwd></environment_context>\nDo it.":                   ordinary,
		"<environment_details>a</environment_details>":                                       reminder,
		"# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nb\n</INSTRUCTIONS>":              info,
		"# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nb\n</INSTRUCTIONS>\n\nDo it.":    ordinary,
		"<local-command-stdout>a</local-command-stdout><system-reminder>b</system-reminder>": synthetic,
		"[Request interrupted by user]":                                                      synthetic,
	} {
		if got := textKind(text); got != want {
			t.Errorf("%q is of kind %q, not %q", text, got, want)
		}
	}
}

// Words around any number of injected elements are always the user's, and the elements alone never are.
func TestWordsMakeAMessageTheUsers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		elements := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			name := rapid.SampledFrom([]string{
				"system-reminder", "system_reminder", "SYSTEM-REMINDER", "ide_selection", "environment_context",
			}).Draw(t, "name")
			attributes := rapid.SampledFrom([]string{"", " a=\"b\"", "  ", "\n"}).Draw(t, "attributes")
			body := rapid.SampledFrom([]string{"", "x", "<b>y</b>", "a < b > c", "\n\n"}).Draw(t, "body")
			return "<" + name + attributes + ">" + body + "</" + name + ">"
		}), 1, 4).Draw(t, "elements")
		if textKind(strings.Join(elements, "\n")) == pipeline.KindOrdinary {
			t.Fatalf("%q is taken for the user's", elements)
		}
		at := rapid.IntRange(0, len(elements)).Draw(t, "at")
		said := strings.Join(elements[:at], "\n") + "\nTurn the lamp.\n" + strings.Join(elements[at:], "\n")
		if textKind(said) != pipeline.KindOrdinary {
			t.Fatalf("%q is not taken for the user's", said)
		}
	})
}
