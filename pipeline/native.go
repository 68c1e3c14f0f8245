package pipeline

import (
	"encoding/json"
	"strings"
)

// NativeSummary is what a vendor's own compaction gave, on its way back to that vendor.
type NativeSummary struct {
	// Messages are sent byte for byte, each a message of the conversation's format.
	Messages []json.RawMessage
	// Note is what a message of role user says behind them: how to go on, and what they do not hold. It may be
	// empty.
	Note string
	// Tokens is what Messages cost in a request.
	Tokens int
}

// tokens is what the summary costs with its note.
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

// TranscriptHintOf is the line of a summary message that says where the full transcript is, "" when there is none. It
// is before the summary: a line that the summary quotes does not count.
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

// MissingLimits returns the sentences in which the user set a limit and which text does not hold, in their order and
// within a budget: what a summary that cannot be changed leaves out is said beside it. tail are the messages that
// stay verbatim.
func MissingLimits(text string, source, tail []Message) []string {
	return withinBudget(missingLimits(text, source, newSource(tail)), maxConstraintsChars)
}

// LimitsNote is a section with limits that the user set, empty for none.
func LimitsNote(limits []string) string {
	return strings.TrimSpace(appendSection("", constraintsTitle, limits))
}

// LookAheadOf is the section of a summary with what the agent used behind it and found only before it, empty when
// there is none.
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
