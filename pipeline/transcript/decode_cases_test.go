package transcript_test

import (
	"precis/pipeline/transcript"
)

// Messages of odd but real shapes, and what they mean, as dumpMessage writes it without the native bytes.
var decodeCases = []decodeCase{
	{
		"a bare string among blocks", transcript.Anthropic,
		`{"role":"user","content":["a",{"type":"text","text":"b"}]}`,
		`message user|text text="a"|text type="text" text="b"`,
	},
	{"no content", transcript.Anthropic, `{"role":"user","content":[]}`, `message user/reminder`},
	{"blank", transcript.Anthropic, `{"role":"user","content":" \n"}`, `message user/reminder|text text=" \n"`},
	{
		"a text block without text", transcript.Anthropic, `{"role":"user","content":[{"type":"text","text":7}]}`,
		`message user|opaque type="text"`,
	},
	{
		"a block without a type", transcript.Anthropic, `{"role":"assistant","content":[{"x":1}]}`,
		`message assistant|opaque`,
	},
	{
		"an image without a source", transcript.Anthropic, `{"role":"user","content":[{"type":"image"}]}`,
		`message user|image type="image"`,
	},
	{
		"a plain document", transcript.Anthropic,
		`{"role":"user","content":[{"type":"document","source":{"type":"text",` +
			`"media_type":"text/plain","data":"né"}}]}`,
		`message user|file type="document" text="n\u00e9" media="text/plain" 3 bytes 0×0`,
	},
	{"the error of a server tool", transcript.Anthropic, `{"role":"assistant","content":[{` +
		`"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error",` +
		`"error_code":"x"}}]}`, `message assistant|tool_result type="web_search_tool_result" call="s" error|  ` +
		`opaque type="web_search_tool_result_error"`},
	{
		"a result of a kind that is not known yet", transcript.Anthropic,
		`{"role":"user","content":[{"type":"new_tool_result","tool_use_id":"n","content":"r"}]}`,
		`message tool|tool_result type="new_tool_result" call="n"|  text text="r"`,
	},
	{
		"results, a reminder and a picture without a word", transcript.Anthropic, `{"role":"user","content":[{` +
			`"type":"tool_result","tool_use_id":"t"},{"type":"text",` +
			`"text":"<system-reminder>x</system-reminder>"},{"type":"image","source":{"type":"file",` +
			`"file_id":"f"}}]}`,
		`message tool|tool_result type="tool_result" call="t"|text type="text" ` +
			`text="<system-reminder>x</system-reminder>"|image type="image"`,
	},
	{"an escaped key", transcript.Anthropic, `{"r\u006fle":"user","content":"a"}`, `message user|text text="a"`},
	{
		"a system message in the middle", transcript.Anthropic, `{"role":"system","content":"s"}`,
		`message system|text text="s"`,
	},

	{"a bare string among parts", transcript.OpenAI, `{"role":"user","content":["a"]}`, `message user|text text="a"`},
	{
		"an image as its address", transcript.OpenAI,
		`{"role":"user","content":[{"type":"image_url","image_url":"https://x/a.png"}]}`,
		`message user|image type="image_url"`,
	},
	{
		"a file without a data URL", transcript.OpenAI,
		`{"role":"user","content":[{"type":"file","file":{"filename":"f","file_data":"AAAA"}}]}`,
		`message user|file type="file" name="f" 3 bytes 0×0`,
	},
	{
		"a file by its id", transcript.OpenAI, `{"role":"user","content":[{"type":"file","file":{"file_id":"x"}}]}`,
		`message user|file type="file"`,
	},
	{
		"a refusal among parts", transcript.OpenAI,
		`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
		`message assistant|text type="refusal" text="no"`,
	},
	{
		"a part that is not known", transcript.OpenAI,
		`{"role":"user","content":[{"type":"video_url","video_url":{}}]}`, `message user|opaque type="video_url"`,
	},
	{
		"arguments that are an object", transcript.OpenAI,
		`{"role":"assistant","tool_calls":[{"id":"c","type":"function",` +
			`"function":{"name":"f","arguments":{"a":1}}}]}`,
		`message assistant|tool_call type="function" call="c" name="f" input="{\"a\":1}"`,
	},
	{
		"a call without a function", transcript.OpenAI, `{"role":"assistant","tool_calls":[{"id":"c"}]}`,
		`message assistant|tool_call call="c"`,
	},
	{
		"reasoning under its other name", transcript.OpenAI, `{"role":"assistant","reasoning":"r","content":"a"}`,
		`message assistant|reasoning text="r"|text text="a"`,
	},
	{"nothing said", transcript.OpenAI, `{"role":"assistant","content":null}`, `message assistant`},

	{
		"what was typed meanwhile, in blocks", transcript.ClaudeCode,
		claudeAttachment(`{"type":"queued_command","prompt":[{` +
			`"type":"text","text":"and"},{"type":"image","source":{"type":"base64","media_type":"image/png",` +
			`"data":"AAAA"}}]}`), `message user id=q|text type="text" text="and"|image type="image" ` +
			`media="image/png" 3 bytes 0×0`,
	},
	{
		"a thought of which only the signature is left", transcript.ClaudeCode,
		`{"type":"assistant","uuid":"a","message":{` +
			`"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}}`,
		`message assistant id=a|reasoning type="thinking"`,
	},
	{
		"a reminder beside what was said", transcript.ClaudeCode,
		`{"type":"user","uuid":"a","message":{"role":"user",` +
			`"content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"image",` +
			`"source":{}}]}}`,
		`message user id=a|text type="text" text="<system-reminder>x</system-reminder>"|image type="image"`,
	},
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
		"a part that is not known", transcript.OpenAIResponses, `{"role":"user","content":[{"type":"input_video"}]}`,
		`message user|opaque type="input_video"`,
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
		`{"type":"additional_tools","role":"developer","tools":[]}`, `message system|opaque type="additional_tools"`,
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
		codexRecord(`{"type":"agent_message","author":"/root/a","recipient":"/root","content":"done"}`),
		`message user/synthetic|text text="done"`,
	},
	{
		"a local shell's call", transcript.Codex,
		codexRecord(`{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec",` +
			`"command":["ls"]}}`), `message assistant|tool_call type="local_shell_call" call="c" ` +
			`name="local_shell" input="{\"type\":\"exec\",\"command\":[\"ls\"]}"`,
	},

	{"no role", transcript.Google, `{"parts":[{"text":"a"}]}`, `message user|text text="a"`},
	{"nothing said", transcript.Google, `{"role":"model"}`, `message assistant`},
	{"parts that are null", transcript.Google, `{"role":"model","parts":null}`, `message assistant`},
	{
		"a role of old", transcript.Google, `{"role":"function","parts":[{"functionResponse":{"name":"f","response":{` +
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
		"a call that is not an object", transcript.Google, `{"role":"model","parts":[{"functionCall":7}]}`,
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
	{
		"an action without fields whose response was not kept", transcript.OpenHands,
		`{"id":43,"source":"agent","action":"run","args":null,"tool_call_metadata":{"function_name":"f",` +
			`"tool_call_id":"c"}}`,
		`message assistant id=43|tool_call type="run" call="c" name="f" input="null"`,
	},
}

// Invalid messages, and their errors.
var decodeErrorCases = []decodeErrorCase{
	{transcript.Anthropic, ``, "ends too early"},
	{transcript.Anthropic, `{} {}`, "unexpected text"},
	{transcript.Anthropic, `[]`, "the message is not a JSON object"},
	{transcript.Anthropic, `{"role":"user"}`, "the message has no content"},
	{transcript.Anthropic, `{"role":"user","content":7}`, "neither a string nor an array of blocks"},
	{transcript.Anthropic, `{"role":"user","content":[7]}`, "a content block is not an object"},
	{
		transcript.Anthropic, `{"role":"user","content":[{"tool_use_id":"t","content":[7]}]}`,
		"a content block is not an object",
	},
	{transcript.Anthropic, `{"role":7,"content":"a"}`, "the message has no role"},
	{transcript.OpenAI, `7`, "the message is not a JSON object"},
	{transcript.OpenAI, `{"role":"user","content":{}}`, "neither a string nor an array of parts"},
	{transcript.OpenAI, `{"role":"user","content":[7]}`, "a part of the content is not an object"},
	{transcript.OpenAI, `{"role":"tool","content":{}}`, "neither a string nor an array of parts"},
	{transcript.OpenAI, `{"role":"assistant","tool_calls":[7]}`, "a tool call is not an object"},
	{transcript.OpenAI, `{"content":"a"}`, "the message has no role"},
	{transcript.OpenAI, `{"role":"exit","content":"a"}`, "the role is not system"},
	{transcript.OpenAI, `{`, "ends too early"},
	{transcript.ClaudeCode, ` `, "the message is empty"},
	{transcript.ClaudeCode, `[]`, "a record is not an object"},
	{transcript.ClaudeCode, `{`, "ends too early"},
	{transcript.ClaudeCode, `{"type":"system"}`, `a record of type "system" is not a message`},
	{transcript.ClaudeCode, `{"type":"user","message":"x"}`, "a user record has no message"},
	{
		transcript.ClaudeCode, `{"type":"user","message":{"role":"assistant","content":"x"}}`,
		"a user record has a message of another role",
	},
	{
		transcript.ClaudeCode, `{"type":"attachment","attachment":{"type":"queued_command","prompt":7}}`,
		`a record of type "attachment" is not a message`,
	},
	{
		transcript.ClaudeCode, `{"type":"attachment","attachment":{"type":"queued_command","prompt":[7]}}`,
		"a content block is not an object",
	},
	{transcript.OpenAIResponses, `{`, "ends too early"},
	{transcript.OpenAIResponses, `[]`, "the message is not a JSON object"},
	{transcript.OpenAIResponses, `{"content":"a"}`, "neither a type nor a role"},
	{transcript.OpenAIResponses, `{"type":"message","content":"a"}`, "has no role"},
	{
		transcript.OpenAIResponses, `{"role":"robot","content":"a"}`,
		"the role is not user, assistant, system or developer",
	},
	{transcript.OpenAIResponses, `{"role":"user"}`, "the message has no content"},
	{transcript.OpenAIResponses, `{"role":"user","content":7}`, "neither a string nor an array"},
	{
		transcript.OpenAIResponses, `{"type":"function_call_output","call_id":"c","output":7}`,
		"neither a string nor an array",
	},
	{transcript.Codex, `{"type":"response_item"}`, "the record has no payload"},
	{transcript.Codex, `{"type":"response_item","payload":7}`, "the message is not a JSON object"},
	{transcript.Google, `7`, "the message is not a JSON object"},
	{transcript.Google, `{}`, "neither a role nor parts"},
	{transcript.Google, `{"role":"robot","parts":[]}`, "the role is not user or model"},
	{transcript.Google, `{"role":"user","parts":{}}`, "the parts are not an array"},
	{transcript.Google, `{"role":"user","parts":[7]}`, "a part is not an object"},
	{
		transcript.Google, `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":[7]}}]}`,
		"a part is not an object",
	},
	{transcript.GeminiCLI, `[]`, "the message is not a JSON object"},
	{transcript.GeminiCLI, `{"id":"m"}`, "the entry has no type"},
	{transcript.GeminiCLI, `{"id":"m","type":"info","content":"x"}`, `an entry of type "info" is not a message`},
	{transcript.GeminiCLI, `{"id":"m","type":"user","content":7}`, "neither a string nor parts"},
	{transcript.GeminiCLI, `{"id":"m","type":"user","content":[7]}`, "a part is not an object"},
	{transcript.GeminiCLI, `{"type":"toolResults"}`, "the entry has no results"},
	{transcript.GeminiCLI, `{"type":"toolResults","toolCalls":[{"id":"c","result":[7]}]}`, "a part is not an object"},
	{transcript.ClaudeStream, `{"type":"result"}`, "is not a message"},
}
