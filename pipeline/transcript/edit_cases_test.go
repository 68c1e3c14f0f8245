package transcript_test

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// Edits of a message, and the resulting bytes; empty if no content is left.
var editCases = []editCase{
	{
		"a text block", transcript.Anthropic,
		`{ "role":"user", "content":[ {"type":"text", "text":"a\u0000", "cache_control":{"type":"ephemeral"}} ` +
			`, {"type":"text","text":"b"} ] }`,
		[]pipeline.Edit{replace(0, -1, "x <y>")},
		`{ "role":"user", "content":[ {"type":"text", "text":"x <y>", "cache_control":{"type":"ephemeral"}} , ` +
			`{"type":"text","text":"b"} ] }`,
	},
	{
		"a plain string", transcript.Anthropic,
		`{"content":"long","role":"user"}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"content":"short","role":"user"}`,
	},
	{
		"a result as a whole: id, flag and unknown keys stay", transcript.Anthropic,
		`{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text",` +
			`"text":"a"}],"is_error":true,"x":{"n":9007199254740993}}]}`,
		[]pipeline.Edit{replace(0, -1, "gone")},
		`{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"gone","is_error":true,` +
			`"x":{"n":9007199254740993}}]}`,
	},
	{
		"a result without content", transcript.Anthropic,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1" }]}`,
		[]pipeline.Edit{replace(0, -1, "none")},
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1" ,"content":"none"}]}`,
	},
	{
		"an image inside of a result becomes text", transcript.Anthropic,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
			`"text":"a"}, {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}`,
		[]pipeline.Edit{replace(0, 1, "[binary omitted: ~1 KB]")},
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
			`"text":"a"}, {"type":"text","text":"[binary omitted: ~1 KB]"}]}]}`,
	},
	{
		"a text inside of a result that is a plain string", transcript.Anthropic,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"abc"}]}`,
		[]pipeline.Edit{replace(0, 0, "a…")},
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a…"}]}`,
	},
	{
		"all content of a result dropped", transcript.Anthropic,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
			`"text":"a"},{"type":"text","text":"b"}]}]}`,
		[]pipeline.Edit{drop(0, 0), drop(0, 1)},
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":""}]}`,
	},
	{
		"a plain result dropped", transcript.Anthropic,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"abc"}]}`,
		[]pipeline.Edit{drop(0, 0)},
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":""}]}`,
	},
	{
		"an edit of the whole result beats those of its content, the later one the earlier", transcript.Anthropic,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
			`"text":"a"}]}]}`,
		[]pipeline.Edit{replace(0, -1, "first"), replace(0, 0, "inner"), replace(0, -1, "last")},
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"last"}]}`,
	},
	{
		"reasoning dropped", transcript.Anthropic,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}, {"type":"text",` +
			`"text":"a"}, {"type":"redacted_thinking","data":"d"}]}`,
		[]pipeline.Edit{drop(0, -1), drop(2, -1)},
		`{"role":"assistant","content":[{"type":"text","text":"a"}]}`,
	},
	{
		"everything dropped", transcript.Anthropic,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}`,
		[]pipeline.Edit{drop(0, -1)},
		``,
	},
	{
		"a plain string dropped", transcript.Anthropic,
		`{"role":"user","content":"x"}`,
		[]pipeline.Edit{drop(0, -1)},
		``,
	},
	{
		"a text replaced by nothing goes: no API takes an empty block", transcript.Anthropic,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		[]pipeline.Edit{replace(0, -1, "")},
		`{"role":"user","content":[{"type":"text","text":"b"}]}`,
	},
	{
		"a document", transcript.Anthropic,
		`{"role":"user","content":[{"type":"document","source":{"type":"base64",` +
			`"media_type":"application/pdf","data":"AAAA"}}]}`,
		[]pipeline.Edit{replace(0, -1, "[a PDF]")},
		`{"role":"user","content":[{"type":"text","text":"[a PDF]"}]}`,
	},
	{
		"the input of a call", transcript.Anthropic,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{"a":"long"}}]}`,
		[]pipeline.Edit{replace(0, -1, `{"a":"s"}`)},
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{"a":"s"}}]}`,
	},
	{
		"what a server tool gave has a shape of its own and stays", transcript.Anthropic,
		`{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s1","content":[{` +
			`"type":"web_search_result","url":"u"}]}]}`,
		[]pipeline.Edit{replace(0, -1, "x"), replace(0, 0, "y")},
		`{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s1","content":[{` +
			`"type":"web_search_result","url":"u"}]}]}`,
	},
	{
		"of keys that stand twice the one that counts", transcript.Anthropic,
		`{"role":"user","content":"a","content":"b"}`,
		[]pipeline.Edit{replace(0, -1, "c")},
		`{"role":"user","content":"a","content":"c"}`,
	},
	{
		"a plain string", transcript.OpenAI,
		`{"role":"user","content":"a","name":"n"}`,
		[]pipeline.Edit{replace(0, -1, "b")},
		`{"role":"user","content":"b","name":"n"}`,
	},
	{
		"a tool message", transcript.OpenAI,
		`{"role":"tool", "content":"long", "tool_call_id":"c1"}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"role":"tool", "content":"short", "tool_call_id":"c1"}`,
	},
	{
		"a tool message in parts, as a whole", transcript.OpenAI,
		`{"role":"tool","content":[{"type":"text","text":"a"}],"tool_call_id":"c1"}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"role":"tool","content":"short","tool_call_id":"c1"}`,
	},
	{
		"a part of a tool message", transcript.OpenAI,
		`{"role":"tool","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_call_id":"c1"}`,
		[]pipeline.Edit{replace(0, 1, "c"), drop(0, 0)},
		`{"role":"tool","content":[{"type":"text","text":"c"}],"tool_call_id":"c1"}`,
	},
	{
		"the content of a tool message dropped", transcript.OpenAI,
		`{"role":"tool","content":"a","tool_call_id":"c1"}`,
		[]pipeline.Edit{drop(0, 0)},
		`{"role":"tool","content":"","tool_call_id":"c1"}`,
	},
	{
		"a tool message dropped", transcript.OpenAI,
		`{"role":"tool","content":"a","tool_call_id":"c1"}`,
		[]pipeline.Edit{drop(0, -1)},
		``,
	},
	{
		"the text beside calls dropped", transcript.OpenAI,
		`{"role":"assistant","content":"a","tool_calls":[{"id":"c1","type":"function","function":{"name":"f",` +
			`"arguments":"{}"}}]}`,
		[]pipeline.Edit{drop(0, -1)},
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f",` +
			`"arguments":"{}"}}]}`,
	},
	{
		"one call of two dropped", transcript.OpenAI,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f",` +
			`"arguments":"{}"}}, {"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		[]pipeline.Edit{drop(0, -1)},
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"f",` +
			`"arguments":"{}"}}]}`,
	},
	{
		"all calls dropped: their key goes with them", transcript.OpenAI,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{` +
			`}"}}], "content":"a"}`,
		[]pipeline.Edit{drop(1, -1)},
		`{"role":"assistant", "content":"a"}`,
	},
	{
		"the arguments of a call", transcript.OpenAI,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{` +
			`\"a\": 1}"}}]}`,
		[]pipeline.Edit{replace(0, -1, `{"a": 2}`)},
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{` +
			`\"a\": 2}"}}]}`,
	},
	{
		"reasoning dropped", transcript.OpenAI,
		`{"role":"assistant","reasoning_content":"r","content":"a"}`,
		[]pipeline.Edit{drop(0, -1)},
		`{"role":"assistant","content":"a"}`,
	},
	{
		"an image", transcript.OpenAI,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},{` +
			`"type":"text","text":"a"}]}`,
		[]pipeline.Edit{replace(0, -1, "[image]")},
		`{"role":"user","content":[{"type":"text","text":"[image]"},{"type":"text","text":"a"}]}`,
	},
	{
		"a result in a record", transcript.ClaudeCode,
		fmt.Sprintf(lineHead, "user") +
			`{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"long"}]}` + lineTail,
		[]pipeline.Edit{replace(0, -1, "short")},
		fmt.Sprintf(lineHead, "user") +
			`{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"short"}]}` + lineTail,
	},
	{
		"the record of a dropped part goes", transcript.ClaudeCode,
		fmt.Sprintf(lineHead, "assistant") +
			`{"role":"assistant","id":"m","content":[{"type":"thinking","thinking":"t","signature":"s"}]}` +
			lineTail + "\n" +
			fmt.Sprintf(lineHead, "assistant") +
			`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail,
		[]pipeline.Edit{drop(0, -1)},
		fmt.Sprintf(lineHead, "assistant") +
			`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail,
	},
	{
		"the last record of several", transcript.ClaudeCode,
		fmt.Sprintf(lineHead, "assistant") +
			`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail + "\n" +
			fmt.Sprintf(lineHead, "assistant") +
			`{"role":"assistant","id":"m","content":[{"type":"text","text":"b"}]}` + lineTail,
		[]pipeline.Edit{drop(1, -1)},
		fmt.Sprintf(lineHead, "assistant") +
			`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail,
	},
	{
		"a record that is a string, dropped", transcript.ClaudeCode,
		fmt.Sprintf(lineHead, "user") + `{"role":"user","content":"x"}` + lineTail,
		[]pipeline.Edit{drop(0, -1)},
		``,
	},
	{
		"a plain string", transcript.OpenAIResponses, `{ "role":"user", "content":"long" }`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{ "role":"user", "content":"short" }`,
	},
	{
		"a part", transcript.OpenAIResponses, `{"role":"user","content":[ {"type":"input_text","text":"a","x":1} , {` +
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
		"an output in parts, as a whole", transcript.OpenAIResponses, `{"type":"function_call_output","call_id":"c",` +
			`"output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"type":"function_call_output","call_id":"c","output":"short"}`,
	},
	{
		"an image inside of an output", transcript.OpenAIResponses, `{"type":"function_call_output","call_id":"c",` +
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
		"a screenshot stays", transcript.OpenAIResponses, `{"type":"computer_call_output","call_id":"c","output":{` +
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
		"reasoning dropped", transcript.OpenAIResponses, `{"type":"reasoning","summary":[],"encrypted_content":"x"}`,
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
		"thoughts dropped", transcript.Google, `{"role":"model","parts":[{"text":"t","thought":true}, {"text":"a"}]}`,
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
		"a result dropped", transcript.GeminiCLI, `{"type":"toolResults","of":"m","toolCalls":[{"id":"c","name":"f",` +
			`"result":"a"},{"id":"d","name":"f","result":[{"functionResponse":{"name":"f","response":{` +
			`"output":"b"}}}]}]}`,
		[]pipeline.Edit{drop(1, -1)},
		`{"type":"toolResults","of":"m","toolCalls":[{"id":"c","name":"f","result":"a"}]}`,
	},
	{
		"a call in two places is removed from both", transcript.GeminiCLI,
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
		"a compaction block stays, whatever goes beside it", transcript.Anthropic, `{"role":"assistant","content":[{` +
			`"type":"compaction","content":"c","signature":"s"}, {"type":"text","text":"a"}]}`,
		[]pipeline.Edit{replace(1, -1, "b")},
		`{"role":"assistant","content":[{"type":"compaction","content":"c","signature":"s"}, {"type":"text",` +
			`"text":"b"}]}`,
	},
	{
		"the keys beside a text stay", transcript.Vercel,
		`{"role":"user","content":[{"type":"text", "text":"a", "providerOptions":{"anthropic":{` +
			`"cacheControl":{"type":"ephemeral"}}}}]}`,
		[]pipeline.Edit{replace(0, -1, "<b>")},
		`{"role":"user","content":[{"type":"text", "text":"<b>", "providerOptions":{"anthropic":{` +
			`"cacheControl":{"type":"ephemeral"}}}}]}`,
	},
	{
		"a result that is JSON becomes a text", transcript.Vercel,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{` +
			`"type":"json","value":{"a":[1]}},"providerOptions":{"x":1}}]}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{` +
			`"type":"text","value":"short"},"providerOptions":{"x":1}}]}`,
	},
	{
		"a result that failed stays one", transcript.Vercel,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{` +
			`"type":"error-text","value":"long"}}]}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{` +
			`"type":"error-text","value":"short"}}]}`,
	},
	{
		"a picture in a result becomes a text", transcript.Vercel,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{` +
			`"type":"content","value":[{"type":"text","text":"a"}, {"type":"media","data":"AAAA",` +
			`"mediaType":"image/png"}]}}]}`,
		[]pipeline.Edit{replace(0, 1, "[image]")},
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{` +
			`"type":"content","value":[{"type":"text","text":"a"}, {"type":"text","text":"[image]"}]}}]}`,
	},
	{
		"a result of version 4", transcript.Vercel,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","result":{"a":1}}]}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","result":"short"}]}`,
	},
	{
		"a result without an output", transcript.Vercel,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f"}]}`,
		[]pipeline.Edit{replace(0, -1, "none")},
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{` +
			`"type":"text","value":"none"}}]}`,
	},
	{
		"reasoning and one call dropped", transcript.Vercel,
		`{"role":"assistant","content":[{"type":"reasoning","text":"r"},{"type":"tool-call","toolCallId":"a",` +
			`"toolName":"f","input":{}}, {"type":"tool-call","toolCallId":"b","toolName":"f","input":{}}]}`,
		[]pipeline.Edit{drop(0, -1), drop(2, -1)},
		`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"a","toolName":"f","input":{}}]}`,
	},
	{
		"a call in two places is one call", transcript.LangChain,
		`{"type":"ai","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"c","name":"f","input":{` +
			`"a":1}}],"tool_calls":[{"name":"f","args":{"a":1},"id":"c","type":"tool_call"}]}`,
		[]pipeline.Edit{replace(1, -1, `{"a":2}`)},
		`{"type":"ai","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"c","name":"f","input":{` +
			`"a":2}}],"tool_calls":[{"name":"f","args":{"a":2},"id":"c","type":"tool_call"}]}`,
	},
	{
		"and is dropped from both", transcript.LangChain,
		`{"type":"ai","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"c","name":"f","input":{` +
			`"a":1}}],"tool_calls":[{"name":"f","args":{"a":1},"id":"c","type":"tool_call"}]}`,
		[]pipeline.Edit{drop(1, -1)},
		`{"type":"ai","content":[{"type":"text","text":"t"}],"tool_calls":[]}`,
	},
	{
		"what the vendor's library wrote goes too", transcript.LangChain,
		`{"type":"ai","content":"","additional_kwargs":{"tool_calls":[{"id":"c","function":{"name":"f",` +
			`"arguments":"{}"}}]},"tool_calls":[{"name":"f","args":{},"id":"c"}]}`,
		[]pipeline.Edit{replace(0, -1, `{"a": 1}`)},
		`{"type":"ai","content":"","additional_kwargs":{"tool_calls":[{"id":"c","function":{"name":"f",` +
			`"arguments":"{\"a\": 1}"}}]},"tool_calls":[{"name":"f","args":{"a": 1},"id":"c"}]}`,
	},
	{
		"a result in a constructor", transcript.LangChain,
		`{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{` +
			`"content":"long","tool_call_id":"c"}}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{` +
			`"content":"short","tool_call_id":"c"}}`,
	},
	{
		"a result as a whole: its files go", transcript.OpenCode,
		`{"info":{"role":"assistant"},"parts":[{"id":"p","type":"tool","tool":"f","callID":"c","state":{` +
			`"status":"completed","input":{},"output":"long","attachments":[{"type":"file","mime":"image/png",` +
			`"url":"data:image/png;base64,AAAA"}],"time":{}}}]}`,
		[]pipeline.Edit{replace(1, -1, "short")},
		`{"info":{"role":"assistant"},"parts":[{"id":"p","type":"tool","tool":"f","callID":"c","state":{` +
			`"status":"completed","input":{},"output":"short","attachments":[],"time":{}}}]}`,
	},
	{
		"a file of a result becomes a file of text", transcript.OpenCode,
		`{"info":{"role":"assistant"},"parts":[{"type":"tool","tool":"f","callID":"c","state":{` +
			`"status":"completed","input":{},"output":"o","attachments":[{"id":"a","type":"file",` +
			`"mime":"image/png","url":"data:image/png;base64,AAAA"}]}}]}`,
		[]pipeline.Edit{replace(1, 1, "gone")},
		`{"info":{"role":"assistant"},"parts":[{"type":"tool","tool":"f","callID":"c","state":{` +
			`"status":"completed","input":{},"output":"o","attachments":[{"id":"a","type":"file",` +
			`"mime":"text/plain","url":"data:text/plain;base64,Z29uZQ=="}]}}]}`,
	},
	{
		"a call goes with its result", transcript.OpenCode,
		`{"info":{"role":"assistant"},"parts":[{"type":"text","text":"t"},{"type":"tool","tool":"f",` +
			`"callID":"c","state":{"status":"completed","input":{},"output":"o"}}]}`,
		[]pipeline.Edit{drop(1, -1)},
		`{"info":{"role":"assistant"},"parts":[{"type":"text","text":"t"}]}`,
	},
	{
		"a call whose result goes has not ended", transcript.OpenCode,
		`{"info":{"role":"assistant"},"parts":[{"type":"tool","tool":"f","callID":"c","state":{` +
			`"status":"error","input":{},"error":"e"}}]}`,
		[]pipeline.Edit{drop(1, -1)},
		`{"info":{"role":"assistant"},"parts":[{"type":"tool","tool":"f","callID":"c","state":{` +
			`"status":"running","input":{},"error":""}}]}`,
	},
	{
		"a file of the person's keeps its ids as a text", transcript.OpenCode,
		`{"info":{"role":"user"},"parts":[{"id":"p","sessionID":"s","messageID":"m","type":"file",` +
			`"mime":"image/png","url":"data:image/png;base64,AAAA"}]}`,
		[]pipeline.Edit{replace(0, -1, "[image]")},
		`{"info":{"role":"user"},"parts":[{"type":"text","text":"[image]","id":"p","sessionID":"s",` +
			`"messageID":"m"}]}`,
	},
	{
		"a result", transcript.Pi,
		`{"type":"message","id":"e","message":{"role":"toolResult","toolCallId":"c","content":[{"type":"text",` +
			`"text":"long"}],"details":{"n":9007199254740993},"isError":false}}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"type":"message","id":"e","message":{"role":"toolResult","toolCallId":"c","content":[{"type":"text",` +
			`"text":"short"}],"details":{"n":9007199254740993},"isError":false}}`,
	},
	{
		"the output of a command", transcript.Pi,
		`{"type":"message","message":{"role":"bashExecution","command":"ls","output":"long","exitCode":0}}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"type":"message","message":{"role":"bashExecution","command":"ls","output":"short","exitCode":0}}`,
	},
	{
		"a command that said nothing", transcript.Pi,
		`{"type":"message","message":{"role":"bashExecution","command":"ls"}}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"type":"message","message":{"role":"bashExecution","command":"ls","output":"short"}}`,
	},
	{
		"the text of the agent is in two places", transcript.OpenHands,
		`{"id":1,"action":"run","args":{"command":"x","thought":"t"},"tool_call_metadata":{"tool_call_id":"c",` +
			`"function_name":"f","model_response":{"choices":[{"message":{"content":"t","tool_calls":[{` +
			`"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}}}`,
		[]pipeline.Edit{replace(0, -1, "s"), replace(1, -1, `{"a":1}`)},
		`{"id":1,"action":"run","args":{"command":"x","thought":"s"},"tool_call_metadata":{"tool_call_id":"c",` +
			`"function_name":"f","model_response":{"choices":[{"message":{"content":"s","tool_calls":[{` +
			`"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}}}`,
	},
	{
		"an action without its call is a message", transcript.OpenHands,
		`{"id":1,"timestamp":"T","source":"agent","action":"read","args":{"path":"p","thought":"t"}}`,
		[]pipeline.Edit{drop(1, -1)},
		`{"id":1,"timestamp":"T","source":"agent","action":"message","args":{"content":"t","image_urls":null,` +
			`"wait_for_response":true}}`,
	},
	{
		"so is one of the SDK", transcript.OpenHands,
		`{"id":"e","source":"agent","thought":[{"type":"text","text":"t"}],"tool_name":"f","tool_call_id":"c",` +
			`"tool_call":{"id":"c","arguments":"{}"},"kind":"ActionEvent"}`,
		[]pipeline.Edit{drop(1, -1)},
		`{"id":"e","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"t"}]},` +
			`"kind":"MessageEvent"}`,
	},
	{
		"an observation", transcript.OpenHands,
		`{"id":2,"cause":1,"observation":"run","content":"long","extras":{"a":1}}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"id":2,"cause":1,"observation":"run","content":"short","extras":{"a":1}}`,
	},
	{
		"an observation of the SDK", transcript.OpenHands,
		`{"id":"o","tool_call_id":"c","observation":{"content":[{"type":"text","text":"a"},{"type":"text",` +
			`"text":"b"}],"is_error":false},"kind":"ObservationEvent"}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"id":"o","tool_call_id":"c","observation":{"content":[{"type":"text","text":"short"}],` +
			`"is_error":false},"kind":"ObservationEvent"}`,
	},
	{
		"a result that is an object of the tool's", transcript.Roo,
		`{"id":"m","role":"user","content":[{"type":"tool_result","tool_use_id":"c","name":"f","content":[{` +
			`"query":"q","result":"r"}]}],"ts":1}`,
		[]pipeline.Edit{replace(0, 0, "short")},
		`{"id":"m","role":"user","content":[{"type":"tool_result","tool_use_id":"c","name":"f","content":[{` +
			`"type":"text","text":"short"}]}],"ts":1}`,
	},
	{
		"reasoning dropped", transcript.Kimi,
		`{"role":"assistant","content":[{"type":"think","think":"t","encrypted":"x"}, {"type":"text","text":"a"}]}`,
		[]pipeline.Edit{drop(0, -1)},
		`{"role":"assistant","content":[{"type":"text","text":"a"}]}`,
	},
	{
		"a call without an id", transcript.Cursor,
		`{"role":"assistant","message":{"content":[{"type":"tool_use","name":"f","input":{"a":"long"}}]}}`,
		[]pipeline.Edit{replace(0, -1, `{"a":"s"}`)},
		`{"role":"assistant","message":{"content":[{"type":"tool_use","name":"f","input":{"a":"s"}}]}}`,
	},
	{
		"what the model saw of a message", transcript.Copilot,
		`{"type":"user.message","data":{"content":"typed","transformedContent":"typed and more"},"id":"e"}`,
		[]pipeline.Edit{replace(0, -1, "s")},
		`{"type":"user.message","data":{"content":"typed","transformedContent":"s"},"id":"e"}`,
	},
	{
		"reasoning goes in both its forms", transcript.Copilot,
		`{"type":"assistant.message","data":{"content":"a","toolRequests":[],"reasoningOpaque":"o",` +
			`"reasoningText":"r","outputTokens":1},"id":"e"}`,
		[]pipeline.Edit{drop(0, -1)},
		`{"type":"assistant.message","data":{"content":"a","toolRequests":[],"outputTokens":1},"id":"e"}`,
	},
	{
		"calls, of which one takes a text", transcript.Copilot,
		`{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"a","name":"f",` +
			`"arguments":{"x":1},"type":"function"},{"toolCallId":"b","name":"g","arguments":"raw",` +
			`"type":"custom"}]}}`,
		[]pipeline.Edit{replace(0, -1, `{"x":2}`), replace(1, -1, "r")},
		`{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"a","name":"f",` +
			`"arguments":{"x":2},"type":"function"},{"toolCallId":"b","name":"g","arguments":"r",` +
			`"type":"custom"}]}}`,
	},
	{
		"a result without content", transcript.Copilot,
		`{"type":"tool.execution_complete","data":{"toolCallId":"a","success":true},"id":"e"}`,
		[]pipeline.Edit{replace(0, -1, "none")},
		`{"type":"tool.execution_complete","data":{"toolCallId":"a","success":true,"result":{` +
			`"content":"none"}},"id":"e"}`,
	},
	{
		"a response", transcript.ADK,
		`{"content":{"parts":[{"function_response":{"name":"f","response":{"a":1,"b":2}}}],"role":"user"},"id":"e"}`,
		[]pipeline.Edit{replace(0, -1, "short")},
		`{"content":{"parts":[{"function_response":{"name":"f","response":{"result":"short"}}}],` +
			`"role":"user"},"id":"e"}`,
	},
	{
		"the one text of a response", transcript.ADK,
		`{"content":{"parts":[{"functionResponse":{"name":"f","response":{"output":"long"}}}],"role":"user"},` +
			`"id":"e"}`,
		[]pipeline.Edit{replace(0, 0, "short")},
		`{"content":{"parts":[{"functionResponse":{"name":"f","response":{"output":"short"}}}],"role":"user"},` +
			`"id":"e"}`,
	},
	{
		"a picture becomes a text", transcript.ADK,
		`{"content":{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}],"role":"user"}}`,
		[]pipeline.Edit{replace(1, -1, "[image]")},
		`{"content":{"parts":[{"text":"a"},{"text":"[image]"}],"role":"user"}}`,
	},
	{
		"results of whatever kind become texts", transcript.MSAgent,
		`{"role":{"value":"tool"},"contents":[{"type":"function_result","call_id":"a","result":[1,2],` +
			`"exception":null},{"type":"function_result","call_id":"b"}]}`,
		[]pipeline.Edit{replace(0, -1, "x"), replace(1, -1, "y")},
		`{"role":{"value":"tool"},"contents":[{"type":"function_result","call_id":"a","result":"x",` +
			`"exception":null},{"type":"function_result","call_id":"b","result":"y"}]}`,
	},
	{
		"arguments stay what they were, a string or an object", transcript.MSAgent,
		`{"role":"assistant","contents":[{"type":"function_call","call_id":"a","arguments":"{}"},{` +
			`"type":"function_call","call_id":"b","arguments":{}}]}`,
		[]pipeline.Edit{replace(0, -1, `{"a":1}`), replace(1, -1, `{"a":1}`)},
		`{"role":"assistant","contents":[{"type":"function_call","call_id":"a","arguments":"{\"a\":1}"},{` +
			`"type":"function_call","call_id":"b","arguments":{"a":1}}]}`,
	},
}
