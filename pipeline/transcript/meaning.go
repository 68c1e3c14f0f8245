package transcript

import (
	"precis/pipeline"
	"precis/pipeline/transcript/layout"
)

// A user message may be from the user or from the program around the model: the wire has one role for both.

// SaysItIsSummary reports whether the text of a message introduces itself as a summary of earlier messages, as the
// summaries of precis, Claude Code and Gemini CLI do.
func SaysItIsSummary(m pipeline.Message) bool { return layout.LooksLikeSummary(m) }
