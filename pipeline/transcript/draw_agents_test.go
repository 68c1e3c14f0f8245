package transcript_test

import (
	"maps"
	"strings"

	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

const (
	pngData = `iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA=`
	pngURL  = `data:image/png;base64,` + pngData
)

func init() { maps.Copy(drawn, agentMessages) }

// agentMessages draws valid messages of the formats of agents and frameworks, with unusual blanks.
var agentMessages = map[transcript.Format]func() *rapid.Generator[[]byte]{
	transcript.Vercel: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{ "type":"text", "text":%s, "providerOptions":{"x":{"n":9007199254740993}} }`)
		output := rapid.OneOf(
			mapped(odd, `"output": {"type":"text", "value":%s}`),
			mapped(odd, `"output":{"type":"error-json","value":{"a":%s}}`),
			mapped(listOf(rapid.OneOf(text,
				rapid.Just(`{"type":"media","data":"`+pngData+`","mediaType":"image/png"}`)), 1, 3),
				`"output":{"type":"content","value":%s}`),
			mapped(odd, `"result":%s`), mapped(odd, `"result":[%s]`), rapid.Just(`"x":1`))
		return bytesOf(rapid.OneOf(
			mapped(odd, `{"role":"system","content":%s}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"image","image":"`+pngURL+`"}`)), 1, 3),
				`{ "content":%s, "role":"user" }`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"reasoning","text":"r"}`),
				rapid.SampledFrom([]string{
					`{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"a":1}}`,
					`{"type":"tool-call","toolCallId":"c","toolName":"f","args":{}}`,
				})), 1, 4),
				`{"role":"assistant","content":%s}`),
			mapped(listOf(mapped(output, `{"type":"tool-result","toolCallId":"c","toolName":"f",%s}`), 1, 3),
				`{"role":"tool","content":%s}`)))
	},
	transcript.LangChain: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"type":"text", "text":%s}`)
		call := `{"name":"f","args":{"a":1},"id":"%s","type":"tool_call"}`
		content := rapid.OneOf(odd, listOf(rapid.OneOf(text,
			rapid.Just(`{"type":"image_url","image_url":{"url":"`+pngURL+`"}}`)), 1, 3))
		ai := rapid.OneOf(
			rapid.Just(`"content":"", "tool_calls":[`+strings.ReplaceAll(call, "%s", "c1")+` , `+
				strings.ReplaceAll(call, "%s", "c2")+`]`),
			rapid.Just(`"content":[{"type":"text","text":"t"},{"type":"tool_use","id":"c1","name":"f","input":{`+
				`"a":1}}],"tool_calls":[`+strings.ReplaceAll(call, "%s", "c1")+`]`),
			rapid.Just(`"content":"said","additional_kwargs":{"reasoning_content":"r","tool_calls":[{"id":"c1",`+
				`"type":"function","function":{"name":"f","arguments":"{}"}}]},"tool_calls":[`+
				strings.ReplaceAll(call, "%s", "c1")+`]`),
			mapped(content, `"content": %s`))
		body := rapid.OneOf(mapped(content, `"type":"human", "content":%s`), mapped(ai, `"type":"ai",%s`),
			mapped(content, `"type":"tool","content":%s,"tool_call_id":"c"`))
		return rapid.Map(rapid.OneOf(mapped(body, `{ %s, "id":"i" }`), mapped(body, `{"lc":1,"kwargs":{%s}}`)),
			func(s string) []byte {
				if strings.HasPrefix(s, `{"lc"`) {
					for typ, class := range map[string]string{
						"human": "HumanMessage", "ai": "AIMessage",
						"tool": "ToolMessage",
					} {
						if strings.Contains(s, `{"type":"`+typ+`"`) {
							s = strings.Replace(s, `{"lc":1`,
								`{"lc":1,"type":"constructor","id":["langchain","schema","messages","`+class+`"]`, 1)
						}
					}
				}
				return []byte(s)
			})
	},
	transcript.OpenCode: func() *rapid.Generator[[]byte] {
		ids := `"id":"prt_1","sessionID":"s","messageID":"m"`
		text := mapped(odd, `{`+ids+`,"type":"text", "text":%s}`)
		file := rapid.Just(`{` + ids + `,"type":"file","mime":"image/png","url":"` + pngURL + `"}`)
		tool := rapid.OneOf(
			mapped(odd, `{`+ids+`,"type":"tool","callID":"c","tool":"f","state":{"status":"completed","input":{`+
				`"a":1},"output":%s,"metadata":{}}}`),
			mapped(file, `{`+ids+`,"type":"tool","callID":"c","tool":"f","state":{"status":"completed","input":{},`+
				`"output":"o","attachments":[ %s ]}}`),
			mapped(odd, `{`+ids+`,"type":"tool","callID":"c","tool":"f","state":{"status":"error","input":{},`+
				`"error":%s}}`),
			rapid.Just(`{`+ids+`,"type":"tool","callID":"c","tool":"f","state":{"status":"running","input":{}}}`))
		return bytesOf(rapid.OneOf(
			mapped(listOf(rapid.OneOf(text, file), 1, 3),
				`{"info":{"id":"m","sessionID":"s","role":"user"},"parts":%s}`),
			mapped(listOf(rapid.OneOf(text, tool, rapid.Just(`{`+ids+`,"type":"step-start"}`),
				rapid.Just(`{`+ids+`,"type":"reasoning","text":"r"}`)), 1, 4),
				`{ "info":{"id":"m","sessionID":"s","role":"assistant"}, "parts": %s }`)))
	},
	transcript.Pi: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"type":"text", "text":%s}`)
		pictured := rapid.OneOf(text, rapid.Just(`{"type":"image","data":"`+pngData+`","mimeType":"image/png"}`))
		message := func(g *rapid.Generator[string]) *rapid.Generator[string] {
			return mapped(
				g, `{"type":"message","id":"a","parentId":"b","timestamp":"t","message": { %s ,"timestamp":1}}`)
		}
		return bytesOf(rapid.OneOf(
			message(mapped(rapid.OneOf(odd, listOf(pictured, 1, 3)), `"role":"user","content":%s`)),
			message(mapped(listOf(rapid.OneOf(text,
				rapid.Just(`{"type":"thinking","thinking":"r","thinkingSignature":"s"}`),
				rapid.Just(`{"type":"toolCall","id":"c","name":"f","arguments":{"a":1}}`)), 1, 4),
				`"role":"assistant","content":%s`)),
			message(mapped(listOf(pictured, 1, 3),
				`"role":"toolResult","toolCallId":"c","toolName":"f","content":%s,"isError":false`)),
			message(mapped(odd, `"role":"bashExecution","command":"ls","output":%s,"exitCode":0`)),
			mapped(odd, `{"type":"compaction","summary":%s,"tokensBefore":1}`)))
	},
	transcript.OpenHands: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"type":"text", "text":%s, "cache_prompt":false}`)
		return bytesOf(rapid.OneOf(
			mapped(odd, `{"id":1,"source":"user","action":"message","args":{"content": %s,"image_urls":["`+pngURL+
				`"]}}`),
			mapped(odd, `{"id":2,"source":"agent","action":"run","args":{"command":"x","thought":%[1]s},`+
				`"tool_call_metadata":{"function_name":"f","tool_call_id":"c","model_response":{"choices":[{`+
				`"message":{"content":%[1]s,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}}}`),
			mapped(odd, `{"id":3,"source":"agent","action":"read","args":{"path":"p","thought":%s}}`),
			mapped(odd, `{"id":4,"source":"environment","cause":3,"observation":"read","content":%s}`),
			mapped(listOf(
				text, 1, 3), `{"id":"a","source":"user","kind":"MessageEvent","llm_message":{"role":"user",`+
				`"content":%s}}`),
			mapped(listOf(text, 1, 2), `{"id":"b","source":"agent","kind":"ActionEvent","thought":%s,`+
				`"reasoning_content":"r","thinking_blocks":[{"x":1}],"tool_name":"f","tool_call_id":"c",`+
				`"tool_call":{"id":"c","name":"f","arguments":"{}"}}`),
			mapped(listOf(text, 1, 3), `{"id":"c","source":"environment","kind":"ObservationEvent",`+
				`"tool_name":"f","tool_call_id":"c","observation":{"content":%s,"is_error":false}}`),
			mapped(odd, `{"id":"d","source":"agent","kind":"AgentErrorEvent","tool_name":"f","tool_call_id":"c",`+
				`"error":%s}`)))
	},
	transcript.Roo: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"type":"text", "text":%s}`)
		return bytesOf(rapid.OneOf(
			mapped(odd, `{"role":"user","content":%s,"ts":1}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"file","path":"p","content":"c"}`)), 1, 3),
				`{"id":"i","role":"user","content": %s ,"ts":1}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"query":"q","result":"r","success":true}`)), 1, 3),
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","name":"f","content":%s}],"ts":1}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"reasoning","text":"r"}`),
				rapid.Just(`{"type":"tool_use","id":"c","name":"f","input":{"a":1}}`)), 1, 4),
				`{"role":"assistant","content":%s,"ts":1}`)))
	},
	transcript.Kimi: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"type":"text", "text":%s}`)
		return bytesOf(rapid.OneOf(
			mapped(rapid.OneOf(odd, listOf(text, 1, 3)), `{"role":"user","content":%s}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"think","think":"r"}`)), 1, 3),
				`{"role":"assistant","content":%s,"tool_calls":[{"type":"function","id":"f:0","function":{`+
					`"name":"f","arguments":"{\"a\": 1}"}}]}`),
			mapped(rapid.OneOf(odd, listOf(text, 1, 3)), `{"role":"tool", "content":%s, "tool_call_id":"f:0"}`)))
	},
	transcript.Cursor: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"type":"text", "text":%s}`)
		return bytesOf(rapid.OneOf(
			mapped(listOf(text, 1, 3), `{"role":"user","message":{"content": %s }}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"tool_use","name":"f","input":{"a":1}}`)), 1, 4),
				`{"role":"assistant","message":{"content":%s}}`)))
	},
	transcript.Copilot: func() *rapid.Generator[[]byte] {
		call := rapid.SampledFrom([]string{
			`{"toolCallId":"a","name":"f","arguments":{"x":1},"type":"function"}`,
			`{"toolCallId":"b","name":"g","arguments":"raw","type":"custom"}`,
		})
		return bytesOf(rapid.OneOf(
			mapped(odd, `{"type":"user.message","data":{"content":"c", "transformedContent":%s,"attachments":[{`+
				`"type":"blob","data":"`+pngData+`","mimeType":"image/png"}]},"id":"i","parentId":null}`),
			mapped(listOf(call, 1, 3), `{"type":"assistant.message","data":{"content":"said","toolRequests":%s,`+
				`"reasoningOpaque":"o","reasoningText":"r"},"id":"i","parentId":"p"}`),
			mapped(odd, `{"type":"tool.execution_complete","data":{"toolCallId":"a","success":true,"result":{`+
				`"content":%s,"detailedContent":"d"}},"id":"i"}`),
			mapped(odd, `{"type":"tool.execution_complete","data":{"toolCallId":"a","success":false,"error":{`+
				`"message":%s}},"id":"i"}`),
			rapid.Just(`{"type":"tool.execution_start","data":{"toolCallId":"a","toolName":"f","arguments":{`+
				`"x":1}},"id":"i"}`),
			mapped(odd, `{"role":"tool","tool_call_id":"a","content":%s}`)))
	},
	transcript.ADK: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"text": %s}`)
		response := rapid.OneOf(mapped(odd, `{"result":%s}`), mapped(odd, `{"a":%s,"b":1}`), rapid.Just(`{}`),
			mapped(odd, `{"error":%s}`))
		return bytesOf(rapid.OneOf(
			mapped(listOf(rapid.OneOf(text,
				rapid.Just(`{"inline_data":{"mime_type":"image/png","data":"`+pngData+`"}}`)), 1, 3),
				`{"author":"user","content":{"role":"user","parts":%s},"id":"e","timestamp":1.5}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"text":"r","thought":true}`),
				rapid.Just(`{"functionCall":{"name":"f","args":{"a":1}}}`)), 1, 4),
				`{"author":"a","content":{"parts":%s,"role":"model"},"id":"e"}`),
			mapped(listOf(mapped(response, `{"function_response":{"name":"f","response":%s}}`), 1, 3),
				`{"author":"a","content":{"parts":%s,"role":"user"},`+
					`"options":{"function_call_event_id":"e"},"id":"g"}`)))
	},
	transcript.MSAgent: func() *rapid.Generator[[]byte] {
		text := mapped(odd, `{"type":"text", "text":%s}`)
		result := rapid.OneOf(odd, mapped(odd, `{"a":%s}`), rapid.Just(`null`), mapped(odd, `[%s]`))
		return bytesOf(rapid.OneOf(
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"data","uri":"`+pngURL+`","media_type":"image/png"}`)),
				1, 3), `{"role":"user","contents":%s}`),
			mapped(listOf(rapid.OneOf(text, rapid.Just(`{"type":"text_reasoning","text":"r"}`),
				rapid.SampledFrom([]string{
					`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`,
					`{"type":"function_call","call_id":"c","name":"f","arguments":{"a":1}}`,
				})), 1, 4), `{"role":{"value":"assistant"},"contents":%s}`),
			mapped(listOf(mapped(result, `{"type":"function_result","call_id":"c","result":%s,"exception":null}`), 1,
				3), `{"role":{"value":"tool"},"contents":%s}`)))
	},
}

// odd draws string literals that are easy to get wrong.
var odd = rapid.SampledFrom([]string{`"a"`, `"\u0000\ud800"`, `"<b> é"`, `"two\nlines"`})

func listOf(g *rapid.Generator[string], min, max int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(g, min, max),
		func(all []string) string { return "[ " + strings.Join(all, " , ") + " ]" })
}

func mapped(g *rapid.Generator[string], form string) *rapid.Generator[string] {
	return rapid.Map(g, func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(form, "%[1]s", s), "%s", s)
	})
}

func bytesOf(g *rapid.Generator[string]) *rapid.Generator[[]byte] {
	return rapid.Map(g, func(s string) []byte { return []byte(s) })
}
