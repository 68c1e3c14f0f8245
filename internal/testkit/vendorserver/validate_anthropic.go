package vendorserver

import (
	"fmt"
	"regexp"
	"strings"

	"precis/pipeline/transcript/valid"
)

// The keys of a request, from the parameters of the official SDK (v2.15, with its betas), and the three
// sampling parameters that API version 2023-06-01 has.
var (
	anthropicKeys = []string{
		"billing_policy", "cache_control", "compaction", "container", "context_management", "diagnostics",
		"fallback_credit_token", "fallbacks", "inference_geo", "max_tokens", "mcp_servers", "metadata", "model",
		"output_config", "output_format", "service_tier", "speed", "stop_sequences", "stream", "system", "temperature",
		"thinking", "thread", "tool_choice", "tools", "top_k", "top_p",
	}
	anthropicSampling = []string{"temperature", "top_p", "top_k"}
)

// anthropicNewVersion is the API version that the SDK sends.
const anthropicNewVersion = "2026-10-21"

// maxCacheBreakpoints is how many cache_control marks a request may bear.
const maxCacheBreakpoints = 4

var (
	reAnthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	reServerToolID  = regexp.MustCompile(`^srvtoolu_[a-zA-Z0-9_]+$`)
	reAnthropicTool = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	reBuiltinTool   = regexp.MustCompile(`^[a-z_0-9]+_\d{8}$`)
	anthropicImages = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	serverToolNames = []string{
		"web_search", "web_fetch", "code_execution", "bash_code_execution",
		"text_editor_code_execution", "tool_search_tool_regex", "tool_search_tool_bm25", "advisor",
	}
	serverResultType = []string{
		"web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
		"advisor_tool_result", "mcp_tool_result",
	}
)

// ValidateAnthropicRequest is ValidateAnthropic with options.
func ValidateAnthropicRequest(body []byte, o ValidateOptions) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	v := &anthropicCheck{o: o}
	return v.request(node{raw: body})
}

// anthropicCheck is one validation.
type anthropicCheck struct {
	o ValidateOptions
	// breakpoints counts the cache marks; short says that one with the short time to live has been seen.
	breakpoints int
	short       bool
	thinkingOn  bool
	callIDs     map[string]bool
	turns       []valid.Turn
	// compactions counts the blocks of earlier compactions, signed those that bear a signature.
	compactions, signed int
}

func (v *anthropicCheck) request(n node) error {
	var required []string
	if v.o.Request {
		required = []string{"model", "max_tokens"}
	}
	keys := anthropicKeys
	if v.o.Compatible {
		keys = nil
	}
	root, err := n.object(append(required, "messages"), keys)
	if err != nil {
		return err
	}
	if v.o.Version == anthropicNewVersion {
		for _, k := range anthropicSampling {
			if p, ok := root[k]; ok {
				return p.fail("Extra inputs are not permitted")
			}
		}
	}
	for _, step := range []struct {
		key   string
		check func(node) error
	}{
		{"model", nonEmptyString},
		{"max_tokens", func(n node) error { return n.integer(0) }},
		{"stream", boolean},
		{"temperature", func(n node) error { return n.number(0, 1) }},
		{"top_p", func(n node) error { return n.number(0, 1) }},
		{"top_k", func(n node) error { return n.integer(0) }},
		{"stop_sequences", stringList},
		{"metadata", metadata},
		{"thinking", v.thinking},
		// The vendor's own order, in which the cache marks count: tools, system, messages.
		{"tools", v.tools},
		{"tool_choice", toolChoice},
		{"system", v.system},
		{"messages", v.messages},
		{"cache_control", v.cacheControl}, // the automatic one takes a place as well
	} {
		p, ok := root[step.key]
		if !ok || p.isNull() && step.key != "messages" {
			continue
		}
		if err := step.check(p); err != nil {
			return err
		}
	}
	if _, ok := root["tool_choice"]; ok {
		if _, ok := root["tools"]; !ok {
			return fmt.Errorf("tool_choice: may only be specified while providing tools")
		}
	}
	if err := v.compaction(root); err != nil {
		return err
	}
	if v.breakpoints > maxCacheBreakpoints {
		return fmt.Errorf("A maximum of %d blocks with cache_control may be provided. Found %d.", maxCacheBreakpoints,
			v.breakpoints)
	}
	return v.pairing()
}

func nonEmptyString(n node) error {
	s, err := n.str()
	if err == nil && s == "" {
		return n.fail("String should have at least 1 character")
	}
	return err
}

func boolean(n node) error {
	if !n.isBool() {
		return n.fail("Input should be a valid boolean")
	}
	return nil
}

func stringList(n node) error {
	items, err := n.array()
	if err != nil {
		return err
	}
	for _, i := range items {
		if err := nonEmptyString(i); err != nil {
			return err
		}
	}
	return nil
}

func metadata(n node) error {
	m, err := n.object(nil, []string{"user_id"})
	if err != nil {
		return err
	}
	if id, ok := m["user_id"]; ok && !id.isNull() {
		_, err = id.str()
	}
	return err
}

func (v *anthropicCheck) thinking(n node) error {
	m, err := n.object([]string{"type"}, []string{"budget_tokens", "display"})
	if err != nil {
		return err
	}
	switch strOf(m, "type") {
	case "enabled":
		v.thinkingOn = true
		b, ok := m["budget_tokens"]
		if !ok {
			return n.child("budget_tokens", nil).fail("Field required")
		}
		return b.integer(1024)
	case "disabled", "adaptive":
		return nil
	}
	return n.child("type", nil).fail("Input should be 'enabled', 'disabled' or 'adaptive'")
}

func (v *anthropicCheck) tools(n node) error {
	tools, err := n.array()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, t := range tools {
		m, err := t.object(nil, nil)
		if err != nil {
			return err
		}
		kind := strOf(m, "type")
		switch {
		case kind == "" || kind == "custom":
			m, err = t.object([]string{"name", "input_schema"}, []string{
				"allowed_callers", "cache_control", "defer_loading", "description", "eager_input_streaming",
				"input_examples", "strict", "type",
			})
			if err != nil {
				return err
			}
			if !reAnthropicTool.MatchString(strOf(m, "name")) {
				return t.child("custom.name", nil).fail("String should match pattern '%s'", reAnthropicTool)
			}
			schema, err := m["input_schema"].object([]string{"type"}, nil)
			if err != nil {
				return err
			}
			if strOf(schema, "type") != "object" {
				return m["input_schema"].child("type", nil).fail("Input should be 'object'")
			}
			if d, ok := m["description"]; ok && !d.isNull() {
				if _, err := d.str(); err != nil {
					return err
				}
			}
		case !reBuiltinTool.MatchString(kind) && kind != "mcp_toolset":
			return t.child(
				"type", nil).fail("Input tag '%s' found using 'type' does not match any of the expected tags", kind)
		}
		if name := strOf(m, "name"); name != "" {
			if names[name] {
				return n.fail("Tool names must be unique.")
			}
			names[name] = true
		}
		if err := v.mark(m); err != nil {
			return err
		}
	}
	return nil
}

func toolChoice(n node) error {
	m, err := n.object([]string{"type"}, []string{"disable_parallel_tool_use", "name"})
	if err != nil {
		return err
	}
	switch strOf(m, "type") {
	case "auto", "any", "none":
		return nil
	case "tool":
		if strOf(m, "name") == "" {
			return n.child("name", nil).fail("Field required")
		}
		return nil
	}
	return n.child("type", nil).fail("Input should be 'auto', 'any', 'tool' or 'none'")
}

func (v *anthropicCheck) system(n node) error {
	if n.isString() {
		return nil
	}
	blocks, err := n.array()
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if err := v.textBlock(b, "system", false); err != nil {
			return err
		}
	}
	return nil
}

// mark counts a cache mark.
func (v *anthropicCheck) mark(m map[string]node) error {
	c, ok := m["cache_control"]
	if !ok || c.isNull() {
		return nil
	}
	return v.cacheControl(c)
}

func (v *anthropicCheck) cacheControl(n node) error {
	m, err := n.object([]string{"type"}, []string{"ttl", "scope"})
	if err != nil {
		return err
	}
	if strOf(m, "type") != "ephemeral" {
		return n.child("type", nil).fail("Input should be 'ephemeral'")
	}
	switch ttl := strOf(m, "ttl"); ttl {
	case "", "5m":
		v.short = true
	case "1h":
		if v.short {
			return n.fail("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. " +
				"Note that blocks are processed in the following order: `tools`, `system`, `messages`.")
		}
	default:
		return n.child("ttl", nil).fail("Input should be '5m' or '1h'")
	}
	v.breakpoints++
	return nil
}

func (v *anthropicCheck) messages(n node) error {
	messages, err := n.array()
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return n.fail("at least one message is required")
	}
	v.callIDs = map[string]bool{}
	for i, msg := range messages {
		optional := []string{}
		if v.o.Compatible {
			optional = nil
		}
		m, err := msg.object([]string{"role", "content"}, optional)
		if err != nil {
			return err
		}
		role := strOf(m, "role")
		switch role {
		case "user", "assistant":
		case "system": // in the middle of a conversation, since Claude Opus 4.8
			if i == 0 {
				return msg.fail("use the top-level 'system' parameter for the initial system prompt")
			}
			if prev := v.turns[len(v.turns)-1].Role; prev != "user" {
				return msg.fail("a message with role 'system' must directly follow a user message")
			}
		default:
			return msg.child("role", nil).fail("Input should be 'user' or 'assistant'")
		}
		if i == 0 && role != "user" && firstBlock(m["content"]) != "compaction" {
			return n.fail("first message must use the \"user\" role")
		}
		if len(v.turns) == 0 || v.turns[len(v.turns)-1].Role != role {
			if role == "user" && len(v.turns) > 0 && v.turns[len(v.turns)-1].Role == "system" {
				return msg.fail(
					"a message with role 'system' must be the last one or be followed by an assistant message")
			}
			v.turns = append(v.turns, valid.Turn{Role: role, First: i})
		}
		if err := v.content(m["content"], role, i == len(messages)-1); err != nil {
			return err
		}
	}
	return nil
}

func (v *anthropicCheck) content(n node, role string, last bool) error {
	turn := &v.turns[len(v.turns)-1]
	path := strings.TrimSuffix(n.path, ".content")
	if n.isString() {
		s, _ := n.str()
		switch {
		case s == "":
			return node{path: path}.fail("%s messages must have non-empty content", role)
		case strings.TrimSpace(s) == "":
			return fmt.Errorf("messages: text content blocks must contain non-whitespace text (%s)", path)
		}
		turn.Blocks = append(turn.Blocks, valid.Block{Path: n.path, Kind: "text"})
		return v.trailing(s, role, last)
	}
	blocks, err := n.array()
	if err != nil {
		return err
	}
	if len(blocks) == 0 {
		return node{path: path}.fail(
			"all messages must have non-empty content except for the optional final assistant message")
	}
	for i, b := range blocks {
		block, text, err := v.block(b, role)
		if err != nil {
			return err
		}
		if block.Kind == "compaction" {
			if err := v.compactionBlock(b); err != nil {
				return err
			}
		}
		turn.Blocks = append(turn.Blocks, block)
		if i == len(blocks)-1 {
			if err := v.trailing(text, role, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// trailing refuses white space at the end of a text that the model is to go on with.
func (v *anthropicCheck) trailing(text, role string, last bool) error {
	if last && role == "assistant" && text != strings.TrimRight(text, " \t\r\n") {
		return fmt.Errorf("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}
