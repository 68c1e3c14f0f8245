package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// message is an entry of a context with a stored message.
func message(f transcript.Format, native string) pipeline.ContextItem {
	codec, err := transcript.CodecFor(f)
	if err != nil {
		panic(err)
	}
	m, err := codec.Decode([]byte(native))
	if err != nil {
		panic(err)
	}
	return pipeline.ContextItem{Message: &m}
}

func made(m pipeline.Made) pipeline.ContextItem { return pipeline.ContextItem{Made: &m} }

func userLine(text, uuid string) string {
	return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"role":"user",`+
		`"content":"%s"},"uuid":"%s"}`, text, uuid)
}

func replace(part, content int, text string) pipeline.Edit {
	return pipeline.Edit{Part: part, Content: content, Op: pipeline.EditReplace, Text: text}
}

func drop(part, content int) pipeline.Edit {
	return pipeline.Edit{Part: part, Content: content, Op: pipeline.EditDrop}
}

var cases = []struct {
	name     string
	from, to transcript.Format
	in       []pipeline.ContextItem
	out      []string
	losses   []string
}{
	{
		"results stand first, whatever came between", transcript.Anthropic, transcript.OpenAI,
		[]pipeline.ContextItem{message(transcript.Anthropic, `{"role":"user","content":[{"type":"text","text":"and"},{`+
			`"type":"tool_result","tool_use_id":"t1","content":"r"}]}`)},
		[]string{`{"role":"tool","tool_call_id":"t1","content":"r"}`, `{"role":"user","content":"and"}`},
		nil,
	},
	{
		"ids of several calls become distinct, each result stays with its call", transcript.OpenAI,
		transcript.Anthropic,
		[]pipeline.ContextItem{
			message(transcript.OpenAI, `{"role":"assistant","content":null,"tool_calls":[`+
				`{"id":"a:0","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			message(transcript.OpenAI, `{"role":"tool","tool_call_id":"a:0","content":"1"}`),
			message(transcript.OpenAI, `{"role":"assistant","content":null,"tool_calls":[`+
				`{"id":"a:0","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			message(transcript.OpenAI, `{"role":"tool","tool_call_id":"a:0","content":"2"}`),
		},
		[]string{
			`{"role":"assistant","content":[{"type":"tool_use","id":"a_0","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_0","content":"1"}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"a_0_2","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_0_2","content":"2"}]}`,
		},
		nil,
	},
	{
		"messages of one role become one, with what was made among them", transcript.OpenAI, transcript.Anthropic,
		[]pipeline.ContextItem{
			made(pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSummary, Text: "S"}),
			message(transcript.OpenAI, `{"role":"user","content":"x \ud83d\ude00"}`),
			message(transcript.OpenAI, `{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function",`+
				`"function":{"name":"f","arguments":"{\"n\": 9007199254740993}"}},{"id":"b","type":"function",`+
				`"function":{"name":"f","arguments":"not json"}}]}`),
			message(transcript.OpenAI, `{"role":"tool","tool_call_id":"b","content":"B"}`),
			made(pipeline.Made{Role: pipeline.RoleTool, CallID: "a", Text: "none", IsError: true}),
			message(transcript.OpenAI, `{"role":"user","content":"go on"}`),
		},
		[]string{
			`{"role":"user","content":[{"type":"text","text":"S"},{"type":"text","text":"x \ud83d\ude00"}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"n": ` +
				`9007199254740993}},{"type":"tool_use","id":"b","name":"f","input":{"arguments":"not json"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"B"},{` +
				`"type":"tool_result","tool_use_id":"a","content":"none","is_error":true},{"type":"text",` +
				`"text":"go on"}]}`,
		},
		[]string{"tool call arguments"},
	},
	{
		"a system message in the middle", transcript.OpenAI, transcript.Anthropic,
		[]pipeline.ContextItem{
			message(transcript.OpenAI, `{"role":"system","content":"S"}`),
			message(transcript.OpenAI, `{"role":"user","content":"a"}`),
			message(transcript.OpenAI, `{"role":"system","content":"T"}`),
		},
		[]string{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text",` +
			`"text":"<system-reminder>\nT\n</system-reminder>"}]}`},
		[]string{"role", "system message"},
	},
	{
		"images of results follow behind the last of them", transcript.Anthropic, transcript.OpenAI,
		[]pipeline.ContextItem{
			message(transcript.Anthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",`+
				`"content":[{`+
				`"type":"text","text":"see"},{"type":"image","source":{"type":"base64",`+
				`"media_type":"image/png","data":"AAAA"}}],"is_error":true},{"type":"tool_result",`+
				`"tool_use_id":"t2"}]}`),
		},
		[]string{
			`{"role":"tool","tool_call_id":"t1","content":[{"type":"text","text":"see"},{"type":"text",` +
				`"text":"[image: in the user message behind the results]"}]}`,
			`{"role":"tool","tool_call_id":"t2","content":""}`,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`,
		},
		[]string{"error flag", "image"},
	},
	{
		"what has no place", transcript.Anthropic, transcript.OpenAI,
		[]pipeline.ContextItem{
			message(transcript.Anthropic, `{"role":"assistant","content":[{"type":"thinking","thinking":"t",`+
				`"signature":"s"},`+
				`{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{`+
				`"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}`),
			message(transcript.Anthropic, `{"role":"assistant","content":[{"type":"compaction","content":"c"},{`+
				`"type":"text",`+
				`"text":"a"}]}`),
			message(transcript.Anthropic, `{"role":"user","content":[{"type":"document","source":{"type":"base64",`+
				`"media_type":"application/pdf","data":"AAAA"}},{"type":"document","source":{"type":"text",`+
				`"media_type":"text/plain","data":"plain"}},{"type":"document","source":{"type":"url",`+
				`"url":"https://x"}}]}`),
		},
		[]string{
			`{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"a"}]}`,
			`{"role":"user","content":[{"type":"file","file":{"filename":"document",` +
				`"file_data":"data:application/pdf;base64,AAAA"}},{"type":"text","text":"plain"},{` +
				`"type":"text","text":"[document omitted]"}]}`,
		},
		[]string{"reasoning", "server_tool_use", "web_search_tool_result", "compaction", "file"},
	},
	{
		"contents of several parts, images by address, calls of servers that are lax", transcript.OpenAI,
		transcript.Anthropic,
		[]pipeline.ContextItem{
			message(transcript.OpenAI, `{"role":"user","content":[{"type":"image_url","image_url":"https://x/a.png"},{`+
				`"type":"image_url","image_url":{"url":"ftp://x"}},{"type":"file","file":{"filename":"f.pdf",`+
				`"file_data":"AAAA"}},{"type":"file","file":{"file_id":"x"}}]}`),
			message(transcript.OpenAI, `{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{`+
				`"name":"f",`+
				`"arguments":{"a":1}}}]}`),
			message(transcript.OpenAI, `{"role":"tool","tool_call_id":"","content":[{"type":"text","text":"a"},{`+
				`"type":"text","text":" "},{"type":"text","text":"b"}]}`),
			message(transcript.OpenAI, `{"role":"tool","tool_call_id":"stray","content":[{"type":"text","text":" "},{`+
				`"type":"text","text":""}]}`),
		},
		[]string{
			`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/a.png"}},{` +
				`"type":"text","text":"[image_url omitted]"},{"type":"text","text":"[file omitted]"},{` +
				`"type":"text","text":"[file omitted]"}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"f","input":{"a":1}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text",` +
				`"text":"a"},{"type":"text","text":"b"}]},{"type":"tool_result","tool_use_id":"stray",` +
				`"content":""}]}`,
		},
		[]string{"image", "file", "file"},
	},
	{
		"results of one id in one message go in the order of their calls", transcript.OpenAI, transcript.Anthropic,
		[]pipeline.ContextItem{
			message(transcript.OpenAI, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{`+
				`"name":"f",`+
				`"arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			message(transcript.OpenAI, `{"role":"tool","tool_call_id":"a","content":"1"}`),
			message(transcript.OpenAI, `{"role":"tool","tool_call_id":"a","content":"2"}`),
		},
		[]string{
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{` +
				`"type":"tool_use","id":"a_2","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{` +
				`"type":"tool_result","tool_use_id":"a_2","content":"2"}]}`,
		},
		nil,
	},
	{
		"base64 in lines, images without data", transcript.Anthropic, transcript.OpenAI,
		[]pipeline.ContextItem{
			message(transcript.Anthropic, `{"role":"user","content":[{"type":"image","source":{"type":"base64",`+
				`"media_type":"image/png","data":"AA\r\nAA"}},{"type":"image","source":{"type":"file",`+
				`"file_id":"f"}},{"type":"image"}]}`),
		},
		[]string{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			`AAAA"}},{"type":"text","text":"[image omitted]"},{"type":"text","text":"[image omitted]"}]}`},
		[]string{"image", "image"},
	},
	{
		"halves of characters", transcript.ClaudeCode, transcript.Anthropic,
		[]pipeline.ContextItem{message(transcript.ClaudeCode,
			userLine(`cut \ud83d \ude00 \ud83d\ude00 \\ud83d `+"\xff", "1"))},
		[]string{`{"role":"user","content":[{"type":"text","text":"cut \ufffd \ufffd \ud83d\ude00 \\ud83d ` +
			"\ufffd" + `"}]}`},
		[]string{"broken characters"},
	},
	{
		"edits are done first, blank text is left out", transcript.ClaudeCode, transcript.Anthropic,
		[]pipeline.ContextItem{
			{
				Message: message(transcript.ClaudeCode, userLine("long", "1")).Message,
				Edits:   []pipeline.Edit{replace(0, -1, "short")},
			},
			{
				Message: message(transcript.ClaudeCode, userLine("gone", "2")).Message,
				Edits:   []pipeline.Edit{drop(0, -1)},
			},
			message(transcript.ClaudeCode, userLine(` \n`, "3")),
		},
		[]string{`{"role":"user","content":[{"type":"text","text":"short"}]}`},
		nil,
	},
	{
		"the same format: the same bytes", transcript.Anthropic, transcript.Anthropic,
		[]pipeline.ContextItem{
			message(transcript.Anthropic, `{ "role" : "user", "content":"a" }`),
			message(transcript.Anthropic, `{"role":"user","content":"b"}`),
		},
		[]string{`{ "role" : "user", "content":"a" }`, `{"role":"user","content":"b"}`},
		nil,
	},
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s to %s/%s", c.from, c.to, c.name), func(t *testing.T) {
			t.Parallel()
			out, losses, err := convert.Messages(c.in, c.from, c.to)
			if err != nil {
				t.Fatal(err)
			}
			var got, lost []string
			for _, b := range out {
				got = append(got, string(b))
			}
			for _, l := range losses {
				lost = append(lost, l.What)
			}
			if diff := cmp.Diff(c.out, got); diff != "" {
				t.Errorf("the messages differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.losses, lost); diff != "" {
				t.Errorf("the losses differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		items    []pipeline.ContextItem
		from, to transcript.Format
		err      string
	}{
		{nil, transcript.Anthropic, transcript.ClaudeCode, "cannot be written in format"},
		{nil, "word", transcript.Anthropic, `unknown format "word"`},
		{[]pipeline.ContextItem{{}}, transcript.OpenAI, transcript.Anthropic, "entry 0"},
	} {
		if _, _, err := convert.Messages(c.items, c.from, c.to); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s to %s: got %v, want an error with %q", c.from, c.to, err, c.err)
		}
	}
}
