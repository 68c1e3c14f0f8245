package pipeline

import (
	"context"
	"encoding/json"
	"strings"
)

// NativeSummary is the result of a vendor's own compaction, to be sent back to that vendor.
type NativeSummary struct {
	// Messages are sent byte for byte. Each is a message of the conversation's format.
	Messages []json.RawMessage
	// Note is the text of a message of role user behind them: how to continue, and what they do not contain. It may be
	// empty.
	Note string
	// Tokens is the cost of Messages in a request.
	Tokens int
}

// tokens returns the cost of the summary with its note.
func (n *NativeSummary) tokens() int {
	total := messageOverhead + n.Tokens
	if n.Note != "" {
		total += messageOverhead + EstimateText(n.Note)
	}
	return total
}

// Continuation returns the text behind the summary in a summary message: how the agent is to continue.
func Continuation(summaryText string) string {
	const end = "</" + summaryTag + ">"
	if i := strings.LastIndex(summaryText, end); i >= 0 {
		return strings.TrimSpace(summaryText[i+len(end):])
	}
	return ""
}

// TranscriptHintOf returns the line of a summary message with the place of the full transcript, "" if there is none. It
// looks only in front of the summary: a line that the summary quotes does not count.
func TranscriptHintOf(summaryText string) string {
	text, ok := strings.CutPrefix(summaryText, "<"+summaryTag+">\n"+summaryFirstLine)
	for range 3 { // the first line, the omissions, the hint
		if !ok {
			return ""
		}
		var paragraph string
		paragraph, text, ok = strings.Cut(text, "\n\n")
		if strings.HasPrefix(paragraph, summaryTranscript) {
			return paragraph
		}
	}
	return ""
}

// MissingLimits returns the sentences in which the user set a limit and which text does not contain, in order and
// within a budget, so that what a summary that cannot be changed leaves out can be sent beside it. tail are the
// messages that stay verbatim. The cost is linear. The error is that of the context, if it is done first.
func MissingLimits(ctx context.Context, text string, source, tail []Message) ([]string, error) {
	return interruptible(ctx, "the search for limits", func(w *work) []string {
		return withinBudget(missingLimits(w, text, constraints(w, source), newSource(w, tail)), maxConstraintsChars)
	})
}

// LimitsNote returns a section with limits that the user set, "" for none.
func LimitsNote(limits []string) string {
	return strings.TrimSpace(appendSection("", constraintsTitle, limits))
}

// LookAheadOf returns the section of a summary with what the agent used behind it and found only before it, "" if there
// is none.
func LookAheadOf(summaryText string) string {
	at := strings.Index(summaryText, lookAheadTitle)
	if at < 0 {
		return ""
	}
	section, rest := summaryText[at:], summaryText[at+len(lookAheadTitle):]
	for _, end := range []string{"\n## ", "</" + summaryTag + ">"} {
		if i := strings.Index(rest, end); i >= 0 {
			rest = rest[:i]
		}
	}
	return strings.TrimSpace(section[:len(lookAheadTitle)+len(rest)])
}
