package vendorserver_test

import (
	"strings"
	"testing"

	"precis/internal/testkit/vendorserver"
)

// items is a Responses request with these items.
func items(list ...string) string { return `{"model":"m","input":[` + strings.Join(list, ",") + `]}` }

const (
	rUser   = `{"role":"user","content":"hello"}`
	rCall   = `{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"}`
	rOutput = `{"type":"function_call_output","call_id":"c1","output":"x"}`
	rThink  = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"QUJD"}`
)

var responsesCases = []struct {
	name, body, want string
	options          vendorserver.ValidateOptions
}{
	{name: "Text", body: `{"model":"m","input":"hello"}`},
	{name: "Items", body: items(rUser, rThink, rCall, rOutput, `{"type":"message","role":"assistant","id":"msg_1",`+
		`"status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]}`)},
	{name: "Parallel", body: items(rUser, rCall,
		`{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"x"}`,
		`{"type":"custom_tool_call_output","call_id":"c2","output":"y"}`, rOutput)},
	{name: "Compaction", body: items(rUser, `{"type":"compaction","encrypted_content":"QUJD"}`)},
	{name: "KeptThere", body: `{"previous_response_id":"resp_1","input":[` + rOutput + `]}`},
	{name: "Reference", body: items(rUser, `{"type":"item_reference","id":"msg_9"}`)},
	{name: "Image", body: items(
		`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`)},
	{
		name: "Compact", body: `{"model":"m","input":[` + rUser + `],"instructions":"x"}`,
		options: vendorserver.ValidateOptions{Request: true, Compact: true},
	},

	{name: "NotJSON", body: `[`, want: "not valid JSON"},
	{name: "NoInput", body: `{"model":"m"}`, want: "Missing required parameter: 'input'"},
	{name: "NoModel", body: `{"input":"x"}`, want: "model", options: vendorserver.ValidateOptions{Request: true}},
	{name: "EmptyInput", body: `{"input":[]}`, want: "empty array"},
	{name: "InputIsObject", body: `{"input":{}}`, want: "expected one of a string or array"},
	{name: "ItemIsText", body: items(`"x"`), want: "expected an object"},
	{name: "MessagesKey", body: `{"input":"x","messages":[]}`, want: "messages"},
	{
		name: "StreamToCompact", body: `{"model":"m","input":"x","stream":true}`, want: "stream",
		options: vendorserver.ValidateOptions{Compact: true},
	},
	{name: "UnknownType", body: items(`{"type":"tool_use","id":"x"}`), want: "Invalid value: 'tool_use'"},
	{name: "UnknownRole", body: items(`{"role":"tool","content":"x"}`), want: "Invalid value: 'tool'"},
	{name: "UnknownKey", body: items(`{"role":"user","content":"x","agent":"main"}`), want: "Unknown parameter"},
	{name: "NoContent", body: items(`{"role":"user"}`), want: "'input[0].content'"},
	{name: "ContentIsObject", body: items(`{"role":"user","content":{}}`), want: "array of objects or string"},
	{
		name: "PartOfChat", body: items(`{"role":"user","content":[{"type":"text","text":"x"}]}`),
		want: "Invalid value: 'text'",
	},
	{
		name: "OutputTextOfUser", body: items(`{"role":"user","content":[{"type":"output_text","text":"x"}]}`),
		want: "Invalid value: 'output_text'",
	},
	{
		name: "InputTextOfAssistant",
		body: items(rUser, `{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`),
		want: "Invalid value: 'input_text'",
	},
	{
		name: "ImageWithoutAddress", body: items(`{"role":"user","content":[{"type":"input_image"}]}`),
		want: "image_url, file_id",
	},
	{
		name: "ImageAddress", body: items(`{"role":"user","content":[{"type":"input_image","image_url":"AAAA"}]}`),
		want: "data URL",
	},
	{
		name: "FileWithoutData", body: items(`{"role":"user","content":[{"type":"input_file","filename":"a.pdf"}]}`),
		want: "file_id, file_data, file_url",
	},
	{name: "Unanswered", body: items(rUser, rCall), want: "No tool output found for function call c1"},
	{name: "Orphan", body: items(rUser, rOutput), want: "No tool call found for function call output with call_id c1"},
	{name: "OtherKindOfOutput", body: items(rUser, rCall,
		`{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`), want: "that is a function_call"},
	{name: "TwoOutputs", body: items(rUser, rCall, rOutput, rOutput), want: "Duplicate tool output"},
	{name: "TwoCalls", body: items(rUser, rCall, rOutput, rCall, rOutput), want: "Duplicate call_id"},
	{name: "ArgumentsAreObject", body: items(rUser, `{"type":"function_call","call_id":"c1","name":"f","arguments":{}}`,
		rOutput), want: "valid string"},
	{
		name: "CallWithoutName", body: items(rUser, `{"type":"function_call","call_id":"c1","arguments":"{}"}`,
			rOutput),
		want: "'input[1].name'",
	},
	{name: "NameOfACall", body: items(rUser, `{"type":"function_call","call_id":"c1","name":"a b","arguments":"{}"}`,
		rOutput), want: "does not match pattern"},
	{
		name: "EmptyID", body: items(rUser, `{"type":"function_call","call_id":"","name":"f","arguments":"{}"}`),
		want: "empty string",
	},
	{name: "LongID", body: items(`{"type":"message","id":"` + strings.Repeat("m", 65) +
		`","role":"user","content":"x"}`), want: "string too long"},
	{name: "SameIDTwice", body: items(`{"type":"message","id":"msg_1","role":"user","content":"x"}`,
		`{"type":"message","id":"msg_1","role":"user","content":"x"}`), want: "Duplicate item found with id msg_1"},
	{name: "LonelyReasoning", body: items(rUser, rThink), want: "without its required following item"},
	{name: "ReasoningBeforeAUser", body: items(rUser, rThink, rUser), want: "without its required following item"},
	{
		name: "ReasoningOfNobody", body: items(rUser, `{"type":"reasoning","summary":[]}`, rCall, rOutput),
		want: "encrypted_content",
	},
	{
		name: "ReasoningWithoutSummary", body: items(rUser, `{"type":"reasoning","id":"rs_1"}`, rCall, rOutput),
		want: "summary",
	},
	{name: "EmptyCompaction", body: items(rUser, `{"type":"compaction","encrypted_content":""}`), want: "empty string"},
	{
		name: "TwoStates", body: `{"previous_response_id":"r","conversation":"c","input":"x"}`,
		want: "Mutually exclusive",
	},
	{name: "SmallLimit", body: `{"input":"x","max_output_tokens":15}`, want: "greater than or equal to 16"},
	{name: "OptionsWithoutStream", body: `{"input":"x","stream_options":{}}`, want: "only allowed when 'stream'"},
	{name: "ChoiceWithoutTools", body: `{"input":"x","tool_choice":"required"}`, want: "with 'tools' parameter"},
	{name: "ToolOfChat", body: `{"input":"x","tools":[{"type":"function","function":{"name":"f"}}]}`, want: "name"},
}

func TestValidateResponses(t *testing.T) {
	t.Parallel()
	for _, c := range responsesCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantError(t, vendorserver.ValidateOpenAIResponsesRequest([]byte(c.body), c.options), c.want)
		})
	}
}

// contents is a request to Google with these contents.
func contents(list ...string) string { return `{"contents":[` + strings.Join(list, ",") + `]}` }

const (
	gUser   = `{"role":"user","parts":[{"text":"hello"}]}`
	gModel  = `{"role":"model","parts":[{"text":"yes"}]}`
	gCall   = `{"role":"model","parts":[{"functionCall":{"name":"read","args":{}},"thoughtSignature":"QUJD"}]}`
	gAnswer = `{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"out":"x"}}}]}`
)

var googleCases = []struct {
	name, body, want string
	options          vendorserver.ValidateOptions
}{
	{name: "Text", body: contents(gUser)},
	{name: "Turns", body: contents(gUser, gModel, gUser)},
	{name: "UsersInARow", body: contents(gUser, gUser)},
	{name: "Call", body: contents(gUser, gCall, gAnswer, gModel)},
	{name: "RoleOfOlderClients", body: contents(gUser, gCall, strings.Replace(gAnswer, "user", "function", 1))},
	{name: "TwoCalls", body: contents(gUser,
		`{"role":"model","parts":[{"functionCall":{"name":"a"}},{"functionCall":{"name":"b"}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"b","response":{}}},{"functionResponse":{"name":"a",`+
			`"response":{}}}]}`)},
	{name: "Image", body: contents(
		`{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"text":"what is it?"}]}`)},
	{name: "Underscores", body: `{"contents":[` + gUser +
		`],"system_instruction":{"parts":[{"text":"x"}]},"generation_config":{"max_output_tokens":5}}`},
	{name: "SignatureAlone", body: contents(gUser, `{"role":"model","parts":[{"thoughtSignature":"QUJD"}]}`)},
	{name: "Tools", body: `{"contents":[` + gUser + `],"tools":[{"functionDeclarations":[{"name":"f",` +
		`"parameters":{"type":"OBJECT","properties":{"a":{"type":"string"}}}}]}]}`},

	{name: "NotJSON", body: `{"contents"`, want: "not valid JSON"},
	{name: "NoContents", body: `{}`, want: "contents is not specified"},
	{name: "EmptyContents", body: contents(), want: "contents is not specified"},
	{name: "UnknownKey", body: `{"contents":[` + gUser + `],"messages":[]}`, want: `Unknown name "messages"`},
	{
		name: "KeyTwice", body: `{"contents":[` + gUser +
			`],"systemInstruction":null,"toolConfig":{},"tool_config":{}}`,
		want: "there twice",
	},
	{
		name: "UnknownRole", body: contents(`{"role":"assistant","parts":[{"text":"x"}]}`),
		want: "valid role: user, model",
	},
	{name: "SystemRole", body: contents(`{"role":"system","parts":[{"text":"x"}]}`), want: "valid role: user, model"},
	{name: "BeginsWithModel", body: contents(gModel, gUser), want: "begin with a user role"},
	{name: "NoParts", body: contents(`{"role":"user","parts":[]}`), want: "parts must not be empty"},
	{
		name: "PartIsText", body: contents(`{"role":"user","parts":["x"]}`),
		want: "Invalid value at 'contents[0].parts[0]'",
	},
	{name: "EmptyPart", body: contents(`{"role":"user","parts":[{}]}`), want: "must have one initialized field"},
	{name: "EmptyText", body: contents(`{"role":"user","parts":[{"text":""}]}`), want: "must have a text parameter"},
	{
		name: "TwoKinds", body: contents(
			`{"role":"user","parts":[{"text":"x","inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`),
		want: "is already set",
	},
	{
		name: "UnknownPart", body: contents(`{"role":"user","parts":[{"type":"text","text":"x"}]}`),
		want: `Unknown name "type"`,
	},
	{
		name: "ImageWithoutType", body: contents(`{"role":"user","parts":[{"inlineData":{"data":"AAAA"}}]}`),
		want: "mimeType and data",
	},
	{name: "FileWithoutAddress", body: contents(
		`{"role":"user","parts":[{"fileData":{"mimeType":"application/pdf"}}]}`), want: "fileUri is required"},
	{
		name: "BrokenSignature", body: contents(gUser,
			`{"role":"model","parts":[{"text":"x","thoughtSignature":"a b"}]}`),
		want: "Base64 decoding failed",
	},
	{
		name: "ThoughtIsText", body: contents(gUser, `{"role":"model","parts":[{"text":"x","thought":"yes"}]}`),
		want: "TYPE_BOOL",
	},
	{name: "Unanswered", body: contents(gUser, gCall, gUser), want: "number of function response parts is equal"},
	{name: "UnansweredAtTheEnd", body: contents(gUser, gCall), want: "number of function response parts is equal"},
	{
		name: "OneOfTwo", body: contents(gUser,
			`{"role":"model","parts":[{"functionCall":{"name":"read"}},{"functionCall":{"name":"b"}}]}`, gAnswer),
		want: "number of function response parts is equal",
	},
	{name: "Orphan", body: contents(gUser, gAnswer), want: "comes immediately after a function call turn"},
	{name: "OrphanFirst", body: contents(gAnswer), want: "comes immediately after a function call turn"},
	{
		name: "OtherName", body: contents(gUser, gCall, strings.Replace(gAnswer, "read", "write", 1)),
		want: "answers no function call",
	},
	{name: "CallAfterModel", body: contents(gUser, gModel, gCall, gAnswer), want: "immediately after a user turn"},
	{
		name: "CallOfUser", body: contents(`{"role":"user","parts":[{"functionCall":{"name":"f"}}]}`),
		want: "only stand in a turn of the model",
	},
	{
		name: "ResponseOfModel", body: contents(gUser, gCall,
			`{"role":"model","parts":[{"functionResponse":{"name":"read","response":{}}}]}`),
		want: "only stand in a turn of the user",
	},
	{name: "ArgumentsAreText", body: contents(gUser,
		`{"role":"model","parts":[{"functionCall":{"name":"f","args":"{}"}}]}`), want: "protobuf.Struct"},
	{name: "ResponseIsText", body: contents(gUser, gCall,
		`{"role":"user","parts":[{"functionResponse":{"name":"read","response":"x"}}]}`), want: "protobuf.Struct"},
	{
		name: "NoResponse", body: contents(gUser, gCall,
			`{"role":"user","parts":[{"functionResponse":{"name":"read"}}]}`),
		want: "response: Field is required",
	},
	{
		name: "NoName", body: contents(gUser, `{"role":"model","parts":[{"functionCall":{"args":{}}}]}`),
		want: "name: Field is required",
	},
	{
		name: "EmptySystem", body: `{"contents":[` + gUser + `],"systemInstruction":{"parts":[]}}`,
		want: "must not be empty",
	},
	{name: "SystemImage", body: `{"contents":[` + gUser +
		`],"systemInstruction":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}`, want: "text only"},
	{
		name: "ZeroLimit", body: `{"contents":[` + gUser + `],"generationConfig":{"maxOutputTokens":0}}`,
		want: "greater than or equal to 1",
	},
	{
		name: "UnknownOption", body: `{"contents":[` + gUser + `],"generationConfig":{"max_tokens":1}}`,
		want: `Unknown name "max_tokens"`,
	},
	{
		name: "FunctionName", body: `{"contents":[` + gUser + `],"tools":[{"functionDeclarations":[{"name":"1 f"}]}]}`,
		want: "Invalid function name",
	},
	{name: "FunctionTwice", body: `{"contents":[` + gUser +
		`],"tools":[{"functionDeclarations":[{"name":"f"},{"name":"f"}]}]}`, want: "Duplicate function declaration"},
	{
		name: "SchemaOfJSON", body: `{"contents":[` + gUser +
			`],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","$schema":"x"}}]}]}`,
		want: `Unknown name "$schema"`,
	},
	{name: "SchemaType", body: `{"contents":[` + gUser +
		`],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"any"}}]}]}`, want: "TYPE_UNSPECIFIED"},
	{
		name: "TwoSchemas", body: `{"contents":[` + gUser +
			`],"tools":[{"functionDeclarations":[{"name":"f","parameters":{},"parametersJsonSchema":{}}]}]}`,
		want: "mutually exclusive",
	},
}

func TestValidateGoogle(t *testing.T) {
	t.Parallel()
	for _, c := range googleCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantError(t, vendorserver.ValidateGoogleRequest([]byte(c.body), c.options), c.want)
		})
	}
}
