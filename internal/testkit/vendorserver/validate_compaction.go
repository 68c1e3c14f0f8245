package vendorserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The beta features of the two kinds of compaction at Anthropic.
const (
	betaCompactionEdit     = "compact-2026-01-12"
	betaCompactionOnDemand = "compact-2026-09-04"
)

// firstBlock is the type of a content's first block, "" for a plain text.
func firstBlock(n node) string {
	blocks, err := n.array()
	if err != nil || len(blocks) == 0 {
		return ""
	}
	m, err := blocks[0].object(nil, nil)
	if err != nil {
		return ""
	}
	return strOf(m, "type")
}

// compactionBlock checks the position of a block of an earlier compaction. A signed one comes first; one of the edit
// may be anywhere and hides what precedes it.
func (v *anthropicCheck) compactionBlock(b node) error {
	m, err := b.object(nil, nil)
	if err != nil {
		return err
	}
	v.compactions++
	if strOf(m, "signature") == "" {
		return nil
	}
	v.signed++
	if v.signed > 1 {
		return fmt.Errorf("messages: more than one compaction block with content; send only the newest")
	}
	if b.path != "messages.0.content.0" {
		return b.fail("the compaction block must come first in messages, in place of the messages that it summarizes")
	}
	return nil
}

// compaction checks the parameters of a compaction.
func (v *anthropicCheck) compaction(root map[string]node) error {
	betas := strings.Split(v.o.Betas, ",")
	beta := func(name string) bool { return !v.o.Request || slices.Contains(betas, name) }
	if c, ok := root["compaction"]; ok && !c.isNull() {
		if !beta(betaCompactionOnDemand) {
			return fmt.Errorf("compaction: requires anthropic-beta: %s", betaCompactionOnDemand)
		}
		m, err := c.object([]string{"type"}, []string{"instructions"})
		if err != nil {
			return err
		}
		if strOf(m, "type") != "summarize" {
			return c.child("type", nil).fail("Input should be 'summarize'")
		}
		for _, key := range []string{"context_management", "stop_sequences", "output_format"} {
			if n, ok := root[key]; ok && !n.isNull() {
				return fmt.Errorf("%s: cannot be combined with compaction", key)
			}
		}
		if err := v.compactable(root); err != nil {
			return err
		}
	}
	edit, err := compactionEdit(root)
	if err != nil {
		return err
	}
	switch {
	case edit && !beta(betaCompactionEdit):
		return errors.New("context_management.edits.0: Input tag 'compact_20260112' found using 'type' does not " +
			"match any of the expected tags")
	case edit && v.signed > 0:
		return errors.New(
			"context_management: compact_20260112 cannot run on a request that carries a signed compaction block")
	case v.signed > 0 && !beta(betaCompactionOnDemand), v.compactions > v.signed && !beta(betaCompactionEdit):
		return errors.New(
			"messages.0.content.0: Input tag 'compaction' found using 'type' does not match any of the expected tags")
	}
	return nil
}

// compactable refuses what a compaction request must not contain.
func (v *anthropicCheck) compactable(root map[string]node) error {
	if n, ok := root["tool_choice"]; ok && !n.isNull() {
		if m, err := n.object(nil, nil); err == nil && (strOf(m, "type") == "any" || strOf(m, "type") == "tool") {
			return n.fail("cannot be combined with compaction")
		}
	}
	if n, ok := root["output_config"]; ok && !n.isNull() {
		if m, err := n.object(nil, nil); err == nil {
			if f, ok := m["format"]; ok && !f.isNull() {
				return f.fail("cannot be combined with compaction")
			}
		}
	}
	if len(v.turns) == 0 {
		return nil
	}
	last := v.turns[len(v.turns)-1]
	for _, b := range last.Blocks {
		if last.Role == "assistant" && b.Kind == "tool_use" {
			return errors.New("messages: the last assistant turn ends in a tool call with no result yet")
		}
	}
	return nil
}

// compactionEdit says whether the compaction edit is among the edits, and checks its trigger.
func compactionEdit(root map[string]node) (bool, error) {
	n, ok := root["context_management"]
	if !ok || n.isNull() {
		return false, nil
	}
	m, err := n.object(nil, []string{"edits"})
	if err != nil {
		return false, err
	}
	edits, err := m["edits"].array()
	if err != nil {
		return false, err
	}
	for _, e := range edits {
		f, err := e.object([]string{"type"}, nil)
		if err != nil {
			return false, err
		}
		if strOf(f, "type") != "compact_20260112" {
			continue
		}
		if t, ok := f["trigger"]; ok && !t.isNull() {
			trigger, err := t.object([]string{"type", "value"}, nil)
			if err != nil {
				return true, err
			}
			return true, trigger["value"].integer(compactionTrigger)
		}
		return true, nil
	}
	return false, nil
}
