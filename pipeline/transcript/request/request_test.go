package request_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline/transcript"
	"precis/pipeline/transcript/request"
)

var (
	messages = [][]byte{
		[]byte(`{"role":"user","content":"a"}`),
		[]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text",` +
			`"text":"b"}]}`),
	}
	joined  = string(bytes.Join(messages, []byte(",")))
	ask     = []byte(`{"role":"user","content":"summarise"}`)
	item    = []byte(`{"role":"user","content":"a"}`)
	content = []byte(`{"role":"user","parts":[{"text":"a"}]}`)
	answer  = []byte(`{"role":"model","parts":[{"text":"b"}]}`)
	call    = []byte(`{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`)
)

var cases = []struct {
	name string
	in   request.Input
	out  string
}{
	{
		"nothing known",
		request.Input{Format: transcript.Anthropic, Messages: messages[:1]},
		`{"messages":[{"role":"user","content":"a"}],"max_tokens":8192}`,
	},
	{
		"all given",
		request.Input{
			Format: transcript.Anthropic, Model: "m", MaxTokens: 5, System: json.RawMessage(`"S"`),
			Tools: json.RawMessage(`[{"name":"f"}]`), Messages: messages[:1],
		},
		`{"model":"m","messages":[{"role":"user","content":"a"}],"system":"S","max_tokens":5,"tools":[{` +
			`"name":"f"}]}`,
	},
	{
		"an envelope keeps its order, its bytes and what is unknown of it",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(
				`{ "x":9007199254740993, "messages":[ ] , "model":"m", "max_tokens": 7 }`), Model: "m",
			MaxTokens: 100,
			Messages:  messages,
		},
		`{ "x":9007199254740993, "messages":[` + joined + `] , "model":"m", "max_tokens": 7 }`,
	},
	{
		"the layout of the array",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage("{\"max_tokens\":1,\"messages\":[\n  0,\n  0\n ]}"),
			Messages: messages, Append: ask,
		},
		"{\"max_tokens\":1,\"messages\":[\n  " + string(messages[0]) + ",\n  " + string(messages[1]) + ",\n  " +
			string(ask) + "\n ]}",
	},
	{
		"no messages at all",
		request.Input{Format: transcript.OpenAI, Envelope: json.RawMessage("{\"messages\":[\n  0,\n  0\n ]}")},
		`{"messages":[]}`,
	},
	{
		"a dated name is the same model",
		request.Input{
			Format: transcript.OpenAI, Envelope: json.RawMessage(`{"model":"claude-x","messages":[]}`),
			Model: "claude-x-20250929",
		},
		`{"model":"claude-x","messages":[]}`,
	},
	{
		"a gateway's name is the same model",
		request.Input{
			Format: transcript.OpenAI, Envelope: json.RawMessage(`{"model":"proxy/gpt-x","messages":[]}`),
			Model: "gpt-x",
		},
		`{"model":"proxy/gpt-x","messages":[]}`,
	},
	{
		"another model",
		request.Input{
			Format: transcript.OpenAI, Envelope: json.RawMessage(`{"model":"gpt-4","messages":[]}`),
			Model: "gpt-4-mini",
		},
		`{"model":"gpt-4-mini","messages":[]}`,
	},
	{
		"a new system prompt and new tools",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(
				`{"system":"old","tools":[ {"name":"f"} ],"max_tokens":1,"messages":[]}`),
			System: json.RawMessage(`"new"`), Tools: json.RawMessage(`[{"name":"f"}]`),
		},
		`{"system":"new","tools":[ {"name":"f"} ],"max_tokens":1,"messages":[]}`,
	},
	{
		"a system prompt beside chat messages",
		request.Input{
			Format: transcript.OpenAI, Messages: messages[:1],
			System: json.RawMessage(`[{"type":"text","text":"A"},{"type":"text","text":"B"}]`), MaxTokens: 3,
		},
		`{"messages":[{"role":"system","content":"A\n\nB"},{"role":"user","content":"a"}],` +
			`"max_completion_tokens":3}`,
	},
	{
		"a system prompt that is there already",
		request.Input{
			Format: transcript.OpenAI, Messages: [][]byte{[]byte(`{"role":"developer","content":"D"}`)},
			System: json.RawMessage(`"S"`),
		},
		`{"messages":[{"role":"developer","content":"D"}]}`,
	},
	{
		"a forced tool is taken back where text is asked for",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(`{"max_tokens":1,"tool_choice":{"type":"tool",` +
				`"name":"f"},"output_config":{"effort":"low","format":{"type":"json_schema"}},"messages":[]}`),
			Append: ask,
		},
		`{"max_tokens":1,"tool_choice":{"type":"auto"},"output_config":{"effort":"low"},"messages":[{` +
			`"role":"user","content":"summarise"}]}`,
	},
	{
		"a forced schema too",
		request.Input{
			Format: transcript.OpenAI, Envelope: json.RawMessage(
				`{"n":3,"tool_choice":"required","response_format":{"type":"json_object"},"messages":[]}`),
			Append: ask,
		},
		`{"n":1,"tool_choice":"auto","response_format":{"type":"text"},"messages":[{"role":"user",` +
			`"content":"summarise"}]}`,
	},
	{
		"what does not force stays",
		request.Input{
			Format: transcript.OpenAI, Envelope: json.RawMessage(`{"n":1,"tool_choice":"auto","messages":[]}`),
			Append: ask,
		},
		`{"n":1,"tool_choice":"auto","messages":[{"role":"user","content":"summarise"}]}`,
	},
	{
		"thinking behind a summary may be dropped by the server",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(
				`{"max_tokens":1,"thinking":{"type":"enabled","budget_tokens":1},"messages":[]}`),
			Messages:   messages,
			Summarized: true,
		},
		`{"max_tokens":1,"thinking":{"type":"enabled","budget_tokens":1},"messages":[` + joined +
			`],"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{` +
			`"type":"thinking_turns","value":1}}]}}`,
	},
	{
		"beside other edits, in front of them",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(`{"max_tokens":1,"thinking":{"type":"adaptive"},` +
				`"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}],"x":1},"messages":[]}`),
			Messages: messages, Summarized: true,
		},
		`{"max_tokens":1,"thinking":{"type":"adaptive"},"context_management":{"edits":[{` +
			`"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}},{` +
			`"type":"clear_tool_uses_20250919"}],"x":1},"messages":[` + joined + `]}`,
	},
	{
		"not twice",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(`{"max_tokens":1,"thinking":{"type":"adaptive"},` +
				`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"messages":[]}`),
			Messages: messages, Summarized: true,
		},
		`{"max_tokens":1,"thinking":{"type":"adaptive"},"context_management":{"edits":[{` +
			`"type":"clear_thinking_20251015","keep":"all"}]},"messages":[` + joined + `]}`,
	},
	{
		"not without thinking",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(`{"max_tokens":1,"messages":[]}`),
			Messages: messages, Summarized: true,
		},
		`{"max_tokens":1,"messages":[` + joined + `]}`,
	},
	{
		"not where no message has any",
		request.Input{
			Format: transcript.Anthropic, Envelope: json.RawMessage(
				`{"max_tokens":1,"thinking":{"type":"enabled"},"messages":[]}`), Messages: messages[:1],
			Summarized: true,
		},
		`{"max_tokens":1,"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"a"}]}`,
	},
	{
		"items, nothing known",
		request.Input{Format: transcript.OpenAIResponses, Messages: [][]byte{item}},
		`{"input":[{"role":"user","content":"a"}]}`,
	},
	{
		"items, all of it",
		request.Input{
			Format: transcript.OpenAIResponses, Model: "gpt-5", MaxTokens: 100, System: json.RawMessage(`"S"`),
			Tools: json.RawMessage(`[{"type":"function","name":"f"}]`), Messages: [][]byte{item},
		},
		`{"model":"gpt-5","input":[{"role":"user","content":"a"}],"instructions":"S","max_output_tokens":100,` +
			`"tools":[{"type":"function","name":"f"}]}`,
	},
	{
		"what the envelope says already stays as it is",
		request.Input{
			Format: transcript.OpenAIResponses, Model: "gpt-5", MaxTokens: 100, System: json.RawMessage(`"S"`),
			Tools: json.RawMessage(`[ ]`), Envelope: json.RawMessage(`{ "model":"gpt-5-2025-08-07", ` +
				`"instructions":"\u0053", "max_output_tokens":50, "input":[], "tools":[] }`),
			Messages: [][]byte{item},
		},
		`{ "model":"gpt-5-2025-08-07", "instructions":"\u0053", "max_output_tokens":50, "input":[{` +
			`"role":"user","content":"a"}], "tools":[] }`,
	},
	{
		"asked for a summary, nothing forced",
		request.Input{
			Format: transcript.OpenAIResponses,
			Envelope: json.RawMessage(`{"input":[],"tool_choice":{"type":"function","name":"f"},"text":{` +
				`"format":{"type":"json_schema"},"verbosity":"low"}}`),
			Messages: [][]byte{item}, Append: item,
		},
		`{"input":[{"role":"user","content":"a"},{"role":"user","content":"a"}],"tool_choice":"auto","text":{` +
			`"verbosity":"low"}}`,
	},
	{
		"contents, nothing known",
		request.Input{Format: transcript.Google, Messages: [][]byte{content}},
		`{"contents":[{"role":"user","parts":[{"text":"a"}]}]}`,
	},
	{
		"contents, all of it",
		request.Input{
			Format: transcript.Google, Model: "gemini-3-pro", MaxTokens: 100, System: json.RawMessage(`"S"`),
			Tools: json.RawMessage(`[{"functionDeclarations":[]}]`), Messages: [][]byte{content},
		},
		`{"model":"models/gemini-3-pro","contents":[{"role":"user","parts":[{"text":"a"}]}],` +
			`"systemInstruction":{"parts":[{"text":"S"}]},"generationConfig":{"maxOutputTokens":100},"tools":[` +
			`{"functionDeclarations":[]}]}`,
	},
	{
		"the other spelling of keys, what is said already",
		request.Input{
			Format: transcript.Google, Model: "gemini-3-pro", MaxTokens: 100,
			System: json.RawMessage(`{"parts":[{"text":"S"}]}`),
			Envelope: json.RawMessage(`{"model":"models/gemini-3-pro","system_instruction":{"role":"system",` +
				`"parts":[{"text":"S"}]},"contents":[],"generation_config":{"max_output_tokens":7}}`),
			Messages: [][]byte{content},
		},
		`{"model":"models/gemini-3-pro","system_instruction":{"role":"system","parts":[{"text":"S"}]},` +
			`"contents":[{"role":"user","parts":[{"text":"a"}]}],"generation_config":{"max_output_tokens":7}}`,
	},
	{
		"a limit among others, a new system instruction",
		request.Input{
			Format: transcript.Google, MaxTokens: 100, System: json.RawMessage(`[{"text":"T"}]`),
			Envelope: json.RawMessage(
				`{"contents":[],"systemInstruction":"S","generationConfig":{"temperature":0}}`),
			Messages: [][]byte{content},
		},
		`{"contents":[{"role":"user","parts":[{"text":"a"}]}],"systemInstruction":{"parts":[{"text":"T"}]},` +
			`"generationConfig":{"maxOutputTokens":100,"temperature":0}}`,
	},
	{
		"a limit alone",
		request.Input{
			Format: transcript.Google, MaxTokens: 100,
			Envelope: json.RawMessage(`{"contents":[],"generationConfig":{ }}`), Messages: [][]byte{content},
		},
		`{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":100 }}`,
	},
	{
		"a forced call and a forced schema taken back",
		request.Input{
			Format: transcript.Google,
			Envelope: json.RawMessage(`{"contents":[],"toolConfig":{"functionCallingConfig":{"mode":"ANY",` +
				`"allowedFunctionNames":["f"]}},"generationConfig":{"responseMimeType":"application/json",` +
				`"responseSchema":{"type":"OBJECT"},"topK":1}}`),
			Messages: [][]byte{content}, Append: content,
		},
		`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"a"}]}],` +
			`"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":[]}},` +
			`"generationConfig":{"responseMimeType":"text/plain","responseSchema":null,"topK":1}}`,
	},
	{
		"what the model says in pieces before a call is one content",
		request.Input{Format: transcript.Google, Messages: [][]byte{
			content, answer, call,
			[]byte(`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}}]}`),
		}},
		`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"},{` +
			`"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f",` +
			`"response":{"output":"r"}}}]}]}`,
	},
	{
		"results in pieces are one content, made ones last",
		request.Input{Format: transcript.Google, Messages: [][]byte{
			content, []byte(
				`{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]}`),
			[]byte(`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"none"}}}]}`),
			[]byte(`{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}]}`),
		}},
		`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{` +
			`"name":"f"}},{"functionCall":{"name":"f"}}]},{"role": "user", "parts": [{"functionResponse": {` +
			`"name": "f", "response": {"output": "r"}}},{"functionResponse":{"name":"f","response":{` +
			`"error":"none"}}}]}]}`,
	},
	{
		"contents of one role that need no joining stay apart",
		request.Input{Format: transcript.Google, Messages: [][]byte{content, content, answer, answer}},
		`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"a"}]},{` +
			`"role":"model","parts":[{"text":"b"}]},{"role":"model","parts":[{"text":"b"}]}]}`,
	},
}

func TestBuild(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(string(c.in.Format)+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			out, err := request.Build(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.out, string(out)); diff != "" || !json.Valid(out) {
				t.Errorf("the request differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in  request.Input
		err string
	}{
		{request.Input{Format: transcript.ClaudeCode}, "has no requests; convert"},
		{request.Input{Format: transcript.Codex}, "has no requests; convert"},
		{request.Input{Format: transcript.GeminiCLI}, "has no requests; convert"},
		{
			request.Input{Format: transcript.Anthropic, Envelope: json.RawMessage(`{"messages":7}`)},
			"no array of messages",
		},
		{
			request.Input{Format: transcript.OpenAIResponses, Envelope: json.RawMessage(`{"input":7}`)},
			"no array of messages",
		},
		{request.Input{Format: transcript.Anthropic, Envelope: json.RawMessage(`[]`)}, "not a JSON object"},
		{request.Input{Format: transcript.Anthropic, Envelope: json.RawMessage(`{`)}, "not a JSON object"},
		{request.Input{Format: transcript.Google, Messages: [][]byte{[]byte(`{`)}}, "ends too early"},
	} {
		if _, err := request.Build(c.in); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: got %v, want an error with %q", c.in, err, c.err)
		}
	}
}
