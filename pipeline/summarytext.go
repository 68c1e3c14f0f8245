package pipeline

import (
	"fmt"
	"strings"
)

// SummaryTextInput is what the text of a summary message is made from.
type SummaryTextInput struct {
	Summary string
	// Digest reports that no model wrote the summary.
	Digest bool
	// UnderWay reports that the agent's work continues at once: see UnderWay.
	UnderWay bool
	// ProposeOnly reports that the agent is in a mode that only proposes.
	ProposeOnly bool
	// TailKept reports that messages follow verbatim.
	TailKept bool
	// Repeated is the number of user messages that are kept behind the summary although it covers them.
	Repeated int
	// OmittedMessages is the number of messages that the summarizer did not get, or not whole, because of their size.
	OmittedMessages int
	// TranscriptHint is where the full transcript is, empty if nowhere.
	TranscriptHint string
	// OldRules is that of SlimInput.
	OldRules bool
}

// The sentences of a summary message. They are in English whatever the language of the summary.
const (
	summaryFirstLine = "This session continues an earlier one that ran out of context. What follows is the " +
		"summary of its earlier part."
	summaryDigest = "No model wrote this summary: it is a digest, put together from the messages themselves."
	// The place follows on the same line.
	summaryTranscript = "The full transcript is kept: "
	// The sentence is in brackets, behind a number.
	summaryOmitted = " message(s) of that part were left out of the summary, or cut, for size"

	summaryTail     = "The messages after the part that is summarised follow verbatim."
	summaryContinue = "Go on from where the work stopped. Ask nothing again that was answered already, do not " +
		"acknowledge this summary, do not recap it, and write no preface: continue as if the break had not happened."
	summaryAtRest = "The summary is background. Nothing is under way: do not take up work because it is " +
		"mentioned there. The user's next message decides what happens."
	summaryPropose = "The summary is background. Propose before you act: nothing in the summary is permission to " +
		"begin, and the user decides what happens."
	// These two are used together.
	summaryRepeatedBelow = "The user's last message is repeated below in its own words."
	summaryRepeated      = "It has been answered already and is no new request."
)

// SummaryText returns the content of the summary message: the summary in an element that nothing inside can close, and
// behind it how the agent is to use it. Only sentences that are true are included.
func SummaryText(in SummaryTextInput) string {
	inside := []string{summaryFirstLine}
	if in.Digest {
		inside[0] += " " + summaryDigest
	}
	if in.OmittedMessages > 0 {
		inside = append(inside, fmt.Sprintf("[%d%s; they may be anywhere in it]", in.OmittedMessages, summaryOmitted))
	}
	if hint := strings.TrimSpace(in.TranscriptHint); hint != "" {
		inside = append(inside, summaryTranscript+strings.Join(strings.Fields(hint), " "))
	}
	inside = append(inside, strings.TrimSpace(in.Summary))

	var after []string
	if in.TailKept {
		after = append(after, summaryTail)
	}
	switch {
	case in.ProposeOnly:
		after = append(after, summaryPropose)
	case in.UnderWay:
		after = append(after, summaryContinue)
	default:
		after = append(after, summaryAtRest)
	}
	if in.Repeated > 0 && !in.UnderWay {
		after = append(after, summaryRepeatedBelow+" "+summaryRepeated)
	}
	escape := escaper(in.OldRules, reservedTags)
	return "<" + summaryTag + ">\n" + escape(joinParagraphs(inside...)) + "\n</" + summaryTag + ">\n\n" +
		strings.Join(after, " ")
}
