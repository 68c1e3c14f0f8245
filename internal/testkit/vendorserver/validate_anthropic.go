package vendorserver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	turns       []anthropicTurn
	// compactions counts the blocks of earlier compactions, signed those that bear a signature.
	compactions, signed int
}

// anthropicTurn is a run of messages with one role: the API joins them before it looks at calls and results.
type anthropicTurn struct {
	role   string
	first  int // the index of its first message
	blocks []anthropicBlock
}

type anthropicBlock struct {
	path, kind, id string
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
			if prev := v.turns[len(v.turns)-1].role; prev != "user" {
				return msg.fail("a message with role 'system' must directly follow a user message")
			}
		default:
			return msg.child("role", nil).fail("Input should be 'user' or 'assistant'")
		}
		if i == 0 && role != "user" && firstBlock(m["content"]) != "compaction" {
			return n.fail("first message must use the \"user\" role")
		}
		if len(v.turns) == 0 || v.turns[len(v.turns)-1].role != role {
			if role == "user" && len(v.turns) > 0 && v.turns[len(v.turns)-1].role == "system" {
				return msg.fail(
					"a message with role 'system' must be the last one or be followed by an assistant message")
			}
			v.turns = append(v.turns, anthropicTurn{role: role, first: i})
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
		turn.blocks = append(turn.blocks, anthropicBlock{path: n.path, kind: "text"})
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
		if block.kind == "compaction" {
			if err := v.compactionBlock(b); err != nil {
				return err
			}
		}
		turn.blocks = append(turn.blocks, block)
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

// allowedBlocks are the block types by role.
var allowedBlocks = map[string][]string{
	"user": {
		"text", "image", "document", "search_result", "tool_result", "container_upload", "tool_addition",
		"tool_removal", "compaction",
	},
	"assistant": append([]string{
		"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_listing",
		"compaction", "fallback", "container_upload",
	}, serverResultType...),
	"system": {"text", "tool_addition", "tool_removal"},
}

// block checks one content block. text is its text, for a text block.
func (v *anthropicCheck) block(n node, role string) (block anthropicBlock, text string, err error) {
	m, err := n.object([]string{"type"}, nil)
	if err != nil {
		return block, "", err
	}
	kind := strOf(m, "type")
	block = anthropicBlock{path: n.path, kind: kind}
	if !slices.Contains(allowedBlocks[role], kind) {
		return block, "", n.fail("Input tag '%s' found using 'type' does not match any of the expected tags: '%s'",
			kind, strings.Join(allowedBlocks[role], "', '"))
	}
	switch kind {
	case "text":
		text = strOf(m, "text")
		return block, text, v.textBlock(n, role, true)
	case "image":
		return block, "", v.image(n)
	case "document":
		return block, "", v.document(n)
	case "search_result":
		return block, "", v.searchResult(n)
	case "thinking":
		if m, err = n.object([]string{"type", "thinking", "signature"}, []string{}); err != nil {
			return block, "", err
		}
		if _, err = m["thinking"].str(); err != nil {
			return block, "", err
		}
		if strOf(m, "signature") == "" {
			return block, "", n.fail("Invalid `signature` in `thinking` block")
		}
	case "redacted_thinking":
		if m, err = n.object([]string{"type", "data"}, []string{}); err != nil {
			return block, "", err
		}
		if strOf(m, "data") == "" {
			return block, "", n.fail("Invalid `data` in `redacted_thinking` block")
		}
	case "tool_use":
		if m, err = n.object([]string{"type", "id", "name", "input"},
			[]string{"cache_control", "caller", "toolset_name"}); err != nil {
			return block, "", err
		}
		if block.id, err = v.callID(m["id"]); err != nil {
			return block, "", err
		}
		if name := strOf(m, "name"); name == "" || len(name) > 200 {
			return block, "", m["name"].fail("String should have from 1 to 200 characters")
		}
		if !m["input"].isObject() {
			return block, "", m["input"].fail("Input should be a valid dictionary")
		}
		return block, "", v.mark(m)
	case "server_tool_use":
		if m, err = n.object([]string{"type", "id", "name", "input"}, []string{"cache_control", "caller"}); err != nil {
			return block, "", err
		}
		block.id = strOf(m, "id")
		if !reServerToolID.MatchString(block.id) {
			return block, "", m["id"].fail("String should match pattern '%s'", reServerToolID)
		}
		if !slices.Contains(serverToolNames, strOf(m, "name")) {
			return block, "", m["name"].fail("Input should be one of '%s'", strings.Join(serverToolNames, "', '"))
		}
		if !m["input"].isObject() {
			return block, "", m["input"].fail("Input should be a valid dictionary")
		}
		return block, "", v.mark(m)
	case "mcp_tool_use":
		if m, err = n.object([]string{"type", "id", "name", "input", "server_name"},
			[]string{"cache_control"}); err != nil {
			return block, "", err
		}
		if block.id, err = v.callID(m["id"]); err != nil {
			return block, "", err
		}
		return block, "", v.mark(m)
	case "tool_result":
		block.id, err = v.toolResult(n)
		return block, "", err
	case "container_upload":
		if m, err = n.object([]string{"type", "file_id"}, []string{"cache_control"}); err != nil {
			return block, "", err
		}
		return block, "", v.mark(m)
	case "compaction":
		if m, err = n.object([]string{"type"},
			[]string{"content", "encrypted_content", "signature", "tool_changes", "cache_control"}); err != nil {
			return block, "", err
		}
		if strOf(m, "content") == "" && strOf(m, "encrypted_content") == "" {
			return block, "", n.fail("compaction blocks must have non-empty content")
		}
		return block, "", v.mark(m)
	default:
		if slices.Contains(serverResultType, kind) {
			if m, err = n.object([]string{"type", "tool_use_id", "content"},
				[]string{"cache_control", "caller", "is_error"}); err != nil {
				return block, "", err
			}
			block.id = strOf(m, "tool_use_id")
		}
		return block, "", v.mark(m)
	}
	return block, "", nil
}

// callID checks the id of a call, which is used once in a request.
func (v *anthropicCheck) callID(n node) (string, error) {
	id, err := n.str()
	if err != nil {
		return "", err
	}
	if !reAnthropicID.MatchString(id) {
		return "", n.fail("String should match pattern '%s'", reAnthropicID)
	}
	if v.callIDs[id] {
		return "", fmt.Errorf("messages: `tool_use` ids must be unique (%s)", n.path)
	}
	v.callIDs[id] = true
	return id, nil
}

// textBlock checks a text block; citations are the model's, so that a user's text has none.
func (v *anthropicCheck) textBlock(n node, role string, inMessage bool) error {
	m, err := n.object([]string{"type", "text"}, []string{"cache_control", "citations"})
	if err != nil {
		return err
	}
	if strOf(m, "type") != "text" {
		return n.child("type", nil).fail("Input should be 'text'")
	}
	text, err := m["text"].str()
	if err != nil {
		return err
	}
	where := "messages"
	if !inMessage {
		where = "system"
	}
	switch {
	case text == "":
		return fmt.Errorf("%s: text content blocks must be non-empty (%s)", where, n.path)
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%s: text content blocks must contain non-whitespace text (%s)", where, n.path)
	}
	if c, ok := m["citations"]; ok && !c.isNull() {
		list, err := c.array()
		if err != nil {
			return err
		}
		if len(list) > 0 && role != "assistant" {
			return c.fail("citations are only allowed in assistant messages")
		}
	}
	return v.mark(m)
}

func (v *anthropicCheck) image(n node) error {
	m, err := n.object([]string{"type", "source"}, []string{"cache_control", "transformations"})
	if err != nil {
		return err
	}
	if err := source(m["source"], anthropicImages); err != nil {
		return err
	}
	return v.mark(m)
}

func (v *anthropicCheck) document(n node) error {
	m, err := n.object([]string{"type", "source"}, []string{"cache_control", "citations", "context", "title"})
	if err != nil {
		return err
	}
	if err := source(m["source"], []string{"application/pdf"}); err != nil {
		return err
	}
	return v.mark(m)
}

// source checks where an image or a document comes from.
func source(n node, media []string) error {
	m, err := n.object([]string{"type"}, nil)
	if err != nil {
		return err
	}
	want := func(keys ...string) error {
		for _, k := range keys {
			if strOf(m, k) == "" {
				return n.child(k, nil).fail("Field required")
			}
		}
		return nil
	}
	switch kind := strOf(m, "type"); kind {
	case "base64":
		if err := want("media_type", "data"); err != nil {
			return err
		}
		if mt := strOf(m, "media_type"); !slices.Contains(media, mt) {
			return m["media_type"].fail("Input should be '%s'", strings.Join(media, "' or '"))
		}
		return nil
	case "url":
		return want("url")
	case "file":
		return want("file_id")
	case "text":
		return want("media_type", "data")
	case "content":
		if c := m["content"]; !c.isString() && !c.isArray() {
			return n.child("content", nil).fail("Field required")
		}
		return nil
	default:
		return n.fail("Input tag '%s' found using 'type' does not match any of the expected tags", kind)
	}
}

func (v *anthropicCheck) searchResult(n node) error {
	m, err := n.object([]string{"type", "content", "source", "title"}, []string{"cache_control", "citations"})
	if err != nil {
		return err
	}
	blocks, err := m["content"].array()
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if err := v.textBlock(b, "user", true); err != nil {
			return err
		}
	}
	return v.mark(m)
}

func (v *anthropicCheck) toolResult(n node) (id string, err error) {
	m, err := n.object([]string{"type", "tool_use_id"},
		[]string{"cache_control", "content", "is_error", "toolset_name"})
	if err != nil {
		return "", err
	}
	if id, err = m["tool_use_id"].str(); err != nil {
		return "", err
	}
	if !reAnthropicID.MatchString(id) {
		return "", m["tool_use_id"].fail("String should match pattern '%s'", reAnthropicID)
	}
	failed := false
	if e, ok := m["is_error"]; ok && !e.isNull() {
		if err := boolean(e); err != nil {
			return "", err
		}
		failed = json.Unmarshal(e.raw, &failed) == nil && failed
	}
	content, empty := m["content"], true
	switch {
	case content.isNull():
	case content.isString():
		s, _ := content.str()
		empty = s == ""
	default:
		blocks, err := content.array()
		if err != nil {
			return "", err
		}
		empty = len(blocks) == 0
		for _, b := range blocks {
			if err := v.resultBlock(b); err != nil {
				return "", err
			}
		}
	}
	if failed && empty {
		return "", n.fail("content cannot be empty if `is_error` is true")
	}
	return id, v.mark(m)
}

func (v *anthropicCheck) resultBlock(n node) error {
	m, err := n.object([]string{"type"}, nil)
	if err != nil {
		return err
	}
	switch kind := strOf(m, "type"); kind {
	case "text":
		return v.textBlock(n, "user", true)
	case "image":
		return v.image(n)
	case "document":
		return v.document(n)
	case "search_result":
		return v.searchResult(n)
	case "tool_reference":
		_, err := n.object([]string{"type", "tool_name"}, []string{"cache_control"})
		return err
	default:
		return n.fail("Input tag '%s' found using 'type' does not match any of the expected tags: 'document', "+
			"'image', 'search_result', 'text', 'tool_reference'", kind)
	}
}

// pairing checks that every call is answered in the next turn, and every answer belongs to a call.
func (v *anthropicCheck) pairing() error {
	turns := slices.DeleteFunc(slices.Clone(v.turns), func(t anthropicTurn) bool { return t.role == "system" })
	for i, t := range turns {
		var err error
		if t.role == "assistant" {
			err = v.callsAnswered(turns, i)
		} else {
			err = resultsBelong(turns, i)
		}
		if err != nil {
			return err
		}
	}
	if v.thinkingOn {
		return startsWithThinking(turns)
	}
	return nil
}

func (v *anthropicCheck) callsAnswered(turns []anthropicTurn, i int) error {
	t := turns[i]
	answered := map[string]bool{}
	if i+1 < len(turns) {
		for _, b := range turns[i+1].blocks {
			if b.kind != "tool_result" {
				break // results come first
			}
			answered[b.id] = true
		}
	}
	var missing []string
	served := map[string]bool{}
	for _, later := range turns[i:] {
		for _, b := range later.blocks {
			if slices.Contains(serverResultType, b.kind) {
				served[b.id] = true
			}
		}
	}
	known := map[string]bool{}
	for _, b := range t.blocks {
		switch {
		case b.kind == "tool_use":
			if !answered[b.id] {
				missing = append(missing, b.id)
			}
		case b.kind == "server_tool_use", b.kind == "mcp_tool_use":
			known[b.id] = true
			// The last turn may have been paused before the server's tool was done.
			if !served[b.id] && i < len(turns)-1 {
				return fmt.Errorf("messages.%d: `%s` block with id `%s` was found without a corresponding result block",
					t.first, b.kind, b.id)
			}
		case slices.Contains(serverResultType, b.kind):
			if !known[b.id] && !calledBefore(turns[:i], b.id) {
				return fmt.Errorf("%s: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%s` block must "+
					"have a corresponding `server_tool_use` block before it.", b.path, b.kind, b.id, b.kind)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: "+
			"%s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
			t.first, strings.Join(missing, ", "))
	}
	return nil
}

func calledBefore(turns []anthropicTurn, id string) bool {
	for _, t := range turns {
		for _, b := range t.blocks {
			if (b.kind == "server_tool_use" || b.kind == "mcp_tool_use") && b.id == id {
				return true
			}
		}
	}
	return false
}

func resultsBelong(turns []anthropicTurn, i int) error {
	called := map[string]bool{}
	if i > 0 {
		for _, b := range turns[i-1].blocks {
			if b.kind == "tool_use" {
				called[b.id] = true
			}
		}
	}
	seen := map[string]bool{}
	for _, b := range turns[i].blocks {
		if b.kind != "tool_result" {
			continue
		}
		if !called[b.id] {
			return fmt.Errorf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` "+
				"block must have a corresponding `tool_use` block in the previous message.", b.path, b.id)
		}
		if seen[b.id] {
			return fmt.Errorf(
				"%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", b.path,
				b.id)
		}
		seen[b.id] = true
	}
	return nil
}

// startsWithThinking: while the thinking mode with a budget is on, the assistant's part of a tool loop that
// is still open begins with thinking.
func startsWithThinking(turns []anthropicTurn) error {
	for i := len(turns) - 1; i >= 0; i-- {
		t := turns[i]
		if t.role == "user" {
			if len(t.blocks) > 0 && t.blocks[0].kind == "tool_result" {
				continue
			}
			return nil
		}
		if k := t.blocks[0].kind; i == len(turns)-2 && k != "thinking" && k != "redacted_thinking" {
			return fmt.Errorf("%s.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When "+
				"`thinking` is enabled, a final `assistant` message must start with a thinking block", t.blocks[0].path,
				k)
		}
		return nil
	}
	return nil
}
