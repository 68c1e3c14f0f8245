package responses

import (
	"slices"
	"strings"

	"precis/pipeline"
)

// The beginnings of texts that Codex writes into messages of role user.
var (
	codexEnvironment = []string{"<environment_context>", "# AGENTS.md instructions for ", "<user_instructions>"}
	codexInjected    = []string{
		"<turn_aborted>", "<user_action>", "<recommended_plugins>", "<subagent_notification>", "<user_shell_command>",
		"<skill>",
	}
)

// codexKind returns the kind of a user message that Codex itself wrote; ok is false if any of its text is from the
// user.
func codexKind(m pipeline.Message) (kind pipeline.Kind, ok bool) {
	begins := func(s string, with []string) bool {
		return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(s, w) })
	}
	for _, p := range m.Parts {
		s := strings.TrimSpace(p.Text)
		switch {
		case p.Kind != pipeline.PartText:
			return "", false
		case begins(s, codexEnvironment):
			kind = pipeline.KindUserInfo
		case begins(s, codexInjected):
			if kind == "" {
				kind = pipeline.KindSynthetic
			}
		default:
			return "", false
		}
	}
	return kind, kind != ""
}
