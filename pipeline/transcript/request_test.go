package transcript_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/request"
)

func TestBuildRequest(t *testing.T) {
	t.Parallel()
	messages := [][]byte{
		[]byte(`{"role":"user","content":"a"}`),
		[]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text",` +
			`"text":"b"}]}`),
	}
	ask := []byte(`{"role":"user","content":"summarise"}`)
	joined := string(bytes.Join(messages, []byte(",")))
	for _, c := range []struct {
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
				Format: transcript.Anthropic, Envelope: json.RawMessage(
					"{\"max_tokens\":1,\"messages\":[\n  0,\n  0\n ]}"),
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
				Format: transcript.Anthropic, Envelope: json.RawMessage(
					`{"max_tokens":1,"tool_choice":{"type":"tool",` +
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
				Format: transcript.Anthropic, Envelope: json.RawMessage(
					`{"max_tokens":1,"thinking":{"type":"adaptive"},` +
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
				Format: transcript.Anthropic, Envelope: json.RawMessage(
					`{"max_tokens":1,"thinking":{"type":"adaptive"},` +
						`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},` +
						`"messages":[]}`),
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
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := request.Build(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.out || !json.Valid(out) {
				t.Errorf("got  %s\nwant %s", out, c.out)
			}
		})
	}
}

func TestBuildRequestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in  request.Input
		err string
	}{
		{request.Input{Format: transcript.ClaudeCode}, "it has none; convert"},
		{
			request.Input{Format: transcript.Anthropic, Envelope: json.RawMessage(`{"messages":7}`)},
			"no array of messages",
		},
		{request.Input{Format: transcript.Anthropic, Envelope: json.RawMessage(`[]`)}, "no JSON object"},
		{request.Input{Format: transcript.Anthropic, Envelope: json.RawMessage(`{`)}, "no JSON object"},
	} {
		if _, err := request.Build(c.in); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v; want %q", c.in, err, c.err)
		}
	}
}

// A request that is read and built again is the same request, and one that asks for a summary begins with the
// same bytes, up to the end of the last message.
func TestRequestIsBuiltAgainByteForByte(t *testing.T) {
	t.Parallel()
	same := func(fatal func(string, ...any), in []byte, f transcript.Format) {
		file, err := transcript.Read(bytes.NewReader(in), transcript.Options{Format: f})
		if err != nil {
			fatal("%v: %s", err, in)
		}
		c := file.Conversations[0]
		r := request.Input{
			Format: f, Envelope: c.Envelope, System: c.System, Tools: c.Tools, Model: c.Model,
			MaxTokens: 4096,
		}
		for _, m := range c.Messages {
			r.Messages = append(r.Messages, m.Native)
		}
		out, err := request.Build(r)
		if err != nil {
			fatal("%v", err)
		}
		if !bytes.Equal(out, bytes.TrimSpace(in)) {
			fatal("got  %s\nwant %s", out, in)
		}
		codec, _ := transcript.CodecFor(f)
		if r.Append, err = codec.Make(pipeline.Made{Role: pipeline.RoleUser, Text: "summarise"}); err != nil {
			fatal("%v", err)
		}
		out, err = request.Build(r)
		if err != nil || rawjson.Check(out) != nil {
			fatal("%v: %s", err, out)
		}
		last := r.Messages[len(r.Messages)-1]
		end := bytes.LastIndex(in, last) + len(last)
		if !bytes.HasPrefix(out, in[:end]) {
			fatal("the prefix differs:\n%s\n%s", out, in)
		}
	}
	for _, path := range []string{"testdata/anthropic/request.json", "testdata/openai/request.json"} {
		in, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := transcript.Anthropic
		if strings.Contains(path, "openai") {
			f = transcript.OpenAI
		}
		same(t.Fatalf, in, f)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]transcript.Format{transcript.Anthropic, transcript.OpenAI}).Draw(t, "format")
		blank := rapid.SampledFrom([]string{"", " ", "\n  "})
		sep := blank.Draw(t, "before") + "," + blank.Draw(t, "behind")
		open, closing := blank.Draw(t, "open"), blank.Draw(t, "close")
		var natives []string
		for range rapid.IntRange(2, 5).Draw(t, "n") { // of one message alone the layout between two is not known
			natives = append(natives, string(drawMessage(f).Draw(t, "message")))
		}
		pairs := []string{`"messages":[` + open + strings.Join(natives, sep) + closing + `]`}
		for _, p := range []string{`"model": "m"`, `"max_tokens":64`, `"tools" : [{"name":"f"}]`, `"x":{"y":[]}`} {
			at := rapid.IntRange(0, len(pairs)).Draw(t, "at")
			pairs = append(pairs[:at:at], append([]string{p}, pairs[at:]...)...)
		}
		if f == transcript.Anthropic {
			pairs = append(pairs, `"system":"S"`)
		}
		same(t.Fatalf, []byte("{ "+strings.Join(pairs, " , ")+"\n}"), f)
	})
}
