package pipeline

import (
	"context"
	"strings"
)

// Finish is the reason why a model stopped, in one vocabulary for all vendors.
type Finish string

// The reasons to stop. FinishNone means that the answer names none: it is incomplete.
const (
	FinishNone          Finish = ""
	FinishStop          Finish = "stop"
	FinishLength        Finish = "length"
	FinishToolUse       Finish = "tool_use"
	FinishRefusal       Finish = "refusal"
	FinishContentFilter Finish = "content_filter"
	FinishError         Finish = "error"
)

// Answer is the decoded answer of a model.
type Answer struct {
	// Text is the visible text, all text blocks joined.
	Text string
	// Reasoning is the model's reasoning, kept for the record only.
	Reasoning string
	// ToolCalls counts the tool calls in the answer.
	ToolCalls int
	// Finish is why the model stopped.
	Finish Finish
}

// AcceptLimits are the limits that an answer has to keep.
type AcceptLimits struct {
	// ReplacedTokens is the size of what the summary replaces; 0 switches the check off.
	ReplacedTokens int
	// MaxTokens is the cap of a summary; 0 means none.
	MaxTokens int
	// Prompt is the prompt that was used: lines copied from it are not part of a summary.
	Prompt Prompt
	// RequireTag refuses an answer without a <summary> tag, whatever its text.
	RequireTag bool
}

// AcceptSummary returns the summary in an answer, or an error whose kind is the reason why there is none.
//
// The finish reason decides first, whatever the text: a refusal or a filter is Refused, the output limit OutputTooLong,
// no reason or an error MalformedOutput. Then analysis, reasoning and lines of the prompt are removed. What remains in
// the <summary> block is the summary, even if its closing tag is missing or followed by closing tags of a tool call.
//
// Without the tag the text itself is the summary, if it is plain text, since models omit the tag and still write a good
// summary. Plain text does not begin with markup or JSON (a tool call written as text), and is not a short remark on
// what the model is about to do. With or without the tag, a short text that declines, reports an error or is a
// placeholder is not a summary. Tool calls beside an accepted text are ignored; without such a text the error is
// ToolCallOutput.
//
// The size is checked last: over MaxTokens is OutputTooLong, not below ReplacedTokens is NotSmaller.
//
// All of these errors are an *Error. The cost is linear. If the context is done first, the error is
// that of the context.
func AcceptSummary(ctx context.Context, a Answer, l AcceptLimits) (string, error) {
	type accepted struct {
		summary string
		refused *Error
	}
	out, err := interruptible(ctx, "the check of the answer", func(w *work) accepted {
		summary, refused := acceptSummary(w, a, l)
		return accepted{summary, refused}
	})
	if err == nil && out.refused != nil {
		err = out.refused
	}
	return out.summary, err
}

func acceptSummary(w *work, a Answer, l AcceptLimits) (string, *Error) {
	if err := acceptFinish(a); err != nil {
		return "", err
	}
	text, leaked := dropPromptLines(w, a.Text, l.Prompt)
	text = dropPrivate(w, text)
	summary, tagged := summaryBlock(w, text)
	if !tagged {
		summary = text
	}
	summary = dropTrailingMarkup(w, summary)

	switch {
	case summary == "" && leaked:
		return "", Errorf(MalformedOutput,
			"the answer holds nothing but lines of the prompt, or of what stands around a summary")
	case summary == "" && a.ToolCalls > 0:
		return "", Errorf(ToolCallOutput, "the answer is %d tool calls and no text", a.ToolCalls)
	case summary == "":
		return "", Errorf(EmptyOutput, "the answer holds no text%s", reasoningNote(a))
	case !tagged && l.RequireTag:
		return "", Errorf(MalformedOutput, "the answer has no <summary> block")
	case !tagged && toolShaped(summary):
		return "", Errorf(ToolCallOutput, "the answer is a tool call written as text")
	case !tagged && looksAnnounced(summary) && a.ToolCalls > 0:
		return "", Errorf(ToolCallOutput, "the answer is a tool call with a remark, not a summary")
	case !tagged && looksAnnounced(summary):
		return "", Errorf(MalformedOutput, "the answer says what the model is about to do, and no more")
	case looksRefused(summary, tagged):
		return "", Errorf(Refused, "the model declined in so many words")
	case looksPlaceholder(summary):
		return "", Errorf(MalformedOutput, "the answer is an error text or a placeholder")
	}

	tokens := EstimateText(summary)
	if l.MaxTokens > 0 && tokens > l.MaxTokens {
		err := Errorf(OutputTooLong, "the summary has about %d tokens, its cap is %d", tokens, l.MaxTokens)
		err.ActualTokens, err.LimitTokens = tokens, l.MaxTokens
		return "", err
	}
	if l.ReplacedTokens > 0 && tokens >= l.ReplacedTokens {
		err := Errorf(NotSmaller, "the summary has about %d tokens and would replace %d", tokens, l.ReplacedTokens)
		err.ActualTokens, err.LimitTokens = tokens, l.ReplacedTokens
		return "", err
	}
	return summary, nil
}

// acceptFinish returns an error for every finish reason but a regular one.
func acceptFinish(a Answer) *Error {
	switch a.Finish {
	case FinishStop, FinishToolUse:
		return nil
	case FinishRefusal:
		return Errorf(Refused, "the model declined to write the summary")
	case FinishContentFilter:
		return Errorf(Refused, "a content filter stopped the answer")
	case FinishLength:
		return Errorf(OutputTooLong, "the answer was cut off at the output limit%s", reasoningNote(a))
	case FinishNone:
		return Errorf(MalformedOutput, "the answer names no finish reason, so it is not complete")
	}
	return Errorf(MalformedOutput, "the answer ended with %q", string(a.Finish))
}

func reasoningNote(a Answer) string {
	if strings.TrimSpace(a.Text) == "" && strings.TrimSpace(a.Reasoning) != "" {
		return ", only reasoning"
	}
	return ""
}
