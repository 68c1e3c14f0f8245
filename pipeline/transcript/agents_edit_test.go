package transcript_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// Edits change the values that they name and nothing else, in the formats of agents and frameworks too.
func TestEncodeWithEditsOfAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		format transcript.Format
		in     string
		edits  []pipeline.Edit
		out    string // empty: nothing is left
	}{
		{
			"what stands beside a text stays", transcript.Vercel,
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
			"a call that stands in two places is one", transcript.LangChain,
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
			"what the agent said stands in two places", transcript.OpenHands,
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
	} {
		t.Run(string(c.format)+"/"+c.name, func(t *testing.T) {
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
		})
	}
}

// What the pipeline makes is a message of the format, and reads back as what it was; or it is refused.
func TestMakeOfAgents(t *testing.T) {
	t.Parallel()
	made := []pipeline.Made{
		{
			Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
			Text: "<conversation_summary>\nall\n</conversation_summary>",
		},
		{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: `todo: "x"`},
		{Role: pipeline.RoleUser, Text: "summarise"},
		{Role: pipeline.RoleTool, CallID: "t1", Name: "n", Text: "none", IsError: true},
		{Role: pipeline.RoleTool, CallID: "t1", Name: "n", Text: "some"},
		{Role: pipeline.RoleSystem, Text: "be brief"},
		{Role: pipeline.RoleAssistant, Text: "said"},
		{Role: pipeline.RoleUser, Text: " \n"},
	}
	var b strings.Builder
	for _, f := range []transcript.Format{
		transcript.Vercel, transcript.LangChain, transcript.OpenCode, transcript.Pi,
		transcript.OpenHands, transcript.Roo, transcript.Kimi, transcript.Cursor, transcript.Copilot, transcript.ADK,
		transcript.MSAgent,
	} {
		codec, err := transcript.CodecFor(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made {
			out, err := codec.Make(m)
			b.WriteString(string(f) + " " + string(m.Role) + "/" + string(m.Kind) + " ")
			if err != nil {
				b.WriteString("refused: " + err.Error() + "\n")
				continue
			}
			b.WriteString(string(out) + "\n")
			if again, _ := codec.Make(m); !bytes.Equal(out, again) {
				t.Errorf("%s: made twice: %s and %s", f, out, again)
			}
			if out == nil {
				continue // the format has no place for it
			}
			back, err := codec.Decode(out)
			switch {
			case !json.Valid(out) || err != nil || back.Role != m.Role:
				t.Errorf("%s: read back it has role %q: %v: %s", f, back.Role, err, out)
			case m.Role == pipeline.RoleTool &&
				(back.Parts[0].CallID != m.CallID || back.Parts[0].IsError != m.IsError && f != transcript.Kimi):
				t.Errorf("%s: read back it is another result: %+v", f, back.Parts[0])
			case m.Role == pipeline.RoleTool && back.Parts[0].Content[0].Text != m.Text:
				t.Errorf("%s: read back it says %q", f, back.Parts[0].Content[0].Text)
			}
		}
	}
	golden(t, "make-agents.out", b.String())
}
