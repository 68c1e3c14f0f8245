package vendorserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline/transcript/valid"
)

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
func (v *anthropicCheck) block(n node, role string) (block valid.Block, text string, err error) {
	m, err := n.object([]string{"type"}, nil)
	if err != nil {
		return block, "", err
	}
	kind := strOf(m, "type")
	block = valid.Block{Path: n.path, Kind: kind}
	if !slices.Contains(allowedBlocks[role], kind) {
		return block, "", n.fail("Input tag '%s' found using 'type' does not match any of the expected tags: '%s'",
			kind, strings.Join(allowedBlocks[role], "', '"))
	}
	switch kind {
	case "text":
		text = strOf(m, "text")
		err = v.textBlock(n, role, true)
	case "image":
		err = v.image(n)
	case "document":
		err = v.document(n)
	case "search_result":
		err = v.searchResult(n)
	case "thinking":
		err = thinkingBlock(n)
	case "redacted_thinking":
		err = redactedThinking(n)
	case "tool_use":
		block.ID, err = v.toolUse(n)
	case "server_tool_use":
		block.ID, err = v.serverToolUse(n)
	case "mcp_tool_use":
		block.ID, err = v.mcpToolUse(n)
	case "tool_result":
		block.ID, err = v.toolResult(n)
	case "container_upload":
		if m, err = n.object([]string{"type", "file_id"}, []string{"cache_control"}); err == nil {
			err = v.mark(m)
		}
	case "compaction":
		err = v.compactionKeys(n)
	default:
		block.ID, err = v.otherBlock(n, kind)
	}
	return block, text, err
}

func thinkingBlock(n node) error {
	m, err := n.object([]string{"type", "thinking", "signature"}, []string{})
	if err != nil {
		return err
	}
	if _, err = m["thinking"].str(); err != nil {
		return err
	}
	if strOf(m, "signature") == "" {
		return n.fail("Invalid `signature` in `thinking` block")
	}
	return nil
}

func redactedThinking(n node) error {
	m, err := n.object([]string{"type", "data"}, []string{})
	if err != nil {
		return err
	}
	if strOf(m, "data") == "" {
		return n.fail("Invalid `data` in `redacted_thinking` block")
	}
	return nil
}

func (v *anthropicCheck) toolUse(n node) (id string, err error) {
	m, err := n.object([]string{"type", "id", "name", "input"}, []string{"cache_control", "caller", "toolset_name"})
	if err != nil {
		return "", err
	}
	if id, err = v.callID(m["id"]); err != nil {
		return "", err
	}
	if name := strOf(m, "name"); name == "" || len(name) > 200 {
		return "", m["name"].fail("String should have from 1 to 200 characters")
	}
	if !m["input"].isObject() {
		return "", m["input"].fail("Input should be a valid dictionary")
	}
	return id, v.mark(m)
}

func (v *anthropicCheck) serverToolUse(n node) (id string, err error) {
	m, err := n.object([]string{"type", "id", "name", "input"}, []string{"cache_control", "caller"})
	if err != nil {
		return "", err
	}
	id = strOf(m, "id")
	if !reServerToolID.MatchString(id) {
		return "", m["id"].fail("String should match pattern '%s'", reServerToolID)
	}
	if !slices.Contains(serverToolNames, strOf(m, "name")) {
		return "", m["name"].fail("Input should be one of '%s'", strings.Join(serverToolNames, "', '"))
	}
	if !m["input"].isObject() {
		return "", m["input"].fail("Input should be a valid dictionary")
	}
	return id, v.mark(m)
}

func (v *anthropicCheck) mcpToolUse(n node) (id string, err error) {
	m, err := n.object([]string{"type", "id", "name", "input", "server_name"}, []string{"cache_control"})
	if err != nil {
		return "", err
	}
	if id, err = v.callID(m["id"]); err != nil {
		return "", err
	}
	return id, v.mark(m)
}

// compactionKeys checks the keys of a block of an earlier compaction.
func (v *anthropicCheck) compactionKeys(n node) error {
	m, err := n.object([]string{"type"},
		[]string{"content", "encrypted_content", "signature", "tool_changes", "cache_control"})
	if err != nil {
		return err
	}
	if strOf(m, "content") == "" && strOf(m, "encrypted_content") == "" {
		return n.fail("compaction blocks must have non-empty content")
	}
	return v.mark(m)
}

// otherBlock checks the result of a server's tool, and the cache mark of every other block.
func (v *anthropicCheck) otherBlock(n node, kind string) (id string, err error) {
	m, err := n.object([]string{"type"}, nil)
	if slices.Contains(serverResultType, kind) {
		m, err = n.object([]string{"type", "tool_use_id", "content"}, []string{"cache_control", "caller", "is_error"})
		id = strOf(m, "tool_use_id")
	}
	if err != nil {
		return "", err
	}
	return id, v.mark(m)
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
