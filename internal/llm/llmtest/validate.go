package llmtest

// ValidateOptions says which parts of a request are checked.
type ValidateOptions struct {
	// NoModel lets model and max_tokens be absent: a transcript file has none.
	NoModel bool
}

// ValidateAnthropic says whether the Anthropic Messages API would take the body. The first fault is the
// error, worded as near to the vendor's own as is known. max_tokens and model may be absent: see
// ValidateAnthropicRequest.
func ValidateAnthropic(body []byte) error { return nil }

// ValidateAnthropicRequest is ValidateAnthropic with options.
func ValidateAnthropicRequest(body []byte, o ValidateOptions) error { return nil }

// ValidateOpenAI says whether the OpenAI chat completions API would take the body. model may be absent.
func ValidateOpenAI(body []byte) error { return nil }

// ValidateOpenAIRequest is ValidateOpenAI with options.
func ValidateOpenAIRequest(body []byte, o ValidateOptions) error { return nil }
