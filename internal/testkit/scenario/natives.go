package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Words is n words of filler, about n tokens.
func Words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

// Distinct is n words of filler that differ from those of any other seed.
func Distinct(seed string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", seed, i)
	}
	return strings.TrimSpace(b.String())
}

// User, Assistant, Call and Result are Anthropic messages.
func User(text string) string      { return message("user", text) }
func Assistant(text string) string { return message("assistant", text) }

// Call is an assistant message that says something and calls a tool.
func Call(id, text string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":%s,`+
		`"name":"read","input":{"path":"a.go"}}]}`, quote(text), quote(id))
}

// Result is the user message that carries a tool's result.
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

// Talk is a conversation of several turns of about turnTokens tokens each, the last one unanswered.
func Talk(turns, turnTokens int) []string {
	var out []string
	for i := range turns {
		out = append(out,
			User(fmt.Sprintf("Request %d: look at part %d and tell me what it does.", i, i)),
			Call(fmt.Sprintf("call_%d", i), fmt.Sprintf("I read part %d.", i)),
			Result(fmt.Sprintf("call_%d", i), Distinct(fmt.Sprintf("r%d_", i), turnTokens/4)),
			Assistant(fmt.Sprintf("Part %d is about %s.", i, Words(turnTokens/4))),
		)
	}
	return append(out, User("And now the last question, which nobody has answered."))
}
