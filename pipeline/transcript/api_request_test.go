package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"precis/pipeline/transcript"
	"precis/pipeline/transcript/request"
)

func TestBuildRequestForAPIs(t *testing.T) {
	t.Parallel()
	item := []byte(`{"role":"user","content":"a"}`)
	content := []byte(`{"role":"user","parts":[{"text":"a"}]}`)
	answer := []byte(`{"role":"model","parts":[{"text":"b"}]}`)
	call := []byte(`{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`)
	for _, c := range []struct {
		name string
		in   request.Input
		out  string
	}{
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
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := request.Build(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.out {
				t.Errorf("got  %s\nwant %s", out, c.out)
			}
		})
	}
	for format, in := range map[transcript.Format]request.Input{
		transcript.Codex:           {},
		transcript.GeminiCLI:       {},
		transcript.OpenAIResponses: {Envelope: json.RawMessage(`{"input":7}`)},
		transcript.Google:          {Messages: [][]byte{[]byte(`{`)}},
	} {
		in.Format = format
		if out, err := request.Build(in); err == nil {
			t.Errorf("%s: %s", format, out)
		}
	}
}

// The body begins with the bytes of the agent's own last request, so that the vendor's cache is hit.
func TestAPIRequestsAreBuiltAgainByteForByte(t *testing.T) {
	t.Parallel()
	for path, tail := range map[string]string{
		"openai-responses/request.json": `{"role":"user","content":"summarise"}`,
		"google/request.json":           `{"role":"user","parts":[{"text":"summarise"}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("testdata", path))
			if err != nil {
				t.Fatal(err)
			}
			conv := readFile(t, filepath.Join("testdata", path)).Conversations[0]
			var natives [][]byte
			for _, m := range conv.Messages {
				natives = append(natives, m.Native)
			}
			r := request.Input{
				Format: conv.Format, Envelope: conv.Envelope, System: conv.System, Tools: conv.Tools, Model: conv.Model,
				MaxTokens: conv.MaxTokens, Messages: natives,
			}
			whole, err := request.Build(r)
			if err != nil || !bytes.Equal(whole, bytes.TrimSpace(data)) {
				t.Fatalf("built again it is another: %v\n%s", err, whole)
			}
			r.Append = []byte(tail)
			asked, err := request.Build(r)
			if err != nil {
				t.Fatal(err)
			}
			last := natives[len(natives)-1]
			end := bytes.Index(data, last) + len(last)
			if !bytes.HasPrefix(asked, data[:end]) {
				t.Errorf("it does not begin as the request before:\n%s", asked)
			}
		})
	}
}

// Requests of a log that go on from each other without repeating their messages are one conversation.
func TestResponsesThatGoOn(t *testing.T) {
	t.Parallel()
	step := func(id, previous, said, answered string) string {
		if previous != "" {
			previous = fmt.Sprintf(`"previous_response_id":%q,`, previous)
		}
		return fmt.Sprintf(`{"uri":"https://api.openai.com/v1/responses","request":{%s"model":"gpt-5","input":[{`+
			`"role":"user","content":%q}]},"response":{"id":%q,"object":"response","output":[{"type":"message",`+
			`"role":"assistant","content":[{"type":"output_text","text":%q}]}]}}`, previous, said, id, answered)
	}
	for name, c := range map[string]struct {
		log      []string
		messages []int // of each conversation
		noted    bool  // that history is missing
	}{
		"each from the one before": {[]string{
			step("r1", "", "a", "1"), step("r2", "r1", "b", "2"),
			step("r3", "r2", "c", "3"),
		}, []int{6}, false},
		"the first is not in the log": {
			[]string{step("r2", "r1", "b", "2"), step("r3", "r2", "c", "3")},
			[]int{4},
			true,
		},
		"two conversations, interwoven": {[]string{
			step("r1", "", "a", "1"), step("s1", "", "x", "9"),
			step("r2", "r1", "b", "2"), step("s2", "s1", "y", "8"),
		}, []int{4, 4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			for _, s := range c.log {
				b.WriteString(s + "\n")
			}
			f, err := transcript.Read(&b, transcript.Options{})
			if err != nil || f.Format != transcript.OpenAIResponses {
				t.Fatalf("%v, %s", err, f.Format)
			}
			var got []int
			for _, conv := range f.Conversations {
				got = append(got, len(conv.Messages))
				if bytes.Contains(conv.Envelope, []byte("previous_response_id")) != c.noted {
					t.Errorf("the envelope is %s", conv.Envelope)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.messages) {
				t.Errorf("conversations of %v messages, want %v", got, c.messages)
			}
			noted := false
			for _, n := range f.Notes {
				noted = noted || n.Note.Code == transcript.NoteMissing
			}
			if noted != c.noted {
				t.Errorf("noted: %v", noted)
			}
		})
	}
}
