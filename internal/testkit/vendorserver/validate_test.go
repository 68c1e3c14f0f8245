package vendorserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/internal/testkit/vendorserver"
)

// Pieces of Anthropic requests.
const (
	u    = `{"role":"user","content":"hi"}`
	a    = `{"role":"assistant","content":"hello"}`
	use1 = `{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`
	use2 = `{"type":"tool_use","id":"toolu_2","name":"read","input":{"p":1}}`
	res1 = `{"type":"tool_result","tool_use_id":"toolu_1","content":"r1"}`
	res2 = `{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"r2"}]}`
	txt  = `{"type":"text","text":"words"}`
	mark = `"cache_control":{"type":"ephemeral"}`
)

func ab(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func ub(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func msgs(m ...string) string { return `{"messages":[` + strings.Join(m, ",") + `]}` }

// with adds keys to the request of one user message.
func with(keys string) string { return `{"messages":[` + u + `],` + keys + `}` }

var anthropicCases = []struct {
	name, body string
	want       string // part of the error, "" for none
	options    vendorserver.ValidateOptions
}{
	{name: "Simple", body: msgs(u)},
	{name: "Turns", body: msgs(u, a, u)},
	{name: "Merged", body: msgs(u, u, a, a, u)},
	{name: "Prefill", body: msgs(u, a)},
	{name: "Calls", body: msgs(u, ab(txt, use1, use2), ub(res1, res2, txt), a)},
	{name: "ResultsInTwoMessages", body: msgs(u, ab(use1, use2), ub(res1), ub(res2))},
	{name: "CallsInTwoMessages", body: msgs(u, ab(use1), ab(use2), ub(res1, res2))},
	{name: "ResultOrder", body: msgs(u, ab(use1, use2), ub(res2, res1))},
	{name: "EmptyResult", body: msgs(u, ab(use1), ub(`{"type":"tool_result","tool_use_id":"toolu_1"}`))},
	{name: "EmptyStringResult", body: msgs(u, ab(use1),
		ub(`{"type":"tool_result","tool_use_id":"toolu_1","content":"","is_error":false}`))},
	{name: "Thinking", body: msgs(u,
		ab(`{"type":"thinking","thinking":"","signature":"s"}`, `{"type":"redacted_thinking","data":"d"}`, txt), u)},
	{name: "Image", body: msgs(ub(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`,
		`{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`))},
	{name: "Document", body: msgs(
		ub(`{"type":"document","title":"t","source":{"type":"base64","media_type":"application/pdf","data":"AA=="}}`))},
	{name: "ImageInResult", body: msgs(u, ab(use1), ub(`{"type":"tool_result","tool_use_id":"toolu_1","content":[{`+
		`"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"AA=="}},`+txt+`]}`))},
	{name: "ServerTool", body: msgs(u,
		ab(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`,
			`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`, txt), u)},
	{name: "PausedServerTool", body: msgs(u,
		ab(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`))},
	{
		name: "ServerToolServedLater",
		body: msgs(u, ab(`{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{}}`, use1),
			ub(res1), ab(`{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{}}`), u),
	},
	{name: "MCP", body: msgs(u, ab(`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"f","server_name":"s","input":{}}`,
		`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[]}`), u)},
	{name: "Compaction", body: msgs(u, ab(`{"type":"compaction","content":"so far"}`), u)},
	{name: "SystemInTheMiddle", body: msgs(u, `{"role":"system","content":"from now on"}`, a, u)},
	{name: "SystemAtTheEnd", body: msgs(u, a, u, `{"role":"system","content":[`+txt+`]}`)},
	{name: "SystemText", body: with(`"system":"be brief"`)},
	{name: "SystemBlocks", body: with(`"system":[{"type":"text","text":"be brief",` + mark + `}]`)},
	{name: "Tools", body: with(`"tools":[{"name":"read","description":"d","input_schema":{"type":"object",` +
		`"properties":{}}},{"type":"web_search_20250305","name":"web_search","max_uses":3}],"tool_choice":{` +
		`"type":"auto"}`)},
	{name: "FourMarks", body: `{"system":[{"type":"text","text":"s",` + mark + `}],"messages":[` +
		ub(`{"type":"text","text":"1",`+mark+`}`, `{"type":"text","text":"2",`+mark+`}`,
			`{"type":"text","text":"3",`+mark+`}`) + `]}`},
	{name: "LongMarkFirst", body: `{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral",` +
		`"ttl":"1h"}}],"messages":[` + ub(`{"type":"text","text":"1",`+mark+`}`) + `]}`},
	{
		name: "Options", body: with(`"model":"m","max_tokens":10,"stream":true,"temperature":0.5,"thinking":{` +
			`"type":"adaptive"},"metadata":{"user_id":"x"},"stop_sequences":["X"]`),
		options: vendorserver.ValidateOptions{Request: true},
	},
	{name: "Surrogates", body: msgs(`{"role":"user","content":"\ud83d\ude42 \\ud83d"}`)},
	{name: "Citations", body: msgs(u, ab(`{"type":"text","text":"t","citations":[{"type":"char_location"}]}`), u)},
	{
		name: "CompatibleExtra", body: msgs(`{"role":"user","content":"x","name":"n"}`),
		options: vendorserver.ValidateOptions{Compatible: true},
	},
	{name: "ThinkingLoop", body: `{"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + u + `,` +
		ab(`{"type":"thinking","thinking":"t","signature":"s"}`, use1) + `,` + ub(res1) + `]}`},
	{name: "ThinkingLoopClosed", body: `{"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + u + `,` +
		ab(use1) + `,` + ub(res1) + `,` + a + `,` + u + `]}`},

	{name: "NotJSON", body: `{"messages":`, want: "not valid JSON"},
	{name: "NotUTF8", body: "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", want: "invalid utf-8"},
	{name: "HalfSurrogate", body: msgs(`{"role":"user","content":"\ud83d"}`), want: "no low surrogate"},
	{name: "LowSurrogate", body: msgs(`{"role":"user","content":"\udc00 x"}`), want: "no low surrogate"},
	{name: "NotAnObject", body: `[]`, want: "valid dictionary"},
	{name: "NoMessages", body: `{"model":"m"}`, want: "messages: Field required"},
	{name: "EmptyMessages", body: `{"messages":[]}`, want: "at least one message is required"},
	{name: "NullMessages", body: `{"messages":null}`, want: "valid list"},
	{
		name: "NoModel", body: with(`"max_tokens":1`), want: "model: Field required",
		options: vendorserver.ValidateOptions{Request: true},
	},
	{
		name: "NoMaxTokens", body: with(`"model":"m"`), want: "max_tokens: Field required",
		options: vendorserver.ValidateOptions{Request: true},
	},
	{name: "NegativeMaxTokens", body: with(`"max_tokens":-1`), want: "greater than or equal to 0"},
	{name: "MaxTokensText", body: with(`"max_tokens":"9"`), want: "valid integer"},
	{name: "UnknownKey", body: with(`"max_output":1`), want: "max_output: Extra inputs are not permitted"},
	{name: "Temperature", body: with(`"temperature":1.5`), want: "temperature"},
	{
		name: "TemperatureRemoved", body: with(`"temperature":0.5`), want: "temperature: Extra inputs",
		options: vendorserver.ValidateOptions{Version: "2026-10-21"},
	},
	{name: "UnknownRole", body: msgs(u, `{"role":"tool","content":"x"}`), want: "messages.1.role"},
	{name: "SystemFirst", body: msgs(`{"role":"system","content":"x"}`, u), want: "top-level 'system'"},
	{
		name: "SystemAfterAssistant", body: msgs(u, a, `{"role":"system","content":"x"}`),
		want: "must directly follow a user message",
	},
	{
		name: "SystemBeforeUser", body: msgs(u, `{"role":"system","content":"x"}`, u),
		want: "must be the last one or be followed",
	},
	{name: "AssistantFirst", body: msgs(a, u), want: `first message must use the "user" role`},
	{
		name: "UnknownMessageKey", body: msgs(`{"role":"user","content":"x","id":"m1"}`),
		want: "messages.0.id: Extra inputs",
	},
	{name: "NoContent", body: msgs(`{"role":"user"}`), want: "messages.0.content: Field required"},
	{name: "NullContent", body: msgs(`{"role":"user","content":null}`), want: "valid list"},
	{name: "EmptyContent", body: msgs(`{"role":"user","content":""}`), want: "non-empty content"},
	{name: "BlankContent", body: msgs(`{"role":"user","content":" \n"}`), want: "non-whitespace text"},
	{name: "NoBlocks", body: msgs(u, `{"role":"assistant","content":[]}`, u), want: "non-empty content"},
	{name: "EmptyText", body: msgs(ub(`{"type":"text","text":""}`)), want: "text content blocks must be non-empty"},
	{name: "BlankText", body: msgs(u, ab(`{"type":"text","text":"\n\n"}`, txt), u), want: "non-whitespace text"},
	{name: "BlankLastText", body: msgs(u, ab(`{"type":"text","text":" "}`)), want: "non-whitespace text"},
	{name: "TrailingSpace", body: msgs(u, `{"role":"assistant","content":"go on "}`), want: "trailing whitespace"},
	{name: "TrailingSpaceInBlock", body: msgs(u, ab(`{"type":"text","text":"go on\n"}`)), want: "trailing whitespace"},
	{
		name: "EmptyTextInResult", body: msgs(u, ab(use1),
			ub(`{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":""}]}`)),
		want: "must be non-empty",
	},
	{
		name: "EmptyTextInSystem", body: with(`"system":[{"type":"text","text":""}]`),
		want: "system: text content blocks must be non-empty",
	},
	{
		name: "EmptyError", body: msgs(u, ab(use1),
			ub(`{"type":"tool_result","tool_use_id":"toolu_1","content":"","is_error":true}`)),
		want: "content cannot be empty if `is_error` is true",
	},
	{name: "UnknownBlock", body: msgs(ub(`{"type":"video"}`)), want: "Input tag 'video'"},
	{name: "BlockWithoutType", body: msgs(ub(`{"text":"x"}`)), want: "type: Field required"},
	{name: "BlockIsText", body: msgs(`{"role":"user","content":["x"]}`), want: "valid dictionary"},
	{name: "ExtraInBlock", body: msgs(ub(`{"type":"text","text":"x","id":"b1"}`)), want: "content.0.id: Extra inputs"},
	{
		name: "ThinkingOfAUser", body: msgs(ub(`{"type":"thinking","thinking":"t","signature":"s"}`)),
		want: "Input tag 'thinking'",
	},
	{
		name: "ImageOfAnAssistant", body: msgs(u, ab(`{"type":"image","source":{"type":"url","url":"x"}}`)),
		want: "Input tag 'image'",
	},
	{
		name: "DocumentOfAnAssistant", body: msgs(u, ab(`{"type":"document","source":{"type":"url","url":"x"}}`)),
		want: "Input tag 'document'",
	},
	{
		name: "ThinkingWithoutSignature", body: msgs(u, ab(`{"type":"thinking","thinking":"t"}`), u),
		want: "signature: Field required",
	},
	{
		name: "ThinkingWithEmptySignature", body: msgs(u, ab(`{"type":"thinking","thinking":"t","signature":""}`), u),
		want: "Invalid `signature`",
	},
	{
		name: "ThinkingMarked", body: msgs(u, ab(`{"type":"thinking","thinking":"t","signature":"s",`+mark+`}`), u),
		want: "cache_control: Extra inputs",
	},
	{
		name: "CitationOfAUser", body: msgs(ub(`{"type":"text","text":"t","citations":[{"type":"char_location"}]}`)),
		want: "citations are only allowed",
	},
	{name: "CompactionEmpty", body: msgs(u, ab(`{"type":"compaction","content":null}`), u), want: "non-empty content"},
	{name: "ImageType", body: msgs(
		ub(`{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AA=="}}`)), want: "media_type"},
	{
		name: "ImageData", body: msgs(
			ub(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}`)),
		want: "data: Field required",
	},

	{
		name: "CallUnanswered", body: msgs(u, ab(use1, use2), ub(res1), a),
		want: "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_2.",
	},
	{name: "CallAtTheEnd", body: msgs(u, ab(use1)), want: "messages.1: `tool_use` ids were found without"},
	{name: "CallAnsweredLate", body: msgs(u, ab(use1), u, a, ub(res1)), want: "ids were found without"},
	{name: "ResultAfterText", body: msgs(u, ab(use1), ub(txt, res1)), want: "ids were found without"},
	{
		name: "ResultAfterTextOfOneBefore", body: msgs(u, ab(use1, use2), ub(res1), u, ub(res2)),
		want: "immediately after: toolu_2",
	},
	{name: "Orphan", body: msgs(ub(res1)), want: "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"},
	{name: "OrphanLater", body: msgs(u, a, ub(res1)), want: "messages.2.content.0: unexpected `tool_use_id`"},
	{name: "TwoResults", body: msgs(u, ab(use1), ub(res1, res1)), want: "single result"},
	{name: "IDTwice", body: msgs(u, ab(use1), ub(res1), ab(use1), ub(res1)), want: "`tool_use` ids must be unique"},
	{name: "IDPattern", body: msgs(u, ab(`{"type":"tool_use","id":"call:1","name":"f","input":{}}`),
		ub(`{"type":"tool_result","tool_use_id":"call:1"}`)), want: "should match pattern"},
	{
		name: "InputIsText", body: msgs(u, ab(`{"type":"tool_use","id":"t","name":"f","input":"{}"}`), u),
		want: "input: Input should be a valid dictionary",
	},
	{name: "CallWithoutName", body: msgs(u, ab(`{"type":"tool_use","id":"t","name":"","input":{}}`), u), want: "name"},
	{
		name: "ServerToolUnanswered",
		body: msgs(u, ab(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), u),
		want: "without a corresponding result block",
	},
	{
		name: "ServerResultAlone", body: msgs(u,
			ab(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`), u),
		want: "must have a corresponding `server_tool_use`",
	},
	{name: "ThinkingLost", body: `{"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + u + `,` +
		ab(use1) + `,` + ub(res1) + `]}`, want: "must start with a thinking block"},
	{
		name: "SmallBudget", body: with(`"thinking":{"type":"enabled","budget_tokens":10}`),
		want: "greater than or equal to 1024",
	},

	{
		name: "FiveMarks", body: `{"system":[{"type":"text","text":"s",` + mark +
			`}],"cache_control":{"type":"ephemeral"},"messages":[` +
			ub(`{"type":"text","text":"1",`+mark+`}`, `{"type":"text","text":"2",`+mark+`}`,
				`{"type":"text","text":"3",`+mark+`}`) + `]}`,
		want: "A maximum of 4 blocks with cache_control may be provided. Found 5.",
	},
	{
		name: "LongMarkLate", body: `{"system":[{"type":"text","text":"s",` + mark + `}],"messages":[` +
			ub(`{"type":"text","text":"1","cache_control":{"type":"ephemeral","ttl":"1h"}}`) + `]}`,
		want: "must not come after a ttl='5m'",
	},
	{
		name: "UnknownMark", body: msgs(ub(`{"type":"text","text":"1","cache_control":{"type":"permanent"}}`)),
		want: "Input should be 'ephemeral'",
	},
	{name: "ToolWithoutSchema", body: with(`"tools":[{"name":"f"}]`), want: "input_schema: Field required"},
	{
		name: "ToolSchemaType", body: with(`"tools":[{"name":"f","input_schema":{"type":"string"}}]`),
		want: "Input should be 'object'",
	},
	{
		name: "ToolOfOpenAI", body: with(`"tools":[{"type":"function","function":{"name":"f"}}]`),
		want: "Input tag 'function'",
	},
	{
		name: "ToolName", body: with(`"tools":[{"name":"a b","input_schema":{"type":"object"}}]`),
		want: "should match pattern",
	},
	{
		name: "ToolTwice", body: with(
			`"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}]`),
		want: "must be unique",
	},
	{
		name: "ToolExtra", body: with(`"tools":[{"name":"f","input_schema":{"type":"object"},"parameters":{}}]`),
		want: "parameters: Extra inputs",
	},
	{name: "ChoiceWithoutTools", body: with(`"tool_choice":{"type":"auto"}`), want: "while providing tools"},
}

func TestValidateAnthropic(t *testing.T) {
	t.Parallel()
	for _, c := range anthropicCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantError(t, vendorserver.ValidateAnthropicRequest([]byte(c.body), c.options), c.want)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %q", err, want)
	}
}

// Pieces of OpenAI requests.
const (
	sys  = `{"role":"system","content":"be brief"}`
	ask1 = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{` +
		`"name":"read","arguments":"{}"}}]}`
	ask12 = `{"role":"assistant","content":"I look","tool_calls":[{"id":"c1","type":"function","function":{` +
		`"name":"read","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"read","arguments":""}}]}`
	got1 = `{"role":"tool","tool_call_id":"c1","content":"r1"}`
	got2 = `{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"r2"}]}`
)

func call(fields string) string {
	return `{"role":"assistant","content":null,"tool_calls":[` + fields + `]}`
}

var openaiCases = []struct {
	name, body string
	want       string
	options    vendorserver.ValidateOptions
}{
	{name: "Simple", body: msgs(u)},
	{name: "Turns", body: msgs(sys, u, a, u, a)},
	{name: "SameRole", body: msgs(u, u, a, a)},
	{name: "AssistantFirst", body: msgs(a, u)},
	{name: "SystemLater", body: msgs(u, sys, `{"role":"developer","content":"x"}`)},
	{name: "Calls", body: msgs(u, ask12, got1, got2, a)},
	{name: "CallsInOtherOrder", body: msgs(u, ask12, got2, got1)},
	{name: "IDAgain", body: msgs(u, ask1, got1, ask1, got1, a)},
	{name: "EmptyText", body: msgs(`{"role":"user","content":""}`)},
	{name: "Parts", body: msgs(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url",` +
		`"image_url":{"url":"data:image/png;base64,AA==","detail":"low"}},{"type":"file","file":{"file_id":"f"}}]}`)},
	{name: "AnswerAsItWas", body: msgs(u,
		`{"role":"assistant","content":"x","refusal":null,"annotations":[],"audio":null,"function_call":null}`)},
	{name: "Refusal", body: msgs(u, `{"role":"assistant","content":null,"refusal":"no"}`)},
	{name: "NameOfATool", body: msgs(u, ask1, `{"role":"tool","tool_call_id":"c1","name":"read","content":"x"}`)},
	{name: "CustomTool", body: msgs(u, call(`{"id":"c1","type":"custom","custom":{"name":"f","input":"x"}}`), got1)},
	{name: "OldFunction", body: msgs(u,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
		`{"role":"function","name":"f","content":"x"}`)},
	{
		name: "Options", body: with(`"model":"m","stream":true,"stream_options":{"include_usage":true},` +
			`"max_completion_tokens":5,"temperature":2,"tools":[{"type":"function","function":{"name":"f",` +
			`"parameters":{}}}],"tool_choice":"auto","store":true,"metadata":{"a":"b"}`),
		options: vendorserver.ValidateOptions{Request: true},
	},
	{
		name: "CompatibleReasoning", body: msgs(u, `{"role":"assistant","content":"x","reasoning_content":"hm"}`),
		options: vendorserver.ValidateOptions{Compatible: true},
	},

	{name: "NotJSON", body: `{`, want: "not valid JSON"},
	{name: "EmptyMessages", body: `{"messages":[]}`, want: "empty array"},
	{name: "NoMessages", body: `{"model":"m"}`, want: "messages: Field required"},
	{
		name: "NoModel", body: msgs(u), want: "model: Field required",
		options: vendorserver.ValidateOptions{Request: true},
	},
	{name: "UnknownKey", body: with(`"system":"x"`), want: "system: Extra inputs"},
	{name: "UnknownRole", body: msgs(u, `{"role":"exit","content":"x"}`), want: "Invalid value: 'exit'"},
	{name: "NoRole", body: msgs(`{"content":"x"}`), want: "role: Field required"},
	{name: "UnknownMessageKey", body: msgs(`{"role":"user","content":"x","agent":"main"}`), want: "agent"},
	{
		name: "ReasoningKey", body: msgs(u, `{"role":"assistant","content":"x","reasoning_content":"hm"}`),
		want: "reasoning_content",
	},
	{name: "NoContent", body: msgs(`{"role":"user"}`), want: "Missing required parameter"},
	{name: "NullContent", body: msgs(`{"role":"user","content":null}`), want: "got null"},
	{name: "NullAssistant", body: msgs(u, `{"role":"assistant","content":null}`), want: "got null"},
	{name: "AbsentAssistant", body: msgs(u, `{"role":"assistant"}`), want: "got null"},
	{name: "ContentIsObject", body: msgs(`{"role":"user","content":{"text":"x"}}`), want: "string or array"},
	{name: "NoParts", body: msgs(`{"role":"user","content":[]}`), want: "empty array"},
	{
		name: "UnknownPart", body: msgs(`{"role":"user","content":[{"type":"image","source":{}}]}`),
		want: "Invalid value: 'image'",
	},
	{
		name: "ImageOfAnAssistant", body: msgs(u,
			`{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}`),
		want: "Invalid value: 'image_url'",
	},
	{
		name: "ImageAddress", body: msgs(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"AAAA"}}]}`),
		want: "data URL",
	},
	{
		name: "CacheMark", body: msgs(`{"role":"user","content":[{"type":"text","text":"x",` + mark + `}]}`),
		want: "cache_control: Extra inputs",
	},
	{name: "Unanswered", body: msgs(u, ask12, got1, u), want: "did not have response messages: c2"},
	{name: "UnansweredAtTheEnd", body: msgs(u, ask1), want: "did not have response messages: c1"},
	{name: "AnsweredLate", body: msgs(u, ask1, u, got1), want: "did not have response messages: c1"},
	{name: "Orphan", body: msgs(got1), want: "must be a response to a preceeding message"},
	{name: "OrphanAfterText", body: msgs(u, a, got1), want: "must be a response to a preceeding message"},
	{name: "OtherID", body: msgs(u, ask1, got2), want: "'tool_call_id' of 'c2' not found"},
	{name: "TwoResults", body: msgs(u, ask1, got1, got1), want: "not found in 'tool_calls'"},
	{name: "NoID", body: msgs(u, ask1, `{"role":"tool","content":"x"}`), want: "tool_call_id"},
	{name: "NoCalls", body: msgs(u, `{"role":"assistant","content":"x","tool_calls":[]}`), want: "empty array"},
	{
		name: "NullCalls", body: msgs(u, `{"role":"assistant","content":"x","tool_calls":null}`),
		want: "got null instead",
	},
	{
		name: "ArgumentsAreObject", body: msgs(u,
			call(`{"id":"c1","type":"function","function":{"name":"f","arguments":{}}}`), got1),
		want: "arguments: Input should be a valid string",
	},
	{
		name: "CallIndex", body: msgs(u,
			call(`{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}`), got1),
		want: "index: Extra inputs",
	},
	{
		name: "CallWithoutType", body: msgs(u, call(`{"id":"c1","function":{"name":"f","arguments":"{}"}}`), got1),
		want: "type: Field required",
	},
	{name: "CallName", body: msgs(u, call(`{"id":"c1","type":"function","function":{"name":"a.b","arguments":"{}"}}`),
		got1), want: "does not match pattern"},
	{name: "CallEmptyID", body: msgs(u, call(`{"id":"","type":"function","function":{"name":"f","arguments":"{}"}}`),
		got1), want: "empty string"},
	{name: "BothLimits", body: with(`"max_tokens":1,"max_completion_tokens":1`), want: "at the same time"},
	{name: "ZeroLimit", body: with(`"max_completion_tokens":0`), want: "greater than or equal to 1"},
	{
		name: "OptionsWithoutStream", body: with(`"stream_options":{"include_usage":true}`),
		want: "only allowed when 'stream'",
	},
	{name: "MetadataWithoutStore", body: with(`"metadata":{"a":"b"}`), want: "only allowed when 'store'"},
	{name: "EmptyTools", body: with(`"tools":[]`), want: "empty array"},
	{
		name: "ToolOfAnthropic", body: with(`"tools":[{"name":"f","input_schema":{"type":"object"}}]`),
		want: "type: Field required",
	},
	{name: "ChoiceWithoutTools", body: with(`"tool_choice":"auto"`), want: "only allowed when 'tools'"},
}

func TestValidateOpenAI(t *testing.T) {
	t.Parallel()
	for _, c := range openaiCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantError(t, vendorserver.ValidateOpenAIRequest([]byte(c.body), c.options), c.want)
		})
	}
}

// TestValidateRecorded: requests that the real API took are valid.
func TestValidateRecorded(t *testing.T) {
	t.Parallel()
	for _, f := range corpus.Files(t, "anthropic-messages") {
		if !strings.HasPrefix(f.Name, "raw-") {
			continue
		}
		var exchanges []struct {
			Request json.RawMessage
			Status  int
		}
		if err := json.Unmarshal(f.Read(t), &exchanges); err != nil {
			t.Fatal(err)
		}
		for i, e := range exchanges {
			if e.Status != 200 {
				continue
			}
			if err := vendorserver.ValidateAnthropicRequest(e.Request,
				vendorserver.ValidateOptions{Request: true}); err != nil {
				t.Errorf("%s, request %d: %v", f.Name, i, err)
			}
		}
	}
}

// TestValidateRecordedOpenAI: each conversation of the file with plain requests is one that the API took.
func TestValidateRecordedOpenAI(t *testing.T) {
	t.Parallel()
	file, ok := corpus.Open(t, "openai-chat/tau-gpt4o-airline-dev.json")
	if !ok {
		return
	}
	var conversations []struct{ Traj []json.RawMessage }
	if err := json.Unmarshal(file.Read(t), &conversations); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for i, c := range conversations {
		if len(c.Traj) == 0 {
			continue
		}
		body, err := json.Marshal(map[string]any{"messages": c.Traj})
		if err != nil {
			t.Fatal(err)
		}
		checked++
		if err := vendorserver.ValidateOpenAI(body); err != nil {
			t.Errorf("conversation %d: %v", i, err)
		}
	}
	if checked < 5 {
		t.Errorf("%d conversations checked", checked)
	}
}

// FuzzValidate: no body makes a validator panic.
func FuzzValidate(f *testing.F) {
	for _, c := range anthropicCases {
		f.Add([]byte(c.body))
	}
	for _, c := range openaiCases {
		f.Add([]byte(c.body))
	}
	for _, c := range responsesCases {
		f.Add([]byte(c.body))
	}
	for _, c := range googleCases {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, o := range []vendorserver.ValidateOptions{
			{},
			{Request: true, Version: "2026-10-21"},
			{Compatible: true},
		} {
			vendorserver.ValidateAnthropicRequest(body, o) // it returns, that is all
			vendorserver.ValidateOpenAIRequest(body, o)    // it returns, that is all
			vendorserver.ValidateOpenAIResponsesRequest(body, o)
			vendorserver.ValidateGoogleRequest(body, o)
		}
	})
}
