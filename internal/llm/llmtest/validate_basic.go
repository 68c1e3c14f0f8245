package llmtest

// basicResponses and basicGoogle check the frame of a request: that its keys are the API's, and that it has what
// must be there.

var (
	responsesKeys = []string{
		"background", "context_management", "conversation", "include", "input", "instructions", "max_output_tokens", "max_tool_calls",
		"metadata", "model", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
		"prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream", "stream_options",
		"temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
	}
	compactKeys = []string{
		"image", "input", "instructions", "model", "previous_response_id", "prompt_cache_key", "prompt_cache_options",
		"prompt_cache_retention", "service_tier",
	}
	googleKeys = []string{
		"cachedContent", "contents", "generationConfig", "labels", "model", "safetySettings", "serviceTier", "store",
		"systemInstruction", "toolConfig", "tools",
	}
)

func basicResponses(body []byte, o ValidateOptions) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	var required []string
	if o.Request {
		required = []string{"model", "input"}
	}
	keys := responsesKeys
	if o.Compact {
		keys = compactKeys
	}
	if o.Compatible {
		keys = nil
	}
	root, err := node{raw: body}.object(required, keys)
	if err != nil {
		return err
	}
	input, ok := root["input"]
	if !ok || input.isString() {
		return nil
	}
	items, err := input.array()
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return input.fail("Input list must not be empty.")
	}
	return nil
}

func basicGoogle(body []byte, o ValidateOptions) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	keys := googleKeys
	if o.Compatible {
		keys = nil
	}
	root, err := node{raw: body}.object([]string{"contents"}, keys)
	if err != nil {
		return err
	}
	contents, err := root["contents"].array()
	if err != nil {
		return err
	}
	if len(contents) == 0 {
		return root["contents"].fail("contents is not specified")
	}
	for _, c := range contents {
		m, err := c.object([]string{"parts"}, []string{"role"})
		if err != nil {
			return err
		}
		parts, err := m["parts"].array()
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			return c.fail("contents.parts must not be empty.")
		}
		switch strOf(m, "role") {
		case "", "user", "model", "function":
		default:
			return c.child("role", nil).fail("Please use a valid role: user, model.")
		}
	}
	return nil
}
