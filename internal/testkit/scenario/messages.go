package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Words returns n words of filler, about n tokens.
func Words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

// Distinct returns n words of filler that differ from those of every other seed.
func Distinct(seed string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", seed, i)
	}
	return strings.TrimSpace(b.String())
}

// User returns a user message in the Anthropic format, as the other functions here do.
func User(text string) string { return message("user", text) }

// Assistant returns an assistant message.
func Assistant(text string) string { return message("assistant", text) }

// Call returns an assistant message with a text and a tool call.
func Call(id, text string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":%s,`+
		`"name":"read","input":{"path":"a.go"}}]}`, quote(text), quote(id))
}

// Result returns a user message with a tool's result.
func Result(id, text string) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%s,"content":%s}]}`, quote(id),
		quote(text))
}

func message(role, text string) string {
	return fmt.Sprintf(`{"role":%s,"content":%s}`, quote(role), quote(text))
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}
