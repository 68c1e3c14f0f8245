package service

import (
	"encoding/json"
	"math"
)

// maxFigure is the largest number of tokens in a usage object that is taken for the count of a request.
const maxFigure = 1 << 31

// figure is the usage of one request in tokens. The zero value means that there are no usable numbers.
type figure struct {
	// total is all input, cached or not, and output. input is total without output, 0 if unknown.
	total, input int
}

// readUsage reads the usage object of any known vendor: Anthropic (with separate input, cache reads, cache writes and
// output), OpenAI chat and responses, Google, and with the names of the Vercel AI SDK and LangChain. It uses the
// vendor's total, or else the sum of the parts. It ignores values that are zero, negative or not a number.
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
	// Only Anthropic does not include cached tokens in its input.
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
