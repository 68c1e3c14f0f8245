package pipeline

import "math"

const (
	// outputMaxFraction is the largest share of a summarizer's window that its output may take.
	outputMaxFraction = 0.25
	// outputMinFraction is the room that a request must leave for an answer, as a share of the window. outputMinTokens
	// is the room that is always enough.
	outputMinFraction = 1.0 / 16
	outputMinTokens   = 1024
	// estimateMargin is the share of a window that is kept free for the error of the local estimate, which is below a
	// tenth.
	estimateMargin = 0.1
	// unknownCharsPerToken is the density that is assumed for a text that was not measured: Chinese and Japanese have
	// about one char per token, everything else has more.
	unknownCharsPerToken = 1.0
)

// InputBudgetChars returns how many chars the rendered input for sum may have. The configured bound (StrictPromptChars
// if set, else MaxPromptChars) applies, and never more than fits into the window of sum beside the promptTokens of the
// request's own text and the room for its output, with a margin for the error of the estimate. charsPerToken is the
// measured density of the text; zero or less means unknown. The result 0 means that sum cannot be asked at all.
func InputBudgetChars(s Settings, sum Summarizer, promptTokens int, charsPerToken float64) int {
	budget := s.MaxPromptChars
	if s.StrictPromptChars > 0 {
		budget = s.StrictPromptChars
	}
	if budget <= 0 {
		budget = MaxSummarizationPromptChars
	}
	if !(charsPerToken > 0) || math.IsInf(charsPerToken, 1) {
		charsPerToken = unknownCharsPerToken
	}
	window := windowOf(sum)
	room := window - floorShare(window, estimateMargin) - max(promptTokens, 0) - outputRoom(s, sum)
	if room <= 0 {
		return 0
	}
	return min(budget, floorShare(room, charsPerToken))
}

// MaxOutputFor returns the output limit to request beside inputTokens of input: the summary's cap, within what the
// model may write and what its window has left. The result is always from 1 to the model's limit.
func MaxOutputFor(s Settings, sum Summarizer, inputTokens int) int {
	return max(1, min(outputRoom(s, sum), windowOf(sum)-max(inputTokens, 0)))
}

// FitsWindow reports whether sum can take a request of inputTokens and still have room for an answer. Do not send a
// request that does not fit.
func FitsWindow(s Settings, sum Summarizer, inputTokens int) bool {
	window := windowOf(sum)
	least := min(outputRoom(s, sum), outputMinTokens, max(1, floorShare(window, outputMinFraction)))
	return inputTokens+least <= window
}

// outputRoom returns the planned output, in tokens.
func outputRoom(s Settings, sum Summarizer) int {
	room := min(max(s.SummaryMaxTokens, 1), max(1, floorShare(windowOf(sum), outputMaxFraction)))
	if sum.MaxOutput > 0 {
		room = min(room, sum.MaxOutput)
	}
	return room
}

func windowOf(sum Summarizer) int {
	if sum.Window > 0 {
		return sum.Window
	}
	return DefaultContextWindow
}
