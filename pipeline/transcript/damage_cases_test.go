package transcript_test

import (
	"fmt"
	"strings"

	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
)

// Beginnings of files, and lines, that the cases are made of.
const (
	geminiSession = `{"sessionId":"s","projectHash":"p","messages":[`
	geminiEntry   = `{"id":"1","type":"user","content":"a"}`
	streamInit    = `{"type":"system","subtype":"init","session_id":"s","model":"m","permissionMode":"default"}` + "\n"
	streamSaid    = `{"type":"user","message":{"role":"user","content":"a"},"parent_tool_use_id":null,` +
		`"session_id":"s"}` + "\n"
	responsesInput = `{"model":"gpt-x","input":[{"role":"user","content":"a"}`
	googleContents = `{"contents":[{"role":"user","parts":[{"text":"a"}]}`
	piHead         = `{"type":"session","id":"s","cwd":"/"}` + "\n"
	piUser         = `{"type":"message","message":{"role":"user","content":"a"}}` + "\n"
	kimiUser       = `{"role":"user","content":"a"}` + "\n"
	kimiMark       = `{"role":"_checkpoint","id":0}` + "\n"
	opened         = `{"info":{"id":"ses","slug":"s","projectID":"p"},"messages":[`
	openUser       = `{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"a"}]}`
	adkUser        = `{"author":"user","content":{"role":"user","parts":[{"text":"a"}]},"id":"e"}`
	copilotHead    = `{"type":"session.start","data":{"sessionId":"s"},"id":"0","parentId":null}` + "\n"
	cursorLine     = `{"role":"user","message":{"content":[{"type":"text","text":"a"}]}}` + "\n"
	msAgentRun     = `{"id":"0","messages":[{"role":"user","contents":[{"type":"text","text":"a"}]}`
	handsRun       = `{"instance_id":"i","history":[{"action":"message","content":"a"}`
	handsSDK       = `{"id":"1","timestamp":"t","source":"user","llm_message":{"role":"user","content":[{` +
		`"type":"text","text":"a"}]},"kind":"MessageEvent"}` + "\n"
	rooUser   = `{"role":"user","content":"a","ts":1}`
	langHuman = `{"type":"human","content":"a"}`
	vercelAI  = `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{}}]}`
)

var (
	codexUser = codexSaid("user", "a")
	tooDeep   = strings.Repeat(`{"a":`, rawjson.MaxDepth+1)
)

// Damaged files: the error of strict reading, and how many messages and notes of damage lenient reading gives.
var damageCases = []damageCase{
	{"empty", transcript.Options{}, "", "the transcript is empty", -1, 0},
	{"blank", transcript.Options{}, " \n\t\n", "the transcript is empty", -1, 0},
	{"a BOM and nothing else", transcript.Options{}, "\xef\xbb\xbf", "the transcript is empty", -1, 0},
	{"UTF-16", transcript.Options{}, "\xff\xfe{\x00}\x00", "UTF-16; convert it", -1, 0},
	{"not JSON", transcript.Options{}, "hello there\n", `not JSON, it begins with 'h'`, -1, 0},
	{"JSON of no known format", transcript.Options{}, `{"a":1}`, "was not recognized; if it is one of", -1, 0},
	{"an unknown format", transcript.Options{Format: "word"}, `{}`, `unknown format "word"`, -1, 0},

	{
		"cc: a line cut short",
		transcript.Options{},
		userLine("a", "1") + "\n" + `{"parentUuid":"1","type":"us` + "\n" + userLine("b", "2"),
		"line 2: the JSON value ends too early", 2, 1,
	},
	{
		"cc: the last line cut short",
		transcript.Options{},
		userLine("a", "1") + "\n" + userLine("b", "2")[:60],
		"line 2: the JSON value ends too early", 1, 1,
	},
	{
		"cc: no JSON in a line",
		transcript.Options{},
		userLine("a", "1") + "\n\n~~~\n" + userLine("b", "2"),
		"line 3: expected a value, found '~'", 2, 1,
	},
	{"cc: not an object", transcript.Options{}, userLine("a", "1") + "\n[1]\n7\n", "line 2: expected a record", 1, 2},
	{
		"cc: NUL bytes of a crash",
		transcript.Options{},
		userLine("a", "1") + "\n\x00\x00\x00\n" + userLine("b", "2"),
		`line 2: expected a value, found '\x00'`, 2, 1,
	},
	{
		"cc: a raw control character",
		transcript.Options{},
		userLine("a\x01", "1") + "\n" + userLine("b", "2"),
		"line 1: a control character (0x01)", 1, 1,
	},
	{
		"cc: a record without a type",
		transcript.Options{},
		userLine("a", "1") + "\n{\"uuid\":\"x\"}\n",
		"line 2: a record without a type", 1, 1,
	},
	{
		"cc: a user record without a message",
		transcript.Options{},
		userLine("a", "1") + "\n" + `{"isSidechain":false,"type":"user","uuid":"2"}`,
		`line 2: bad_request: not a message of format claude-code: a user record has no message`, 1, 1,
	},
	{
		"cc: a content that is a number",
		transcript.Options{},
		`{"isSidechain":false,"type":"user","uuid":"2","message":{"role":"user","content":7}}` + "\n" +
			userLine("a", "1"), "line 1: bad_request: not a message of format claude-code: the content is neither", 1,
		1,
	},
	{
		"cc: nested too tooDeep",
		transcript.Options{},
		userLine("a", "1") + "\n" + tooDeep + "\n",
		"line 2: the JSON nests deeper than 10000", 1, 1,
	},
	{
		"cc: one object and half of another",
		transcript.Options{},
		userLine("a", "1") + " {\"type\"\n" + userLine("b", "2"),
		"line 1: the JSON value ends too early", 2, 1,
	},
	{
		"cc: a line over the limit",
		transcript.Options{MaxMessageBytes: 300},
		userLine("a", "1") + "\n" + userLine(strings.Repeat("x", 300), "2") + "\n" + userLine("b", "3"),
		"line 2: a line of more than 300 bytes; the limit can be raised", 2, 1,
	},
	{
		"cc: a line over the limit at the end",
		transcript.Options{MaxMessageBytes: 300},
		userLine("a", "1") + "\n" + userLine(strings.Repeat("x", 1<<20), "2"),
		"line 2: a line of more than 300 bytes", 1, 1,
	},

	{
		"request: cut short in a message",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"user","content":"a"},` + "\n" + `{"role":"us`,
		"line 2: the JSON value ends too early", 1, 1,
	},
	{
		"request: cut short between messages",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"user","content":"a"},`, "line 1: the JSON value ends too early", 1, 1,
	},
	{
		"request: cut short in a key",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"user","content":"a"}],"to`,
		"line 1: the JSON value ends too early", 1, 1,
	},
	{
		"request: no comma",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"user","content":"a"}` + "\n" + `{"role":"user","content":"b"}]}`,
		`line 2: expected a comma or ']', found '{'`, 1, 1,
	},
	{
		"request: a comma too many",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"user","content":"a"},]}`,
		"line 1: expected a value after a comma", 1, 1,
	},
	{"request: no colon", transcript.Options{}, `{"model":"claude-x","messages" []}`, "line 1: expected a colon", 0, 1},
	{
		"request: a key that is a number",
		transcript.Options{Format: transcript.Anthropic},
		`{"messages":[],7:1}`,
		`line 1: expected a key, found '7'`, 0, 1,
	},
	{
		"request: a message that is a number",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"user","content":"a"},` + "\n" + `7,{"role":"user","content":"b"}]}`,
		"line 2: bad_request: not a message of format anthropic: the message is not a JSON object", 2, 1,
	},
	{
		"request: a message without a role",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"content":"a"}]}`,
		"the message has no role", 0, 1,
	},
	{
		"request: an unknown role",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"robot","content":"a"},{"role":"user","content":"a"}]}`,
		"the role is not user, assistant or system", 1, 1,
	},
	{
		"request: a message over the limit",
		transcript.Options{MaxMessageBytes: 100},
		`{"model":"claude-x","messages":[{"role":"user","content":"` + strings.Repeat("x", 100) +
			`"},{"role":"user","content":"a"}]}`, "a message of more than 100 bytes; the limit can be raised", 1,
		1,
	},
	{
		"request: too much beside the messages",
		transcript.Options{MaxMessageBytes: 100},
		`{"model":"claude-x","system":"` + strings.Repeat("x", 100) + `","messages":[]}`,
		"the keys beside the messages have more than 100 bytes", 0, 1,
	},
	{
		"request: no messages",
		transcript.Options{Format: transcript.OpenAI},
		`{"model":"m"}`,
		"line 1: the object has no array of messages", 0, 1,
	},
	{
		"request: messages twice",
		transcript.Options{},
		`{"model":"claude-x","messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}`,
		"two arrays of messages", 1, 1,
	},
	{
		"request: a number at the top",
		transcript.Options{Format: transcript.OpenAI},
		`7`,
		"line 1: expected a request object or an array, found '7'", 0, 1,
	},
	{
		"requests: one of several is broken",
		transcript.Options{},
		fmt.Sprintf(goodReq, "a") + "\n{\"model\":\n" + fmt.Sprintf(goodReq, "b"),
		"line 3: the JSON value ends too early", 1, 1,
	},
	{
		"requests: text between them",
		transcript.Options{},
		fmt.Sprintf(goodReq, "a") + "\n???\n" + fmt.Sprintf(goodReq, "b"),
		`line 2: expected a request object or an array, found '?'`, 2, 1,
	},
	{
		"array: not of objects",
		transcript.Options{Format: transcript.OpenAI},
		`[1]`, "line 1: expected an object with messages, found '1'",
		0, 1,
	},
	{
		"codex: a line cut short",
		transcript.Options{},
		codexHead + codexUser + `{"timestamp":"t","type":"resp` + "\n" + codexUser,
		"line 3: the JSON value ends too early", 2, 1,
	},
	{
		"codex: cut short at the end",
		transcript.Options{},
		codexHead + codexUser + codexUser[:40],
		"line 3: the JSON value ends too early", 1, 1,
	},
	{
		"codex: no JSON in a line",
		transcript.Options{},
		codexHead + "~\n" + codexUser,
		"line 2: expected a value, found '~'", 1, 1,
	},
	{"codex: not an object", transcript.Options{}, codexHead + "[1]\n" + codexUser, "line 2: expected a record", 1, 1},
	{
		"codex: a record without a payload",
		transcript.Options{},
		codexHead + `{"type":"response_item"}` + "\n" + codexUser,
		"line 2: a record without a type or a payload", 1, 1,
	},
	{
		"codex: an item that is not an object",
		transcript.Options{},
		codexHead + `{"type":"response_item","payload":7}` + "\n" + codexUser,
		"line 2: bad_request: not a message of format codex", 1, 1,
	},
	{
		"codex: an unknown role",
		transcript.Options{},
		codexHead + codexSaid("robot", "a") + codexUser,
		"line 2: bad_request: not a message of format codex: the role is not", 1, 1,
	},
	{
		"codex: a compaction with an invalid item",
		transcript.Options{},
		codexHead + codexUser + `{"type":"compacted","payload":{"message":"","replacement_history":[7]}}` + "\n" +
			codexUser, "line 3: bad_request: not a message of format codex", 2, 1,
	},
	{
		"codex: a line over the limit",
		transcript.Options{MaxMessageBytes: 200},
		codexHead + codexUser + codexSaid("user", strings.Repeat("x", 200)) + codexUser,
		"line 3: a line of more than 200 bytes; the limit can be raised", 2, 1,
	},

	{
		"gemini-cli log: a line cut short",
		transcript.Options{},
		logHead + logSaid("1", "a") + `{"id":"2","ty` + "\n" + logSaid("3", "b"),
		"line 3: the JSON value ends too early", 2, 1,
	},
	{
		"gemini-cli log: a record of no kind",
		transcript.Options{},
		logHead + `{"id":"2"}` + "\n" + logSaid("3", "b"),
		"line 2: a record that is neither a message nor a change", 1, 1,
	},
	{
		"gemini-cli log: a content that is a number",
		transcript.Options{},
		logHead + `{"id":"2","type":"user","content":7}` + "\n" + logSaid("3", "b"),
		"line 2: bad_request: not a message of format gemini-cli: the content is neither", 1, 1,
	},
	{
		"gemini-cli log: a $set with an invalid message",
		transcript.Options{},
		logHead + `{"$set":{"messages":[7]}}` + "\n" + logSaid("3", "b"), "line 2: a message in $set is not an object",
		1, 1,
	},
	{
		"gemini-cli session: cut short in a message",
		transcript.Options{},
		geminiSession + geminiEntry + ",\n" + `{"id":"2",`,
		"line 2: the JSON value ends too early", 1, 1,
	},
	{
		"gemini-cli session: a message without a type",
		transcript.Options{},
		geminiSession + geminiEntry + ",\n" + `{"id":"2"}` + "," + geminiEntry + "]}",
		"line 2: a message without a type", 2, 1,
	},
	{
		"gemini-cli session: no comma",
		transcript.Options{},
		geminiSession + geminiEntry + "\n" + geminiEntry + "]}",
		`line 2: expected a comma or ']', found '{'`, 1, 1,
	},
	{
		"gemini-cli session: a message over the limit",
		transcript.Options{MaxMessageBytes: 100},
		geminiSession + geminiEntry + ",\n" + strings.Replace(geminiEntry, `"a"`, `"`+strings.Repeat("x", 100)+`"`, 1) +
			"," + geminiEntry +
			"]}", "line 2: a message of more than 100 bytes; the limit can be raised", 2, 1,
	},

	{
		"claude-stream-json: a line cut short",
		transcript.Options{},
		streamInit + streamSaid + `{"type":"assis` + "\n" + streamSaid,
		"line 3: the JSON value ends too early", 2, 1,
	},
	{
		"claude-stream-json: an event without a type",
		transcript.Options{},
		streamInit + `{"session_id":"s"}` + "\n" + streamSaid,
		"line 2: a record without a type", 1, 1,
	},
	{
		"claude-stream-json: an event without a message",
		transcript.Options{},
		streamInit + `{"type":"user","parent_tool_use_id":null}` + "\n" + streamSaid,
		"line 2: bad_request: not a message of format claude-stream-json: a user record has no message", 1, 1,
	},

	{
		"openai-responses: cut short in an item",
		transcript.Options{},
		responsesInput + ",\n" + `{"type":"rea`,
		"line 2: the JSON value ends too early", 1, 1,
	},
	{
		"openai-responses: an item that is a number",
		transcript.Options{},
		responsesInput + ",\n7," + `{"role":"user","content":"b"}]}`,
		"line 2: bad_request: not a message of format openai-responses: ", 2, 1,
	},
	{
		"openai-responses: an unknown role",
		transcript.Options{},
		responsesInput + ",\n" + `{"role":"robot","content":"b"}]}`,
		"line 2: bad_request: not a message of format openai-responses: the role is not", 1, 1,
	},
	{
		"openai-responses: a content that is a number",
		transcript.Options{},
		responsesInput + ",\n" + `{"type":"message","role":"user","content":7}]}`,
		"line 2: bad_request: not a message of format openai-responses: the content is neither", 1, 1,
	},
	{
		"openai-responses: neither input nor output",
		transcript.Options{Format: transcript.OpenAIResponses},
		`{"model":"m"}`,
		"line 1: the object has no array of messages", 0, 1,
	},
	{
		"openai-responses: input twice",
		transcript.Options{},
		responsesInput + `],"input":[]}`, "two arrays of messages",
		1, 1,
	},
	{
		"openai-responses: an item over the limit",
		transcript.Options{MaxMessageBytes: 100},
		responsesInput + ",\n" + `{"role":"user","content":"` + strings.Repeat("x", 100) +
			`"},{"role":"user","content":"b"}]}`,
		"line 2: a message of more than 100 bytes; the limit can be raised", 2, 1,
	},
	{
		"openai-responses: a number",
		transcript.Options{Format: transcript.OpenAIResponses},
		`7`,
		"line 1: expected a request object or an array, found '7'", 0, 1,
	},

	{
		"google: cut short in a Content",
		transcript.Options{},
		googleContents + ",\n" + `{"role":"mod`,
		"line 2: the JSON value ends too early", 1, 1,
	},
	{
		"google: a Content that is a number",
		transcript.Options{},
		googleContents + ",\n7," + `{"role":"user","parts":[{"text":"b"}]}]}`,
		"line 2: bad_request: not a message of format google: ", 2, 1,
	},
	{
		"google: an unknown role",
		transcript.Options{},
		googleContents + ",\n" + `{"role":"robot","parts":[{"text":"b"}]}]}`,
		"line 2: bad_request: not a message of format google: the role is not", 1, 1,
	},
	{
		"google: a part that is none",
		transcript.Options{},
		googleContents + ",\n" + `{"role":"model","parts":[7]}]}`,
		"line 2: bad_request: not a message of format google: a part is not an object", 1, 1,
	},
	{
		"google: no contents",
		transcript.Options{Format: transcript.Google},
		`{"model":"m"}`, "line 1: the object has no array of messages",
		0, 1,
	},
	{
		"pi: a line cut short",
		transcript.Options{},
		piHead + piUser + `{"type":"mess` + "\n" + piUser,
		"line 3: the JSON value ends too early", 2, 1,
	},
	{
		"pi: no JSON in a line",
		transcript.Options{},
		piHead + "~\n" + piUser, "line 2: expected a value, found '~'", 1,
		1,
	},
	{"pi: not an object", transcript.Options{}, piHead + "[1]\n" + piUser, "line 2: expected a record", 1, 1},
	{
		"pi: an entry without a type",
		transcript.Options{},
		piHead + `{"id":"x"}` + "\n" + piUser, "line 2: an entry without a type",
		1, 1,
	},
	{
		"pi: an unknown role",
		transcript.Options{},
		piHead + `{"type":"message","message":{"role":"robot","content":"a"}}` + "\n" + piUser,
		"line 2: bad_request: not a message of format pi: the role is not", 1, 1,
	},
	{
		"pi: a content that is a number",
		transcript.Options{},
		piHead + piUser + `{"type":"message","message":{"role":"assistant","content":7}}`,
		"line 3: bad_request: not a message of format pi: the content is neither", 1, 1,
	},
	{
		"pi: a compaction without a summary",
		transcript.Options{},
		piHead + `{"type":"compaction","firstKeptEntryIndex":1}` + "\n" + piUser,
		"line 2: bad_request: not a message of format pi: a compaction entry has no summary", 1, 1,
	},
	{
		"pi: in a tree, with its line",
		transcript.Options{},
		piHead + `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"a"}}` + "\n" +
			`{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":[7]}}`,
		"line 3: bad_request: not a message of format pi: a content block is not an object", 1, 1,
	},
	{
		"pi: a line over the limit",
		transcript.Options{MaxMessageBytes: 100},
		piHead + `{"type":"message","message":{"role":"user","content":"` + strings.Repeat("x", 100) + `"}}` + "\n" +
			piUser, "line 2: a line of more than 100 bytes; the limit can be raised", 1, 1,
	},
	{
		"kimi: a message without a role",
		transcript.Options{},
		kimiMark + `{"content":"a"}` + "\n" + kimiUser,
		"line 2: bad_request: not a message of format kimi: the message has no role", 1, 1,
	},
	{
		"kimi: an unknown role",
		transcript.Options{},
		kimiMark + `{"role":"robot","content":"a"}` + "\n" + kimiUser,
		"not a message of format kimi: the role is not", 1, 1,
	},
	{
		"cursor: a line without content",
		transcript.Options{},
		cursorLine + `{"role":"assistant","message":{}}` + "\n" + cursorLine,
		"line 2: bad_request: not a message of format cursor: the message has no content", 2, 1,
	},
	{
		"cursor: an unknown role",
		transcript.Options{},
		cursorLine + `{"role":"robot","message":{"content":[]}}` + "\n" + cursorLine,
		"not a message of format cursor: the role is not", 2, 1,
	},
	{
		"copilot: an event without data",
		transcript.Options{},
		copilotHead + `{"type":"user.message"}` + "\n" + `{"type":"user.message","data":{"content":"a"}}`,
		"line 2: an event without a type or without data", 1, 1,
	},
	{
		"copilot: two events on a line, one of them broken",
		transcript.Options{},
		copilotHead + `{"type":"user.message","data":{"content":"a"}}{"type":` + "\n" +
			`{"type":"user.message","data":{"content":"b"}}`, "line 2: the JSON value ends too early", 2, 1,
	},
	{
		"copilot: the older object, with an invalid message",
		transcript.Options{},
		`{"sessionId":"s","chatMessages":[{"role":"user","content":"a"},` + "\n" + `{"content":"b"}]}`,
		"line 2: bad_request: not a message of format copilot: the message has no role", 1, 1,
	},
	{
		"openhands: an event that is none",
		transcript.Options{},
		handsRun + ",\n{}]}",
		"line 2: an event without a kind, an action or an observation", 1, 1,
	},
	{
		"openhands: cut short in a run",
		transcript.Options{},
		handsRun + ",\n" + `{"action":`, "line 2: the JSON value ends too early", 1,
		1,
	},
	{
		"openhands: one run of several is broken",
		transcript.Options{},
		handsRun + "],\n" + handsRun + "]}",
		"line 2: expected a key, found '{'", 1, 1,
	},
	{
		"openhands: an unknown role",
		transcript.Options{},
		handsSDK + `{"id":"2","source":"user","llm_message":{"role":"robot"},"kind":"MessageEvent"}` + "\n",
		"line 2: bad_request: not a message of format openhands: the role of the llm_message is not", 1, 1,
	},
	{
		"opencode: a message without parts",
		transcript.Options{},
		opened + openUser + ",\n{\"info\":{\"role\":\"user\"}}]}",
		"line 2: bad_request: not a message of format opencode: the message has no info and parts", 1, 1,
	},
	{
		"opencode: cut short between messages",
		transcript.Options{},
		opened + openUser + ",", "line 1: the JSON value ends too early", 1,
		1,
	},
	{
		"opencode: messages twice",
		transcript.Options{},
		opened + openUser + `],"messages":[]}`, "the object has two arrays of records",
		1, 1,
	},
	{
		"opencode: no messages",
		transcript.Options{Format: transcript.OpenCode},
		`{"info":{}}`,
		`line 1: the object has no array of records under "messages"`, 0, 1,
	},
	{
		"opencode: a message over the limit",
		transcript.Options{MaxMessageBytes: 100},
		opened + openUser + ",\n" + strings.Replace(openUser, `"a"`, `"`+strings.Repeat("x", 100)+`"`, 1) + `]}`,
		"line 2: a message of more than 100 bytes; the limit can be raised", 1, 1,
	},
	{
		"opencode: too much beside the messages",
		transcript.Options{MaxMessageBytes: 100},
		`{"info":{"slug":"` + strings.Repeat("x", 100) + `"},"messages":[` + openUser + `]}`,
		"the keys beside the records have more than 100 bytes", 0, 1,
	},
	{
		"opencode: a list",
		transcript.Options{Format: transcript.OpenCode},
		`[{}]`,
		"line 1: expected an object, found '['", 0, 1,
	},
	{
		"adk: an event with parts that are none",
		transcript.Options{},
		`{"events":[` + adkUser + ",\n" + `{"author":"a","content":{"role":"model","parts":[7]}}]}`,
		"line 2: bad_request: not a message of format adk: a part is not an object", 1, 1,
	},
	{
		"adk: an unknown role",
		transcript.Options{},
		`{"events":[` + adkUser + `,{"author":"a","content":{"role":"robot","parts":[]}}]}`,
		"the role of the content is not user or model", 1, 1,
	},
	{
		"ms-agent: contents that are none",
		transcript.Options{},
		msAgentRun + ",\n" + `{"role":"user","contents":7}]}`,
		"line 2: bad_request: not a message of format ms-agent: the contents are not an array", 1, 1,
	},
	{
		"ms-agent: an unknown role",
		transcript.Options{},
		msAgentRun + `,{"role":{"value":"robot"},"contents":[]}]}`,
		"the role is not system, user, assistant or tool", 1, 1,
	},
	{
		"roo: no comma",
		transcript.Options{},
		"[" + rooUser + "\n" + rooUser + "]", `line 2: expected a comma or ']', found '{'`,
		1, 1,
	},
	{
		"roo: an unknown role",
		transcript.Options{},
		"[" + rooUser + `,{"role":"robot","content":"a","ts":1}]`,
		"not a message of format roo: the role is not", 1, 1,
	},
	{
		"roo: an entry that is a number",
		transcript.Options{},
		"[" + rooUser + ",\n7," + rooUser + "]",
		"line 2: expected a record, found JSON that is not an object", 2, 1,
	},
	{
		"langchain: a type that there is not",
		transcript.Options{},
		"[" + langHuman + ",\n" + `{"type":"robot","content":"a"}]`,
		"line 2: bad_request: not a message of format langchain: the type is not", 1, 1,
	},
	{
		"langchain: a content that is a number",
		transcript.Options{},
		"[" + langHuman + `,{"type":"ai","content":7}]`,
		"not a message of format langchain: the content is neither", 1, 1,
	},
	{
		"vercel: a content that is missing",
		transcript.Options{},
		"[" + vercelAI + ",\n" + `{"role":"user"}]`,
		"line 2: bad_request: not a message of format vercel: the content is neither", 1, 1,
	},
	{
		"vercel: an unknown role",
		transcript.Options{},
		"[" + vercelAI + `,{"role":"data","content":"a"}]`,
		"the role is not system, user, assistant or tool", 1, 1,
	},
	{
		"vercel: a message that is none in a log",
		transcript.Options{},
		`{"runs":[{"id":"r","started_at":"t"}],"steps":[{` +
			`"id":"s","run_id":"r","model_id":"m","input":"{\"prompt\":[{\"role\":\"user\",\"content\":\"a\"},{` +
			`\"role\":7}]}"}]}`, "line 1: bad_request: not a message of format vercel: the message has no role", 1, 1,
	},
	{
		"vercel: a number",
		transcript.Options{Format: transcript.Vercel},
		`7`,
		"line 1: expected an object or an array, found '7'", 0, 1,
	},
}
