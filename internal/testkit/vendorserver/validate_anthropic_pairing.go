package vendorserver

import (
	"fmt"
	"slices"

	"precis/pipeline/transcript/valid"
)

// pairing checks that every call is answered in the next turn, and every answer belongs to a call.
func (v *anthropicCheck) pairing() error {
	if err := valid.AnthropicPairs(v.turns); err != nil {
		return err
	}
	if v.thinkingOn {
		return startsWithThinking(slices.DeleteFunc(slices.Clone(v.turns), func(t valid.Turn) bool {
			return t.Role == "system"
		}))
	}
	return nil
}

// startsWithThinking: while the thinking mode with a budget is on, the assistant's part of a tool loop that
// is still open begins with thinking.
func startsWithThinking(turns []valid.Turn) error {
	for i := len(turns) - 1; i >= 0; i-- {
		t := turns[i]
		if t.Role == "user" {
			if len(t.Blocks) > 0 && t.Blocks[0].Kind == "tool_result" {
				continue
			}
			return nil
		}
		if k := t.Blocks[0].Kind; i == len(turns)-2 && k != "thinking" && k != "redacted_thinking" {
			return fmt.Errorf("%s.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When "+
				"`thinking` is enabled, a final `assistant` message must start with a thinking block", t.Blocks[0].Path,
				k)
		}
		return nil
	}
	return nil
}
