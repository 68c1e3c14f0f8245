package responses

import (
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
)

// codexElements are the elements that Codex writes into messages of role user, beside those of all agents.
var codexElements = map[string]pipeline.Kind{
	"turn-aborted":          pipeline.KindSynthetic,
	"user-action":           pipeline.KindSynthetic,
	"recommended-plugins":   pipeline.KindSynthetic,
	"subagent-notification": pipeline.KindSynthetic,
	"user-shell-command":    pipeline.KindSynthetic,
	"skill":                 pipeline.KindSynthetic,
}

// codexRules is the beginning of the rules of a project, in sessions in which they are not in an element.
const codexRules = "# AGENTS.md instructions for "

// codexKind returns the kind of a user message that Codex itself wrote; ok is false if any of its text is from the
// user.
func codexKind(m pipeline.Message) (kind pipeline.Kind, ok bool) {
	for _, p := range m.Parts {
		if p.Kind != pipeline.PartText {
			return "", false
		}
		s := strings.TrimSpace(p.Text)
		k, ok := layout.Injected(s, codexElements)
		if !ok {
			if !strings.HasPrefix(s, codexRules) || strings.Contains(s, "<INSTRUCTIONS>") {
				return "", false
			}
			k = pipeline.KindUserInfo
		}
		if kind == "" || k == pipeline.KindUserInfo {
			kind = k
		}
	}
	return kind, kind != ""
}
