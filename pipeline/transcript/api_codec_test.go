package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/wire/responses"
)

// Messages of odd but real shapes, and what they mean.
func TestDecodeAPIs(t *testing.T) {
	t.Parallel()
	record := func(payload string) string {
		return `{"timestamp":"t","type":"response_item","payload":` + payload + `}`
	}
	for _, c := range []struct {
		name   string
		format transcript.Format
		in     string
		want   string // as dumpMessage has it, without the native
	}{
		{
			"a bare string among parts", transcript.OpenAIResponses, `{"role":"user","content":["a"]}`,
			`message user|text text="a"`,
		},
		{
			"nothing said", transcript.OpenAIResponses, `{"type":"message","role":"assistant","content":[]}`,
			`message assistant`,
		},
		{"a plain null", transcript.OpenAIResponses, `{"role":"assistant","content":null}`, `message assistant`},
		{
			"a part that is not known", transcript.OpenAIResponses,
			`{"role":"user","content":[{"type":"input_video"}]}`, `message user|opaque type="input_video"`,
		},
		{
			"audio", transcript.OpenAIResponses,
			`{"role":"user","content":[{"type":"input_audio","input_audio":{"format":"wav",` +
				`"data":"AAAA"}}]}`, `message user|file type="input_audio" media="audio/wav" 3 bytes 0×0`,
		},
		{
			"an image by its id", transcript.OpenAIResponses,
			`{"role":"user","content":[{"type":"input_image","file_id":"f"}]}`, `message user|image type="input_image"`,
		},
		{
			"arguments that are an object", transcript.OpenAIResponses,
			`{"type":"function_call","call_id":"c","name":"f","arguments":{"a":1}}`,
			`message assistant|tool_call type="function_call" call="c" name="f" input="{\"a\":1}"`,
		},
		{
			"an output without one", transcript.OpenAIResponses, `{"type":"function_call_output","call_id":"c"}`,
			`message tool|tool_result type="function_call_output" call="c"`,
		},
		{
			"an image that was made", transcript.OpenAIResponses,
			`{"type":"image_generation_call","id":"ig","status":"completed","result":"AAAA","output_format":"png"}`,
			`message assistant|tool_call type="image_generation_call" call="ig" ` +
				`name="image_generation"|tool_result type="image_generation_call" call="ig" ` +
				`name="image_generation"|  image media="image/png" 3 bytes 0×0`,
		},
		{
			"a call of a server that failed", transcript.OpenAIResponses,
			`{"type":"mcp_call","id":"m","server_label":"s","name":"n","arguments":"{}","error":{"type":"x"}}`,
			`message assistant|tool_call type="mcp_call" call="m" name="s.n" input="{}"|tool_result ` +
				`type="mcp_call" call="m" name="s.n" error|  text text="{\"type\":\"x\"}"`,
		},
		{
			"a search by the server without a call id", transcript.OpenAIResponses,
			`{"type":"tool_search_call","id":"t","arguments":{"q":1},"call_id":null}`,
			`message assistant|tool_call type="tool_search_call" call="t" name="tool_search" input="{` +
				`\"q\":1}"|tool_result type="tool_search_call" call="t" name="tool_search"`,
		},
		{
			"tools that a search found", transcript.OpenAIResponses,
			`{"type":"tool_search_output","call_id":"t","tools":[{"name":"n"}]}`,
			`message tool|tool_result type="tool_search_output" call="t"|  text text="[{\"name\":\"n\"}]"`,
		},
		{
			"a program", transcript.OpenAIResponses,
			`{"type":"program","id":"p","call_id":"c","code":"1","fingerprint":"f"}`,
			`message assistant|tool_call type="program" call="c" name="program" input="1"`,
		},
		{
			"what a program gave", transcript.OpenAIResponses,
			`{"type":"program_output","id":"p","call_id":"c","result":"1","status":"completed"}`,
			`message tool|tool_result type="program_output" call="c"|  text text="1"`,
		},
		{
			"reasoning with its own words", transcript.OpenAIResponses,
			`{"type":"reasoning","summary":[{"type":"summary_text",` +
				`"text":"s"}],"content":[{"type":"reasoning_text","text":"c"}]}`,
			`message assistant|reasoning type="reasoning" text="s\nc"`,
		},
		{
			"tools that were added", transcript.OpenAIResponses,
			`{"type":"additional_tools","role":"developer","tools":[]}`,
			`message system|opaque type="additional_tools"`,
		},
		{
			"asked for a compaction", transcript.OpenAIResponses, `{"type":"compaction_trigger"}`,
			`message user/synthetic|opaque type="compaction_trigger"`,
		},
		{
			"the environment of Codex", transcript.OpenAIResponses,
			`{"role":"user","content":"<environment_context>\n</environment_context>"}`,
			`message user/user_info|text text="<environment_context>\n</environment_context>"`,
		},
		{"the environment beside words of the user's", transcript.OpenAIResponses, `{"role":"user","content":[{` +
			`"type":"input_text","text":"<environment_context></environment_context>"},{"type":"input_text",` +
			`"text":"hi"}]}`, `message user|text type="input_text" ` +
			`text="<environment_context></environment_context>"|text type="input_text" text="hi"`},

		{
			"a message of another agent", transcript.Codex,
			record(`{"type":"agent_message","author":"/root/a","recipient":"/root","content":"done"}`),
			`message user/synthetic|text text="done"`,
		},
		{
			"a local shell's call", transcript.Codex,
			record(`{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec",` +
				`"command":["ls"]}}`), `message assistant|tool_call type="local_shell_call" call="c" ` +
				`name="local_shell" input="{\"type\":\"exec\",\"command\":[\"ls\"]}"`,
		},

		{"no role", transcript.Google, `{"parts":[{"text":"a"}]}`, `message user|text text="a"`},
		{"nothing said", transcript.Google, `{"role":"model"}`, `message assistant`},
		{"parts that are null", transcript.Google, `{"role":"model","parts":null}`, `message assistant`},
		{
			"a role of old", transcript.Google,
			`{"role":"function","parts":[{"functionResponse":{"name":"f","response":{` +
				`"a":1}}}]}`,
			`message tool|tool_result type="functionResponse" name="f"|  text text="{\"a\":1}"`,
		},
		{
			"a response that is a text", transcript.Google,
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":"r"}}]}`,
			`message tool|tool_result type="functionResponse" name="f"|  text text="r"`,
		},
		{
			"an error beside more", transcript.Google,
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"e","code":2}}}]}`,
			`message tool|tool_result type="functionResponse" name="f" error|  text text="{\"error\":\"e\",\"code\":2}"`,
		},
		{
			"an empty response", transcript.Google,
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`,
			`message tool|tool_result type="functionResponse" name="f"`,
		},
		{
			"a call that is no object", transcript.Google, `{"role":"model","parts":[{"functionCall":7}]}`,
			`message assistant|tool_call type="functionCall"`,
		},
		{
			"a thought of which only the signature is left", transcript.Google,
			`{"role":"model","parts":[{"thought":true,"thoughtSignature":"c2ln"}]}`, `message assistant|reasoning`,
		},
		{
			"a part that is not known", transcript.Google, `{"role":"model","parts":[{"hologram":{}}]}`,
			`message assistant|opaque`,
		},
		{"a call that the server runs", transcript.Google, `{"role":"model","parts":[{"tool_call":{"id":"t",` +
			`"tool_type":"GOOGLE_SEARCH","args":{"q":"x"}}},{"tool_response":{"id":"t",` +
			`"tool_type":"GOOGLE_SEARCH","response":{"r":1}}}]}`, `message assistant|tool_call type="toolCall" ` +
			`call="t" name="GOOGLE_SEARCH" input="{\"q\":\"x\"}"|tool_result type="toolResponse" call="t" ` +
			`name="GOOGLE_SEARCH"|  text text="{\"r\":1}"`},
		{
			"code that failed", transcript.Google,
			`{"role":"model","parts":[{"codeExecutionResult":{"outcome":"OUTCOME_FAILED",` +
				`"output":"boom"}}]}`, `message assistant|tool_result type="codeExecutionResult" ` +
				`name="code_execution" error|  text text="boom"`,
		},

		{
			"a single part", transcript.GeminiCLI, `{"id":"m","type":"user","content":{"text":"a"}}`,
			`message user id=m|text text="a"`,
		},
		{
			"a single image", transcript.GeminiCLI,
			`{"id":"m","type":"user","content":{"inlineData":{"mimeType":"image/png",` +
				`"data":"AAAA"}}}`, `message user id=m|image media="image/png" 3 bytes 0×0`,
		},
		{
			"one call, written in two places", transcript.GeminiCLI,
			`{"id":"m","type":"gemini","content":[{"functionCall":{` +
				`"name":"f","args":{"a":1}}}],"toolCalls":[{"id":"c","name":"f","args":{"a":1},"result":[]}]}`,
			`message assistant id=m|tool_call type="functionCall" call="c" name="f" input="{\"a\":1}"`,
		},
		{
			"two calls of one name", transcript.GeminiCLI,
			`{"id":"m","type":"gemini","content":[{"functionCall":{"name":"f",` +
				`"args":{"a":1}}}],"toolCalls":[{"id":"c","name":"f","args":{"a":2},"result":[]}]}`,
			`message assistant id=m|tool_call type="functionCall" name="f" input="{\"a\":1}"|tool_call ` +
				`type="tool_call" call="c" name="f" input="{\"a\":2}"`,
		},
		{
			"a result that is one response", transcript.GeminiCLI,
			`{"type":"toolResults","of":"m","toolCalls":[{"id":"c",` +
				`"name":"f","result":{"functionResponse":{"name":"f","response":{"output":"r"}}}}]}`,
			`message tool|tool_result type="functionResponse" call="c" name="f"|  text text="r"`,
		},

		{
			"a reply in a stream", transcript.ClaudeStream,
			`{"type":"assistant","message":{"role":"assistant","content":[{` +
				`"type":"text","text":"a"}]},"parent_tool_use_id":null,"uuid":"u"}`,
			`message assistant id=u|text type="text" text="a"`,
		},
		{
			"what the program said in a stream", transcript.ClaudeStream,
			`{"type":"user","message":{"role":"user","content":"go on"},"isSynthetic":true,"uuid":"u"}`,
			`message user/reminder id=u|text text="go on"`,
		},

		{
			"a compaction block", transcript.Anthropic,
			`{"role":"assistant","content":[{"type":"compaction","content":"c"},{"type":"text","text":"a"}]}`,
			`message assistant|opaque type="compaction"|text type="text" text="a"`,
		},
	} {
		codec, err := transcript.CodecFor(c.format)
		if err != nil || codec.Format() != c.format {
			t.Fatalf("the codec of %s is of %s: %v", c.format, codec.Format(), err)
		}
		m, err := codec.Decode([]byte(c.in))
		if err != nil {
			t.Errorf("%s/%s: %v", c.format, c.name, err)
			continue
		}
		got, _, _ := strings.Cut(dumpMessage(m), "\n  = ")
		if got = strings.ReplaceAll(got, "\n  ", "|"); got != c.want {
			t.Errorf("%s/%s:\ngot  %s\nwant %s", c.format, c.name, got, c.want)
		}
		checkMessage(t, c.format, m)
	}
}

func TestDecodeAPIErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format transcript.Format
		in     string
		err    string
	}{
		{transcript.OpenAIResponses, `{`, "ends in the middle"},
		{transcript.OpenAIResponses, `[]`, "it is no object"},
		{transcript.OpenAIResponses, `{"content":"a"}`, "neither a type nor a role"},
		{transcript.OpenAIResponses, `{"type":"message","content":"a"}`, "has no role"},
		{
			transcript.OpenAIResponses, `{"role":"robot","content":"a"}`,
			"its role is not user, assistant, system or developer",
		},
		{transcript.OpenAIResponses, `{"role":"user"}`, "it has no content"},
		{transcript.OpenAIResponses, `{"role":"user","content":7}`, "neither a string nor an array"},
		{
			transcript.OpenAIResponses, `{"type":"function_call_output","call_id":"c","output":7}`,
			"neither a string nor an array",
		},
		{transcript.Codex, `{"type":"response_item"}`, "no record with a payload"},
		{transcript.Codex, `{"type":"response_item","payload":7}`, "it is no object"},
		{transcript.Google, `7`, "it is no object"},
		{transcript.Google, `{}`, "neither a role nor parts"},
		{transcript.Google, `{"role":"robot","parts":[]}`, "its role is not user or model"},
		{transcript.Google, `{"role":"user","parts":{}}`, "its parts are no array"},
		{transcript.Google, `{"role":"user","parts":[7]}`, "a part is no object"},
		{
			transcript.Google, `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":[7]}}]}`,
			"a part is no object",
		},
		{transcript.GeminiCLI, `[]`, "it is no object"},
		{transcript.GeminiCLI, `{"id":"m"}`, "it has no type"},
		{transcript.GeminiCLI, `{"id":"m","type":"info","content":"x"}`, `an entry of type "info" is no message`},
		{transcript.GeminiCLI, `{"id":"m","type":"user","content":7}`, "neither a string nor parts"},
		{transcript.GeminiCLI, `{"id":"m","type":"user","content":[7]}`, "a part is no object"},
		{transcript.GeminiCLI, `{"type":"toolResults"}`, "it has no results"},
		{transcript.GeminiCLI, `{"type":"toolResults","toolCalls":[{"id":"c","result":[7]}]}`, "a part is no object"},
		{transcript.ClaudeStream, `{"type":"result"}`, "is no message"},
	} {
		codec, err := transcript.CodecFor(c.format)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = codec.Decode([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %s: %v; want %q", c.format, c.in, err, c.err)
		}
		if pipeline.KindOf(err) != pipeline.BadRequest {
			t.Errorf("%s: the kind of %v is %q", c.format, err, pipeline.KindOf(err))
		}
		// A stored message that is broken can be neither edited nor written.
		if _, err = codec.Encode(pipeline.Message{Native: []byte(c.in)}, []pipeline.Edit{drop(0, -1)}); err == nil {
			t.Errorf("%s %s: it was edited", c.format, c.in)
		}
	}
}

func TestEncodeAPIsWithEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		format transcript.Format
		in     string
		edits  []pipeline.Edit
		out    string // empty: nothing is left
	}{
		{
			"a plain string", transcript.OpenAIResponses, `{ "role":"user", "content":"long" }`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{ "role":"user", "content":"short" }`,
		},
		{
			"a part", transcript.OpenAIResponses,
			`{"role":"user","content":[ {"type":"input_text","text":"a","x":1} , {` +
				`"type":"input_text","text":"b"}]}`,
			[]pipeline.Edit{replace(0, -1, "<c>")},
			`{"role":"user","content":[ {"type":"input_text","text":"<c>","x":1} , {"type":"input_text","text":"b"}]}`,
		},
		{
			"an image of the user's becomes text", transcript.OpenAIResponses, `{"role":"user","content":[{` +
				`"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`,
			[]pipeline.Edit{replace(1, -1, "[image]")},
			`{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"[image]"}]}`,
		},
		{
			"an output", transcript.OpenAIResponses, `{"type":"function_call_output","output":"long","call_id":"c", ` +
				`"n":9007199254740993}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"type":"function_call_output","output":"short","call_id":"c", "n":9007199254740993}`,
		},
		{
			"an output in parts, as a whole", transcript.OpenAIResponses,
			`{"type":"function_call_output","call_id":"c",` +
				`"output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"type":"function_call_output","call_id":"c","output":"short"}`,
		},
		{
			"an image inside of an output", transcript.OpenAIResponses,
			`{"type":"function_call_output","call_id":"c",` +
				`"output":[{"type":"input_text","text":"a"}, {"type":"input_image",` +
				`"image_url":"data:image/png;base64,AAAA"}]}`,
			[]pipeline.Edit{replace(0, 1, "[binary]")},
			`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}, {` +
				`"type":"input_text","text":"[binary]"}]}`,
		},
		{
			"an output without one", transcript.OpenAIResponses, `{"type":"function_call_output","call_id":"c"}`,
			[]pipeline.Edit{replace(0, -1, "none")},
			`{"type":"function_call_output","call_id":"c","output":"none"}`,
		},
		{
			"what a shell gave", transcript.OpenAIResponses, `{"type":"shell_call_output","call_id":"c","output":[{` +
				`"stdout":"long","stderr":"","outcome":{"type":"exit","exit_code":3}}]}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"short","stderr":"","outcome":{` +
				`"type":"exit","exit_code":0}}]}`,
		},
		{
			"a screenshot stays", transcript.OpenAIResponses,
			`{"type":"computer_call_output","call_id":"c","output":{` +
				`"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}`,
			[]pipeline.Edit{replace(0, -1, "x"), replace(0, 0, "y")},
			`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot",` +
				`"image_url":"data:image/png;base64,AAAA"}}`,
		},
		{
			"arguments", transcript.OpenAIResponses,
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"}`,
			[]pipeline.Edit{replace(0, -1, `{"a":2}`)},
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":2}"}`,
		},
		{
			"reasoning dropped", transcript.OpenAIResponses,
			`{"type":"reasoning","summary":[],"encrypted_content":"x"}`,
			[]pipeline.Edit{drop(0, -1)},
			``,
		},
		{
			"what the vendor ran stays as it is", transcript.OpenAIResponses,
			`{"type":"mcp_call","id":"m","name":"n","arguments":"{}","output":"long"}`,
			[]pipeline.Edit{replace(0, -1, "x"), replace(1, -1, "y")},
			`{"type":"mcp_call","id":"m","name":"n","arguments":"{}","output":"long"}`,
		},
		{
			"and goes as a whole", transcript.OpenAIResponses,
			`{"type":"mcp_call","id":"m","name":"n","arguments":"{}","output":"long"}`,
			[]pipeline.Edit{drop(0, -1), drop(1, -1)},
			``,
		},
		{
			"a result in a record", transcript.Codex, `{"timestamp":"t", "type":"response_item","payload":{` +
				`"type":"custom_tool_call_output","call_id":"c","output":"long"} }`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"timestamp":"t", "type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c",` +
				`"output":"short"} }`,
		},
		{
			"a text", transcript.Google, `{"role":"user", "parts":[ {"text":"a"} , {"text":"b"}]}`,
			[]pipeline.Edit{replace(1, -1, "c")},
			`{"role":"user", "parts":[ {"text":"a"} , {"text":"c"}]}`,
		},
		{
			"a response", transcript.Google,
			`{"role":"user","parts":[{"functionResponse":{"id":"r","name":"f","response":{` +
				`"output":"long"},"x":1}}]}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"role":"user","parts":[{"functionResponse":{"id":"r","name":"f","response":{"output":"short"},"x":1}}]}`,
		},
		{
			"the text in a response", transcript.Google,
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{ "result" : "long" }}}]}`,
			[]pipeline.Edit{replace(0, 0, "short")},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{ "result" : "short" }}}]}`,
		},
		{
			"an error stays one", transcript.Google,
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{` +
				`"error":"long","code":1}}}]}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"short"}}}]}`,
		},
		{
			"a response of another shape", transcript.Google,
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"files":["a"]}}}]}`,
			[]pipeline.Edit{replace(0, 0, "one")},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}}]}`,
		},
		{
			"a response without one", transcript.Google, `{"role":"user","parts":[{"functionResponse":{"name":"f"}}]}`,
			[]pipeline.Edit{replace(0, -1, "none")},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"none"}}}]}`,
		},
		{
			"an image in a response goes: no text may stand there", transcript.Google, `{"role":"user","parts":[{` +
				`"functionResponse":{"name":"f","response":{"output":"o"},"parts":[{"inlineData":{` +
				`"mimeType":"image/png","data":"AAAA"}}]}}]}`,
			[]pipeline.Edit{replace(0, 1, "[binary]")},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"o"},"parts":[]}}]}`,
		},
		{
			"an image beside words", transcript.Google,
			`{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":"AAAA"}},{"text":"a"}]}`,
			[]pipeline.Edit{replace(0, -1, "[image]")},
			`{"role":"user","parts":[{"text":"[image]"},{"text":"a"}]}`,
		},
		{
			"the input of a call", transcript.Google,
			`{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"}]}`,
			[]pipeline.Edit{replace(0, -1, `{"a":2}`)},
			`{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":2}},"thoughtSignature":"c2ln"}]}`,
		},
		{
			"a call without an input", transcript.Google, `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`,
			[]pipeline.Edit{replace(0, -1, `{"a":2}`)},
			`{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":2}}}]}`,
		},
		{
			"thoughts dropped", transcript.Google,
			`{"role":"model","parts":[{"text":"t","thought":true}, {"text":"a"}]}`,
			[]pipeline.Edit{drop(0, -1)},
			`{"role":"model","parts":[{"text":"a"}]}`,
		},
		{
			"one of two results", transcript.GeminiCLI,
			`{"type":"toolResults","of":"m","toolCalls":[{"id":"c","name":"f",` +
				`"result":"long"},{"id":"d","name":"f","result":[{"functionResponse":{"name":"f","response":{` +
				`"output":"long"}}}]}]}`,
			[]pipeline.Edit{replace(0, -1, "s"), replace(1, 0, "t")},
			`{"type":"toolResults","of":"m","toolCalls":[{"id":"c","name":"f","result":"s"},{"id":"d","name":"f",` +
				`"result":[{"functionResponse":{"name":"f","response":{"output":"t"}}}]}]}`,
		},
		{
			"a result dropped", transcript.GeminiCLI,
			`{"type":"toolResults","of":"m","toolCalls":[{"id":"c","name":"f",` +
				`"result":"a"},{"id":"d","name":"f","result":[{"functionResponse":{"name":"f","response":{` +
				`"output":"b"}}}]}]}`,
			[]pipeline.Edit{drop(1, -1)},
			`{"type":"toolResults","of":"m","toolCalls":[{"id":"c","name":"f","result":"a"}]}`,
		},
		{
			"a call that stands in two places goes from both", transcript.GeminiCLI,
			`{"id":"m","type":"gemini","content":[{` +
				`"text":"a"},{"functionCall":{"id":"c","name":"f","args":{}}}],"toolCalls":[{"id":"c","name":"f",` +
				`"args":{},"result":[]}]}`,
			[]pipeline.Edit{drop(1, -1)},
			`{"id":"m","type":"gemini","content":[{"text":"a"}],"toolCalls":[]}`,
		},
		{
			"a plain content beside calls", transcript.GeminiCLI,
			`{"id":"m","type":"gemini","content":"long","toolCalls":[{"id":"c","name":"f","args":{},"result":[]}]}`,
			[]pipeline.Edit{drop(
				0, -1)},
			`{"id":"m","type":"gemini","content":"","toolCalls":[{"id":"c","name":"f","args":{},` +
				`"result":[]}]}`,
		},
		{
			"a single part", transcript.GeminiCLI,
			`{"id":"m","type":"user","content":{"inlineData":{"mimeType":"image/png",` +
				`"data":"AAAA"}}}`,
			[]pipeline.Edit{replace(0, -1, "[image]")},
			`{"id":"m","type":"user","content":"[image]"}`,
		},
		{
			"a compaction block stays, whatever goes beside it", transcript.Anthropic,
			`{"role":"assistant","content":[{` +
				`"type":"compaction","content":"c","signature":"s"}, {"type":"text","text":"a"}]}`,
			[]pipeline.Edit{replace(1, -1, "b")},
			`{"role":"assistant","content":[{"type":"compaction","content":"c","signature":"s"}, {"type":"text",` +
				`"text":"b"}]}`,
		},
	} {
		t.Run(fmt.Sprint(c.format, "/", c.name), func(t *testing.T) {
			t.Parallel()
			codec, err := transcript.CodecFor(c.format)
			if err != nil {
				t.Fatal(err)
			}
			m, err := codec.Decode([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			before := bytes.Clone(m.Native)
			out, err := codec.Encode(m, c.edits)
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.out {
				t.Errorf("got  %s\nwant %s", out, c.out)
			}
			if !bytes.Equal(before, m.Native) {
				t.Error("the message itself was changed")
			}
			if again, err := codec.Encode(m, nil); err != nil || !bytes.Equal(again, m.Native) {
				t.Errorf("without edits: %s, %v", again, err)
			}
		})
	}
	// Where the API has an object for an input, no other text can stand in.
	m, err := codecOf(
		t, transcript.OpenAIResponses).Decode(
		[]byte(`{"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := codecOf(t, transcript.OpenAIResponses).Encode(m, []pipeline.Edit{replace(0, -1, "ls")}); err == nil ||
		!strings.Contains(err.Error(), "must be a JSON object") {
		t.Errorf("got %v", err)
	}
}

func TestMakeForAPIs(t *testing.T) {
	t.Parallel()
	summary := pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSummary, Text: "S \"x\""}
	result := func(typ string) pipeline.Made {
		return pipeline.Made{Role: pipeline.RoleTool, CallID: "c", Name: "f", Type: typ, Text: "none", IsError: true}
	}
	for _, c := range []struct {
		format transcript.Format
		made   pipeline.Made
		out    string
		err    string
	}{
		{
			transcript.OpenAIResponses, summary,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"S \"x\""}]}`, "",
		},
		{
			transcript.OpenAIResponses,
			pipeline.Made{Role: pipeline.RoleSystem, Text: "s"},
			`{"type":"message","role":"system","content":[{"type":"input_text","text":"s"}]}`, "",
		},
		{
			transcript.OpenAIResponses,
			pipeline.Made{Role: pipeline.RoleAssistant, Text: "a"},
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`, "",
		},
		{transcript.OpenAIResponses, pipeline.Made{Role: pipeline.RoleUser, Text: " "}, "", "has no text"},
		{transcript.OpenAIResponses, result(""), `{"type":"function_call_output","call_id":"c","output":"none"}`, ""},
		{
			transcript.OpenAIResponses, result("function_call"),
			`{"type":"function_call_output","call_id":"c","output":"none"}`, "",
		},
		{
			transcript.OpenAIResponses, result("custom_tool_call"),
			`{"type":"custom_tool_call_output","call_id":"c","output":"none"}`, "",
		},
		{
			transcript.OpenAIResponses, result("local_shell_call"),
			`{"type":"local_shell_call_output","id":"c","output":"none"}`, "",
		},
		{transcript.OpenAIResponses, result("shell_call"), `{"type":"shell_call_output","call_id":"c","output":[{` +
			`"stdout":"none","stderr":"","outcome":{"type":"exit","exit_code":1}}]}`, ""},
		{
			transcript.OpenAIResponses, result("apply_patch_call"),
			`{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"none"}`, "",
		},
		{
			transcript.OpenAIResponses, result("computer_call"),
			`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"` +
				responses.NoScreenshot + `"}}`, "",
		},
		{transcript.Codex, summary, `{"type":"response_item","payload":{"type":"message","role":"user","content":[{` +
			`"type":"input_text","text":"S \"x\""}]}}`, ""},
		{
			transcript.Codex, result("custom_tool_call"),
			`{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c","output":"none"}}`, "",
		},
		{transcript.Codex, pipeline.Made{Role: pipeline.RoleUser}, "", "has no text"},
		{transcript.Google, summary, `{"role":"user","parts":[{"text":"S \"x\""}]}`, ""},
		{
			transcript.Google,
			pipeline.Made{Role: pipeline.RoleAssistant, Text: "a"},
			`{"role":"model","parts":[{"text":"a"}]}`, "",
		},
		{
			transcript.Google, result("functionCall"),
			`{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"error":"none"}}}]}`, "",
		},
		{transcript.Google, pipeline.Made{Role: pipeline.RoleSystem, Text: "s"}, "", "stands beside them"},
		{transcript.Google, pipeline.Made{Role: pipeline.RoleUser, Text: "\n"}, "", "has no text"},
		{transcript.GeminiCLI, result(""), `{"type":"toolResults","toolCalls":[{"id":"c","name":"f","result":[{` +
			`"functionResponse":{"id":"c","name":"f","response":{"error":"none"}}}]}]}`, ""},
		{transcript.GeminiCLI, pipeline.Made{Role: pipeline.RoleAssistant, Text: "a"}, "", "none can be made"},
		{
			transcript.ClaudeStream, summary,
			`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"S ` +
				`\"x\""}]},"parent_tool_use_id":null,"isSynthetic":true}`, "",
		},
		{
			transcript.ClaudeStream, result(""),
			`{"type":"user","message":{"role":"user","content":[{"type":"tool_result",` +
				`"tool_use_id":"c","content":"none","is_error":true}]},"parent_tool_use_id":null}`, "",
		},
		{transcript.ClaudeStream, pipeline.Made{Role: pipeline.RoleAssistant, Text: "a"}, "", "none can be made"},
	} {
		codec, err := transcript.CodecFor(c.format)
		if err != nil {
			t.Fatal(err)
		}
		out, err := codec.Make(c.made)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %+v: %v; want %q", c.format, c.made, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(out) != c.out || !json.Valid(out) {
			t.Errorf("%s: got  %s\nwant %s", c.format, out, c.out)
		}
		m, err := codec.Decode(out)
		if err != nil || m.Role != c.made.Role {
			t.Errorf("%s: read back it has role %q: %v", c.format, m.Role, err)
		}
	}
	// The id of an entry of Gemini CLI is a hash of what is in it.
	one, err := codecOf(t, transcript.GeminiCLI).Make(summary)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := codecOf(t, transcript.GeminiCLI).Make(summary)
	if !bytes.Equal(one, two) || !bytes.HasSuffix(one, []byte(`,"type":"user","content":[{"text":"S \"x\""}]}`)) {
		t.Errorf("got %s and %s", one, two)
	}
}
