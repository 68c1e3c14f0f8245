package pipeline

import "math"

const (
	// outputMaxFraction is the largest share of a summarizer's window that its output may take.
	outputMaxFraction = 0.25
	// outputMinFraction is the room that a request must leave for an answer, as a share of the window, and
	// outputMinTokens the size at which more room is not asked for.
	outputMinFraction = 1.0 / 16
	outputMinTokens   = 1024
	// estimateMargin is the share of a window that is left for the error of the local estimate, which is
	// below a tenth.
	estimateMargin = 0.1
	// unknownCharsPerToken is the density that is assumed of a text that was not measured: Chinese and
	// Japanese are about one char a token, everything else has more.
	unknownCharsPerToken = 1.0
)

// InputBudgetChars is how many chars the rendered input for sum may have: the configured bound
// (StrictPromptChars where set, else MaxPromptChars), and never more than its window takes beside the
// promptTokens of the request's own text and the room for its output, with a margin for the estimate's
// error. charsPerToken is the density of the text, as measured; zero or less: unknown. 0 means that the
// summarizer cannot be asked at all.
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

// MaxOutputFor is the output limit to ask for beside inputTokens of input: the summary's cap, within what the
// model may write and what its window has left. It is always from 1 to the model's limit.
func MaxOutputFor(s Settings, sum Summarizer, inputTokens int) int {
	return max(1, min(outputRoom(s, sum), windowOf(sum)-max(inputTokens, 0)))
}

// FitsWindow reports whether sum can take a request of inputTokens and still have room for an answer. A request
// that does not fit is not sent.
func FitsWindow(s Settings, sum Summarizer, inputTokens int) bool {
	window := windowOf(sum)
	least := min(outputRoom(s, sum), outputMinTokens, max(1, floorShare(window, outputMinFraction)))
	return inputTokens+least <= window
}

// outputRoom is the output that is planned for, in tokens.
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
