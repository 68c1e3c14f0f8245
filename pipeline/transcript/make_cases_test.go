package transcript_test

import (
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/wire/responses"
)

var (
	madeSummary = pipeline.Made{
		Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
		Text: "<conversation_summary>\nall</conversation_summary>",
	}
	madeQuoted = pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSummary, Text: "S \"x\""}
	madeState  = pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: "todo: \"x\""}
	madeAsk    = pipeline.Made{Role: pipeline.RoleUser, Text: "summarise"}
	madeResult = pipeline.Made{Role: pipeline.RoleTool, CallID: "t1", Name: "n", Text: "none", IsError: true}
)

func madeResultOf(typ string) pipeline.Made {
	return pipeline.Made{Role: pipeline.RoleTool, CallID: "c", Name: "f", Type: typ, Text: "none", IsError: true}
}

// Messages that the pipeline makes, in each format, or why they are refused.
var makeCases = []makeCase{
	{transcript.Anthropic, madeSummary, `{"role":"user","content":[{"type":"text",` +
		`"text":"<conversation_summary>\nall</conversation_summary>"}]}`, ""},
	{
		transcript.Anthropic, madeResult,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"none",` +
			`"is_error":true}]}`, "",
	},
	{transcript.Anthropic, pipeline.Made{Role: pipeline.RoleSystem, Text: "s"}, "", "is a key of its own"},
	{transcript.Anthropic, pipeline.Made{Role: pipeline.RoleUser, Text: " \n"}, "", "has no text"},
	{transcript.OpenAI, madeState, `{"role":"user","content":"todo: \"x\""}`, ""},
	{transcript.OpenAI, madeResult, `{"role":"tool","tool_call_id":"t1","content":"none"}`, ""},
	{transcript.OpenAI, pipeline.Made{Role: pipeline.RoleSystem, Text: "s"}, `{"role":"system","content":"s"}`, ""},
	{transcript.OpenAI, pipeline.Made{Role: pipeline.RoleUser}, "", "has no text"},
	{transcript.ClaudeCode, madeSummary, `{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user",` +
		`"message":{"role":"user","content":"<conversation_summary>\nall</conversation_summary>"},` +
		`"isVisibleInTranscriptOnly":true,"isCompactSummary":true,"uuid":""}`, ""},
	{transcript.ClaudeCode, madeState, `{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user",` +
		`"message":{"role":"user","content":"todo: \"x\""},"isMeta":true,"uuid":""}`, ""},
	{
		transcript.ClaudeCode, madeAsk,
		`{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user","message":{` +
			`"role":"user","content":"summarise"},"uuid":""}`, "",
	},
	{transcript.ClaudeCode, madeResult, `{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user",` +
		`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"none",` +
		`"is_error":true}]},"uuid":""}`, ""},
	{transcript.ClaudeCode, pipeline.Made{Role: pipeline.RoleAssistant, Text: "x"}, "", "cannot be made"},
	{
		transcript.OpenAIResponses, madeQuoted,
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
	{transcript.OpenAIResponses, madeResultOf(""), `{"type":"function_call_output","call_id":"c","output":"none"}`, ""},
	{
		transcript.OpenAIResponses, madeResultOf("function_call"),
		`{"type":"function_call_output","call_id":"c","output":"none"}`, "",
	},
	{
		transcript.OpenAIResponses, madeResultOf("custom_tool_call"),
		`{"type":"custom_tool_call_output","call_id":"c","output":"none"}`, "",
	},
	{
		transcript.OpenAIResponses, madeResultOf("local_shell_call"),
		`{"type":"local_shell_call_output","id":"c","output":"none"}`, "",
	},
	{transcript.OpenAIResponses, madeResultOf("shell_call"), `{"type":"shell_call_output","call_id":"c","output":[{` +
		`"stdout":"none","stderr":"","outcome":{"type":"exit","exit_code":1}}]}`, ""},
	{
		transcript.OpenAIResponses, madeResultOf("apply_patch_call"),
		`{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"none"}`, "",
	},
	{
		transcript.OpenAIResponses, madeResultOf("computer_call"),
		`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"` +
			responses.NoScreenshot + `"}}`, "",
	},
	{transcript.Codex, madeQuoted, `{"type":"response_item","payload":{"type":"message","role":"user","content":[{` +
		`"type":"input_text","text":"S \"x\""}]}}`, ""},
	{
		transcript.Codex, madeResultOf("custom_tool_call"),
		`{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c","output":"none"}}`, "",
	},
	{transcript.Codex, pipeline.Made{Role: pipeline.RoleUser}, "", "has no text"},
	{transcript.Google, madeQuoted, `{"role":"user","parts":[{"text":"S \"x\""}]}`, ""},
	{
		transcript.Google,
		pipeline.Made{Role: pipeline.RoleAssistant, Text: "a"},
		`{"role":"model","parts":[{"text":"a"}]}`, "",
	},
	{
		transcript.Google, madeResultOf("functionCall"),
		`{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"error":"none"}}}]}`, "",
	},
	{transcript.Google, pipeline.Made{Role: pipeline.RoleSystem, Text: "s"}, "", "is a key of its own"},
	{transcript.Google, pipeline.Made{Role: pipeline.RoleUser, Text: "\n"}, "", "has no text"},
	{transcript.GeminiCLI, madeResultOf(""), `{"type":"toolResults","toolCalls":[{"id":"c","name":"f","result":[{` +
		`"functionResponse":{"id":"c","name":"f","response":{"error":"none"}}}]}]}`, ""},
	{transcript.GeminiCLI, pipeline.Made{Role: pipeline.RoleAssistant, Text: "a"}, "", "cannot be made"},
	{
		transcript.ClaudeStream, madeQuoted,
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"S ` +
			`\"x\""}]},"parent_tool_use_id":null,"isSynthetic":true}`, "",
	},
	{
		transcript.ClaudeStream, madeResultOf(""),
		`{"type":"user","message":{"role":"user","content":[{"type":"tool_result",` +
			`"tool_use_id":"c","content":"none","is_error":true}]},"parent_tool_use_id":null}`, "",
	},
	{transcript.ClaudeStream, pipeline.Made{Role: pipeline.RoleAssistant, Text: "a"}, "", "cannot be made"},
}
