package transcript

import (
	"precis/pipeline"
	"precis/pipeline/transcript/layout"
)

// Who said a user message: a person, or the program around them. The wire has one role for both.

// SaysItIsSummary reports whether a message tells its reader that it is the summary of what came before, as those of
// ours, of Claude Code and of Gemini CLI do.
func SaysItIsSummary(m pipeline.Message) bool { return layout.LooksLikeSummary(m) }
