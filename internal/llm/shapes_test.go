package llm_test

import (
	"strings"
	"testing"

	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// chatEnd finishes a stream of chat completions.
const chatEnd = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"

// shapes are streams of compatible servers and what is read from them.
var shapes = map[string]struct {
	vendorType, raw string
	want            pipeline.ErrorKind
	text, reasoning string
	usage           llm.Usage
}{
	"WithoutDone": {
		contract.ProtocolOpenAI, `data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" + chatEnd, "",
		"ok", "",
		llm.Usage{},
	},
	"CRLF": {
		contract.ProtocolOpenAI,
		strings.ReplaceAll(`data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}`+"\n\n"+chatEnd, "\n", "\r\n"), "",
		"ok", "",
		llm.Usage{},
	},
	"Comments": {
		contract.ProtocolOpenAI,
		": OPENROUTER PROCESSING\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" + chatEnd,
		"", "ok", "",
		llm.Usage{},
	},
	"AzureFilterFirst": {
		contract.ProtocolOpenAI,
		`data: {"choices":[],"prompt_filter_results":[]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" + chatEnd + "data: [DONE]\n\n", "",
		"ok", "",
		llm.Usage{},
	},
	"UsageInTheLastChunk": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}],"usage":{` +
			`"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}` + "\n\n",
		"", "ok", "",
		llm.Usage{Input: 5, Output: 2},
	},
	"ReasoningContent": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","content":null}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" + chatEnd, "", "ok", "hm",
		llm.Usage{},
	},
	"Reasoning": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"reasoning":"hm","content":""}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" + chatEnd, "", "ok", "hm",
		llm.Usage{},
	},
	"ReasoningBoth": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}` + "\n\n" + chatEnd,
		pipeline.EmptyOutput, "", "hm",
		llm.Usage{},
	},
	"ContentList": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text",` +
			`"text":"hm"}]}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"ok"}]}}]}` + "\n\n" + chatEnd,
		"", "ok", "hm",
		llm.Usage{},
	},
	"SecondChoice": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" + chatEnd, "", "ok", "",
		llm.Usage{},
	},
	"OldFunctionCall": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"function_call":{"name":"f","arguments":"{}"}}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}` + "\n\n",
		pipeline.ToolCallOutput, "", "",
		llm.Usage{},
	},
	"NullError": {
		contract.ProtocolOpenAI,
		`data: {"error":null,"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" + chatEnd, "", "ok", "",
		llm.Usage{},
	},
	"ErrorAtTheEnd": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n\n" + `data: {"error":{"code":502,` +
			`"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},` +
			`"finish_reason":"error"}]}` + "\n\n", pipeline.ServerError, "", "",
		llm.Usage{},
	},
	"Aborted": {
		contract.ProtocolOpenAI,
		`data: {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":"abort"}]}` + "\n\n",
		pipeline.ServerError, "half", "",
		llm.Usage{},
	},
	"Text": {
		contract.ProtocolOpenAI, "upstream connect error or disconnect/reset before headers",
		pipeline.MalformedOutput, "", "",
		llm.Usage{},
	},

	"NoEventNames": {
		contract.ProtocolAnthropic,
		`data: {"type":"message_start","message":{"id":"m","model":"x","content":[],"usage":{"input_tokens":5,` +
			`"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"o"}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"k"}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` +
			"\n\n",
		"", "ok", "",
		llm.Usage{Input: 5, Output: 2},
	},
	"UnknownEvents": {
		contract.ProtocolAnthropic,
		"event: vendor_news\ndata: {\"type\":\"vendor_news\",\"x\":1}\n\n" +
			"event: content_block_delta\ndata: " +
			"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n" +
			"event: message_delta\ndata: " +
			"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"stop_sequence\"}}\n\n",
		"", "ok", "",
		llm.Usage{},
	},
	"UsageInTheDelta": {
		contract.ProtocolAnthropic,
		"event: content_block_delta\ndata: " +
			"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n" +
			"event: message_delta\ndata: " +
			"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":4," +
			"\"cache_read_input_tokens\":6,\"output_tokens\":2}}\n\n",
		"", "ok", "",
		llm.Usage{Input: 10, CachedInput: 6, Output: 2},
	},
	"WindowFull": {
		contract.ProtocolAnthropic,
		"event: message_delta\ndata: " +
			"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"model_context_window_exceeded\"}}\n\n",
		pipeline.OutputTooLong, "", "",
		llm.Usage{},
	},
	"Paused": {
		contract.ProtocolAnthropic,
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\"}}\n\n",
		pipeline.MalformedOutput, "", "",
		llm.Usage{},
	},
}

// TestShapes reads streams in the forms that compatible servers have made of the two protocols.
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Raw: &c.raw}}})
			res, err := newClient(t, srv, c.vendorType).Call(ctxOf(t), call(c.vendorType, true))
			if kind := pipeline.KindOf(err); kind != c.want {
				t.Fatalf("kind %q, want %q (%v)", kind, c.want, err)
			}
			if res.Text != c.text || res.Reasoning != c.reasoning || res.Usage != c.usage {
				t.Errorf("text %q, reasoning %q, usage %+v", res.Text, res.Reasoning, res.Usage)
			}
			if string(res.Raw) != c.raw {
				t.Errorf("the record of the answer is\n%q, want\n%q", res.Raw, c.raw)
			}
		})
	}
}
