package valid

import (
	"fmt"
	"slices"
	"strings"

	"precis/pipeline/transcript/rawjson"
)

// openAIMessages checks the messages of OpenAI's chat completions.
func openAIMessages(messages [][]byte) error {
	var open list
	expecting := false
	for i, b := range messages {
		v, err := object(i, b)
		if err != nil {
			return err
		}
		role := v.Get("role").Text()
		if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "function"}, role) {
			return failure(i, "the API has no role %q", role)
		}
		if slices.ContainsFunc(elements(v.Get("content")), isForeignBlock) {
			return failure(i, "%v", errForeignCalls)
		}
		if role == "tool" {
			if id := v.Get("tool_call_id").Text(); !expecting || !open.take(id) {
				return failure(i, "the result of %q has no call in the message before", id)
			}
			continue
		}
		if len(open) > 0 {
			return failure(i, "the calls before it have no results: %s", strings.Join(open, ", "))
		}
		calls := elements(v.Get("tool_calls"))
		expecting = len(calls) > 0
		for _, call := range calls {
			open = append(open, call.Get("id").Text())
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the last calls have no results: %s", strings.Join(open, ", "))
	}
	return nil
}

// isForeignBlock reports whether a content part is a call or a result in the form of another API.
func isForeignBlock(v rawjson.Value) bool {
	switch v.Get("type").Text() {
	case "tool_use", "tool_result", "tool-call", "tool-result", "function_call", "function_call_output":
		return true
	}
	_, call := v.Lookup("functionCall")
	_, response := v.Lookup("functionResponse")
	return call || response
}
