package vendorserver

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// openaiKeys are the keys of a request, from the parameters of the official SDK (v3.99), and stream.
var openaiKeys = []string{
	"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
	"max_tokens", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls", "prediction",
	"presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
	"response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
	"temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
}

// openaiMessageKeys are the keys of a message by role, without role itself.
var openaiMessageKeys = map[string][]string{
	"system":    {"content", "name"},
	"developer": {"content", "name"},
	"user":      {"content", "name"},
	// annotations is in every answer, and the API accepts the answer unchanged.
	"assistant": {"annotations", "audio", "content", "function_call", "name", "refusal", "tool_calls"},
	// name was in the vendor's own examples once.
	"tool":     {"content", "name", "tool_call_id"},
	"function": {"content", "name"},
}

var (
	reOpenAITool = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	reOpenAIName = regexp.MustCompile(`^[^\s<|\\/>]{1,64}$`)
)

// maxOpenAITools is how many tools a request may define.
const maxOpenAITools = 128

// ValidateOpenAIRequest is ValidateOpenAI with options.
func ValidateOpenAIRequest(body []byte, o ValidateOptions) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	v := &openaiCheck{o: o}
	return v.request(node{raw: body})
}

// openaiCheck is one validation.
type openaiCheck struct {
	o ValidateOptions
	// open are the calls of the last assistant message that have no result yet, in order.
	open []string
	// expecting says that further tool messages may follow.
	expecting bool
	called    map[string]bool
}

func (v *openaiCheck) request(n node) error {
	keys := openaiKeys
	if v.o.Compatible {
		keys = nil
	}
	required := []string{"messages"}
	if v.o.Request {
		required = append(required, "model")
	}
	root, err := n.object(required, keys)
	if err != nil {
		return err
	}
	has := func(k string) bool { p, ok := root[k]; return ok && !p.isNull() }
	for _, step := range []struct {
		key   string
		check func(node) error
	}{
		{"model", nonEmptyString},
		{"max_tokens", func(n node) error { return n.integer(1) }},
		{"max_completion_tokens", func(n node) error { return n.integer(1) }},
		{"stream", boolean},
		{"store", boolean},
		{"parallel_tool_calls", boolean},
		{"temperature", func(n node) error { return n.number(0, 2) }},
		{"top_p", func(n node) error { return n.number(0, 1) }},
		{"tools", v.tools},
		{"messages", v.messages},
	} {
		if p, ok := root[step.key]; ok && (!p.isNull() || step.key == "messages") {
			if err := step.check(p); err != nil {
				return err
			}
		}
	}
	stream := has("stream") && root["stream"].kind() == 't'
	switch {
	case v.o.Compatible:
	case has("max_tokens") && has("max_completion_tokens"):
		return fmt.Errorf("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case has("stream_options") && !stream:
		return fmt.Errorf("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case has("metadata") && !(has("store") && root["store"].kind() == 't'):
		return fmt.Errorf("The 'metadata' parameter is only allowed when 'store' is enabled.")
	case has("tool_choice") && !has("tools"):
		return fmt.Errorf("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	case has("parallel_tool_calls") && !has("tools"):
		return fmt.Errorf(
			"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are " +
				"specified.")
	}
	return nil
}

func (v *openaiCheck) tools(n node) error {
	tools, err := n.array()
	if err != nil {
		return err
	}
	if len(tools) == 0 {
		return fmt.Errorf(
			"Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(tools) > maxOpenAITools {
		return fmt.Errorf("Invalid 'tools': array too long. Expected an array with maximum length %d, but got an "+
			"array with length %d instead.", maxOpenAITools, len(tools))
	}
	for _, t := range tools {
		m, err := t.object([]string{"type"}, nil)
		if err != nil {
			return err
		}
		switch kind := strOf(m, "type"); kind {
		case "function":
			f, ok := m["function"]
			if !ok {
				return t.child("function", nil).fail("Missing required parameter")
			}
			optional := []string{"description", "parameters", "strict"}
			if v.o.Compatible {
				optional = nil
			}
			fm, err := f.object([]string{"name"}, optional)
			if err != nil {
				return err
			}
			if !reOpenAITool.MatchString(strOf(fm, "name")) {
				return fm["name"].fail("string does not match pattern. Expected a string that matches the pattern '%s'",
					reOpenAITool)
			}
			if p, ok := fm["parameters"]; ok && !p.isNull() && !p.isObject() {
				return p.fail("Invalid type: expected an object")
			}
		case "custom":
			c, err := m["custom"].object([]string{"name"}, []string{"description", "format"})
			if err != nil {
				return err
			}
			if !reOpenAITool.MatchString(strOf(c, "name")) {
				return c["name"].fail("string does not match pattern. Expected a string that matches the pattern '%s'",
					reOpenAITool)
			}
		default:
			return t.child("type", nil).fail("Invalid value: '%s'. Supported values are: 'function' and 'custom'", kind)
		}
	}
	return nil
}

func (v *openaiCheck) messages(n node) error {
	messages, err := n.array()
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return fmt.Errorf(
			"Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, msg := range messages {
		path := fmt.Sprintf("messages.[%d]", i)
		m, err := msg.object([]string{"role"}, nil)
		if err != nil {
			return err
		}
		role := strOf(m, "role")
		allowed, ok := openaiMessageKeys[role]
		if !ok {
			return fmt.Errorf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', "+
				"'function', 'tool', and 'developer'. (%s.role)", role, path)
		}
		if !v.o.Compatible {
			if _, err := msg.object([]string{"role"}, allowed); err != nil {
				return fmt.Errorf("Unknown parameter: %w", err)
			}
		}
		if name, ok := m["name"]; ok && !name.isNull() {
			s, err := name.str()
			if err != nil {
				return err
			}
			if role != "tool" && !reOpenAIName.MatchString(s) {
				return name.fail("string does not match pattern. Expected a string that matches the pattern '%s'",
					reOpenAIName)
			}
		}
		if err := v.order(role, path); err != nil {
			return err
		}
		switch role {
		case "assistant":
			err = v.assistant(msg, m)
		case "tool":
			err = v.toolResult(msg, m, path)
		case "function":
			if m["name"].isNull() {
				err = msg.child("name", nil).fail("Missing required parameter")
			}
		default:
			err = v.content(msg, m, role)
		}
		if err != nil {
			return err
		}
	}
	return v.order("", fmt.Sprintf("messages.[%d]", len(messages)))
}

// order refuses everything except a result while calls are open; role "" is the end.
func (v *openaiCheck) order(role, path string) error {
	if role == "tool" {
		return nil
	}
	if len(v.open) > 0 {
		return fmt.Errorf("An assistant message with 'tool_calls' must be followed by tool messages responding to "+
			"each 'tool_call_id'. The following tool_call_ids did not have response messages: %s (before %s)",
			strings.Join(v.open, ", "), path)
	}
	v.expecting = false
	return nil
}

func (v *openaiCheck) assistant(msg node, m map[string]node) error {
	calls, hasCalls := m["tool_calls"]
	hasFunction := !m["function_call"].isNull()
	if hasCalls && calls.isNull() {
		return fmt.Errorf("Invalid type for '%s': expected an array of objects, but got null instead.", calls.path)
	}
	if c := m["content"]; c.isNull() {
		if !hasCalls && !hasFunction && m["refusal"].isNull() && m["audio"].isNull() {
			return fmt.Errorf("Invalid value for 'content': expected a string, got null. (%s)", msg.path)
		}
	} else if err := v.content(msg, m, "assistant"); err != nil {
		return err
	}
	if hasFunction {
		if _, err := m["function_call"].object([]string{"name", "arguments"}, []string{}); err != nil {
			return err
		}
	}
	if !hasCalls {
		return nil
	}
	list, err := calls.array()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf(
			"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.",
			calls.path)
	}
	v.open, v.called, v.expecting = nil, map[string]bool{}, true
	for _, c := range list {
		id, err := v.call(c)
		if err != nil {
			return err
		}
		if v.called[id] {
			return c.child("id", nil).fail("Duplicate value for 'tool_call_id': %s", id)
		}
		v.called[id] = true
		v.open = append(v.open, id)
	}
	return nil
}

// call checks one tool call and returns its id.
func (v *openaiCheck) call(n node) (string, error) {
	optional := []string{"function", "custom"}
	if v.o.Compatible {
		optional = nil
	}
	m, err := n.object([]string{"id", "type"}, optional)
	if err != nil {
		return "", err
	}
	id, err := m["id"].str()
	if err != nil {
		return "", err
	}
	if id == "" {
		return "", m["id"].fail("empty string. Expected a string with minimum length 1")
	}
	switch kind := strOf(m, "type"); kind {
	case "function":
		f, err := m["function"].object([]string{"name", "arguments"}, []string{})
		if err != nil {
			return "", err
		}
		if !reOpenAITool.MatchString(strOf(f, "name")) {
			return "", f["name"].fail("string does not match pattern. Expected a string that matches the pattern '%s'",
				reOpenAITool)
		}
		if _, err := f["arguments"].str(); err != nil {
			return "", err
		}
	case "custom":
		c, err := m["custom"].object([]string{"name", "input"}, []string{})
		if err != nil {
			return "", err
		}
		if _, err := c["input"].str(); err != nil {
			return "", err
		}
	default:
		return "", m["type"].fail("Invalid value: '%s'. Supported values are: 'function' and 'custom'", kind)
	}
	return id, nil
}

func (v *openaiCheck) toolResult(msg node, m map[string]node, path string) error {
	id, err := m["tool_call_id"].str()
	if err != nil {
		return fmt.Errorf("Missing required parameter: '%s.tool_call_id'", msg.path)
	}
	if !v.expecting {
		return fmt.Errorf("Invalid parameter: messages with role 'tool' must be a response to a preceeding "+
			"message with 'tool_calls'. (%s)", path)
	}
	i := slices.Index(v.open, id)
	if i < 0 {
		return fmt.Errorf(
			"Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message. (%s)", id, path)
	}
	v.open = slices.Delete(v.open, i, i+1)
	return v.content(msg, m, "tool")
}

// openaiParts are the kinds of content part by role, each with the key that holds it.
var openaiParts = map[string][]string{
	"system":    {"text"},
	"developer": {"text"},
	"user":      {"text", "image_url", "input_audio", "file"},
	"assistant": {"text", "refusal"},
	"tool":      {"text"},
}

func (v *openaiCheck) content(msg node, m map[string]node, role string) error {
	c, ok := m["content"]
	if !ok {
		return fmt.Errorf("Missing required parameter: '%s.content'.", msg.path)
	}
	if c.isString() {
		return nil
	}
	if c.isNull() {
		return fmt.Errorf("Invalid value for 'content': expected a string, got null. (%s)", msg.path)
	}
	parts, err := c.array()
	if err != nil {
		return fmt.Errorf("Invalid type for '%s': expected one of a string or array of objects.", c.path)
	}
	if len(parts) == 0 {
		return fmt.Errorf(
			"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.",
			c.path)
	}
	for _, p := range parts {
		pm, err := p.object([]string{"type"}, nil)
		if err != nil {
			return err
		}
		kind := strOf(pm, "type")
		if !slices.Contains(openaiParts[role], kind) {
			return p.child("type", nil).fail("Invalid value: '%s'. Supported values are: '%s'", kind,
				strings.Join(openaiParts[role], "', '"))
		}
		optional := []string{"prompt_cache_breakpoint"}
		if v.o.Compatible {
			optional = nil
		}
		if pm, err = p.object([]string{"type", kind}, optional); err != nil {
			return err
		}
		if err := openaiPart(pm[kind], kind); err != nil {
			return err
		}
	}
	return nil
}

func openaiPart(n node, kind string) error {
	switch kind {
	case "text", "refusal":
		_, err := n.str()
		return err
	case "image_url":
		m, err := n.object([]string{"url"}, []string{"detail"})
		if err != nil {
			return err
		}
		url, err := m["url"].str()
		if err != nil {
			return err
		}
		if !strings.HasPrefix(url, "data:image/") && !strings.HasPrefix(url, "http://") &&
			!strings.HasPrefix(url, "https://") {
			return m["url"].fail("Expected a base64-encoded data URL with an image MIME type, or an http address")
		}
	case "input_audio":
		_, err := n.object([]string{"data", "format"}, []string{})
		return err
	case "file":
		m, err := n.object(nil, []string{"file_data", "file_id", "filename"})
		if err != nil {
			return err
		}
		if strOf(m, "file_data") == "" && strOf(m, "file_id") == "" {
			return n.fail("Missing required parameter: file_id or file_data")
		}
	}
	return nil
}
