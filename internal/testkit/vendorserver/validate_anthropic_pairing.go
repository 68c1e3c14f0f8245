package vendorserver

import (
	"fmt"
	"slices"
	"strings"
)

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
