package valid

import (
	"fmt"
	"strings"
)

// responsesItems checks the items of OpenAI's Responses API: a call may have its output anywhere behind it.
func responsesItems(items [][]byte, continued bool) error {
	var open, known list
	for i, b := range items {
		v, err := object(i, b)
		if err != nil {
			return err
		}
		typ := v.Get("type").Text()
		id := v.Get("call_id").Text()
		switch {
		case isForeignBlock(v) && !strings.HasPrefix(typ, "function_call"):
			return failure(i, "%v", errForeignCalls)
		case typ == "function_call", typ == "custom_tool_call":
			open, known = append(open, id), append(known, id)
		case typ == "function_call_output", typ == "custom_tool_call_output":
			switch {
			case open.take(id):
			case known.take(id):
				return failure(i, "the call %q has two outputs", id)
			case !continued:
				return failure(i, "the output of %q has no call", id)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls have no output: %s", strings.Join(open, ", "))
	}
	return nil
}
