package scenario

import (
	"fmt"

	"precis/pipeline/transcript"
)

// Turns returns a conversation of several turns of about turnTokens tokens each, and a last question without an answer.
// The messages are in the Anthropic format.
func Turns(turns, turnTokens int) []string {
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

// TurnsIn is Turns in the format of an API.
func TurnsIn(format transcript.Format, turns, turnTokens int) []string {
	if format == transcript.Anthropic {
		return Turns(turns, turnTokens)
	}
	var user, call, result, assistant string
	switch format {
	case transcript.OpenAIResponses:
		user = `{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`
		call = `{"type":"function_call","id":"fc_%[1]d","call_id":"call_%[1]d","name":"read","arguments":"{` +
			`\"path\":\"a.go\"}","status":"completed"}`
		result = `{"type":"function_call_output","call_id":"call_%d","output":%s}`
		assistant = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}`
	case transcript.Google:
		user = `{"role":"user","parts":[{"text":%s}]}`
		call = `{"role":"model","parts":[{"functionCall":{"id":"call_%d","name":"read","args":{"path":"a.go"}}}]}`
		result = `{"role":"user","parts":[{"functionResponse":{"id":"call_%d","name":"read","response":{` +
			`"output":%s}}}]}`
		assistant = `{"role":"model","parts":[{"text":%s}]}`
	default:
		user = `{"role":"user","content":%s}`
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{` +
			`"name":"read","arguments":"{\"path\":\"a.go\"}"}}]}`
		result = `{"role":"tool","tool_call_id":"call_%d","content":%s}`
		assistant = `{"role":"assistant","content":%s}`
	}
	var out []string
	for i := range turns {
		out = append(out,
			fmt.Sprintf(user, quote(fmt.Sprintf("Request %d: look at part %d and tell me what it does.", i, i))),
			fmt.Sprintf(call, i),
			fmt.Sprintf(result, i, quote(Distinct(fmt.Sprintf("r%d_", i), turnTokens/4))),
			fmt.Sprintf(assistant, quote(fmt.Sprintf("Part %d is about %s.", i, Words(turnTokens/4)))),
		)
	}
	return append(out, fmt.Sprintf(user, quote("And now the last question, which nobody has answered.")))
}
