package valid_test

import (
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/valid"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	const (
		anthropic = transcript.Anthropic
		openAI    = transcript.OpenAI
		responses = transcript.OpenAIResponses
		google    = transcript.Google
		user      = `{"role":"user","content":"a"}`
		use       = `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}`
		result    = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}`
		served    = `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_fetch","input":{}},` +
			`{"type":"tool_use","id":"t","name":"f","input":{}}]}`
		fetched = `{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"s","content":{}}]}`
		said2   = `{"role":"assistant","content":"b"}`
		system  = `{"role":"system","content":"s"}`
		calls   = `{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function"}]}`
		tool    = `{"role":"tool","tool_call_id":"t","content":"r"}`
		call    = `{"type":"function_call","call_id":"t","name":"f","arguments":"{}"}`
		output  = `{"type":"function_call_output","call_id":"t","output":"r"}`
		asks    = `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`
		answers = `{"role":"user","parts":[{"functionResponse":{"name":"f"}}]}`
		said    = `{"role":"user","parts":[{"text":"a"}]}`
	)
	for _, c := range []struct {
		name     string
		format   transcript.Format
		messages []string
		wrong    string // a piece of the error, "" for none
	}{
		{"a pair", anthropic, []string{user, use, result}, ""},
		{"a result without its call", anthropic, []string{user, result}, "unexpected `tool_use_id`"},
		{"a call without its result", anthropic, []string{user, use, user}, "without `tool_result`"},
		{"a system message behind the user's", anthropic, []string{user, system, use, result, system}, ""},
		{"a system message at the head", anthropic, []string{system, user}, "message 0"},
		{"a system message in front of the user's", anthropic, []string{user, system, user}, "message 2"},
		{"calls of OpenAI", anthropic, []string{user, `{"role":"assistant","content":"","tool_calls":[{}]}`}, "OpenAI"},
		{"the role tool", anthropic, []string{user, tool}, `no role "tool"`},
		{"a vendor's call that is open", anthropic, []string{user, served, result}, ""},
		{"a vendor's call answered later", anthropic, []string{user, served, result, fetched}, ""},
		{"a vendor's call unanswered", anthropic, []string{user, served, result, said2, user}, "corresponding result"},
		{"a vendor's result alone", anthropic, []string{user, fetched}, "corresponding `server_tool_use`"},

		{"a pair", openAI, []string{system, user, calls, tool}, ""},
		{"a result without its call", openAI, []string{user, tool}, "no call"},
		{"a call without its result", openAI, []string{user, calls, user}, "no results: t"},
		{"a call at the end", openAI, []string{user, calls}, "no results: t"},
		{"a result of Anthropic", openAI, []string{user, result}, "another API"},
		{"a call of Anthropic", openAI, []string{user, use}, "another API"},
		{"a role of Gemini", openAI, []string{`{"role":"model","content":"a"}`}, `no role "model"`},

		{"a pair", responses, []string{user, call, output}, ""},
		{"an output without its call", responses, []string{user, output}, "has no call"},
		{"a call without its output", responses, []string{user, call}, "no output"},
		{"two outputs", responses, []string{call, output, output}, "two outputs"},

		{"a pair", google, []string{said, asks, answers}, ""},
		{"a response without its call", google, []string{said, answers}, "1 responses to 0 calls"},
		{"a call without its response", google, []string{said, asks, said}, "0 responses to 1 calls"},
		{"a call at the end", google, []string{said, asks}, "no responses"},
		{"no parts", google, []string{`{"role":"user","parts":[]}`}, "no parts"},

		{"not an object", openAI, []string{`[]`}, "not a JSON object"},
		{"a format without an API", transcript.Pi, []string{`[]`}, ""},
	} {
		var messages [][]byte
		for _, m := range c.messages {
			messages = append(messages, []byte(m))
		}
		err := valid.Messages(c.format, messages, false)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s in %s: %v, want %q", c.name, c.format, err, c.wrong)
		}
		if err != nil && pipeline.KindOf(err) != pipeline.Internal {
			t.Errorf("%s: an error of kind %s", c.name, pipeline.KindOf(err))
		}
	}
	if err := valid.Messages(responses, [][]byte{[]byte(output)}, true); err != nil {
		t.Errorf("the vendor may store the call: %v", err)
	}
}
