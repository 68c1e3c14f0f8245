package service

import (
	"encoding/json"
	"math"
)

// maxFigure bounds what is believed of a usage object, in tokens: what is above it is no count of a request.
const maxFigure = 1 << 31

// figure is what a vendor's usage object says of one request, in tokens; zero: nothing that can be used.
type figure struct {
	// total is all input, cached or not, and output. input is total without output, 0 when that is not told.
	total, input int
}

// readUsage reads the usage object of any vendor that we know: Anthropic (input, cache reads, cache writes and output
// apart), OpenAI chat and responses, Google, and the names that the Vercel AI SDK and LangChain give them. A total that
// the vendor gives counts; else the parts are summed. What is missing, zero, negative or no number is no figure.
func readUsage(raw json.RawMessage) figure {
	var u map[string]any
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil {
		return figure{}
	}
	n := func(keys ...string) int {
		for _, key := range keys {
			if x, ok := u[key].(float64); ok && x > 0 && x <= maxFigure {
				return int(math.Round(x))
			}
		}
		return 0
	}
	output := n("output_tokens", "completion_tokens", "outputTokens", "completionTokens", "candidatesTokenCount") +
		n("thoughtsTokenCount")
	input := n("prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "promptTokenCount")
	// Anthropic alone leaves out of its input what the cache had.
	input += n("cache_creation_input_tokens") + n("cache_read_input_tokens")
	total := n("total_tokens", "totalTokens", "totalTokenCount")
	if total == 0 && input > 0 {
		total = input + output
	}
	f := figure{total: total, input: input}
	switch {
	case total > maxFigure:
		return figure{}
	case input == 0 && total > output:
		f.input = total - output
	case input > total:
		f.input = 0
	}
	return f
}
