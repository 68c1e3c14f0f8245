package transcript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// contextOf makes a context of a conversation's messages as they are.
func contextOf(messages []pipeline.Message) []pipeline.ContextItem {
	out := make([]pipeline.ContextItem, len(messages))
	for i := range messages {
		out[i].Message = &messages[i]
	}
	return out
}

func readFile(t *testing.T, path string) transcript.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestConvertFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		to   transcript.Format
	}{
		{"claude-code/turns.jsonl", transcript.Anthropic},
		{"claude-code/turns.jsonl", transcript.OpenAI},
		{"claude-code/kinds.jsonl", transcript.Anthropic},
		{"anthropic/request.json", transcript.OpenAI},
		{"openai/request.json", transcript.Anthropic},
		{"openai/mini-swe.traj.json", transcript.Anthropic},
	} {
		t.Run(c.path+" to "+string(c.to), func(t *testing.T) {
			t.Parallel()
			conv := readFile(t, filepath.Join("testdata", c.path)).Conversations[0]
			out, err := convert.Conversation(conv.Meta, contextOf(conv.Messages), c.to)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "system %s\ntools %s\nenvelope %s\n", out.Meta.System, out.Meta.Tools, out.Meta.Envelope)
			codec, _ := transcript.CodecFor(c.to)
			for _, m := range out.Messages {
				fmt.Fprintf(&b, "%s\n", m)
				if _, err := codec.Decode(m); err != nil {
					t.Errorf("%v: %s", err, m)
				}
			}
			for _, l := range out.Losses {
				fmt.Fprintf(&b, "loss of %s, item %d: %s\n", l.What, l.Item, l.Why)
			}
			golden(t, c.path+"."+string(c.to)+".out", b.String())
		})
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	msg := func(f transcript.Format, native string) pipeline.ContextItem {
		codec, _ := transcript.CodecFor(f)
		m, err := codec.Decode([]byte(native))
		if err != nil {
			t.Fatal(err)
		}
		return pipeline.ContextItem{Message: &m}
	}
	made := func(m pipeline.Made) pipeline.ContextItem { return pipeline.ContextItem{Made: &m} }
	for _, c := range []struct {
		name     string
		from, to transcript.Format
		in       []pipeline.ContextItem
		out      []string
		losses   []string
	}{
		{
			"results stand first, whatever came between", transcript.Anthropic, transcript.OpenAI,
			[]pipeline.ContextItem{msg(transcript.Anthropic, `{"role":"user","content":[{"type":"text","text":"and"},{`+
				`"type":"tool_result","tool_use_id":"t1","content":"r"}]}`)},
			[]string{`{"role":"tool","tool_call_id":"t1","content":"r"}`, `{"role":"user","content":"and"}`},
			nil,
		},
		{
			"ids that stand for several calls are told apart, each result with its call", transcript.OpenAI,
			transcript.Anthropic,
			[]pipeline.ContextItem{
				msg(transcript.OpenAI, `{"role":"assistant","content":null,"tool_calls":[{"id":"a:0","type":"function",`+
					`"function":{"name":"f","arguments":"{}"}}]}`),
				msg(transcript.OpenAI, `{"role":"tool","tool_call_id":"a:0","content":"1"}`),
				msg(transcript.OpenAI, `{"role":"assistant","content":null,"tool_calls":[{"id":"a:0","type":"function",`+
					`"function":{"name":"f","arguments":"{}"}}]}`),
				msg(transcript.OpenAI, `{"role":"tool","tool_call_id":"a:0","content":"2"}`),
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
				msg(transcript.OpenAI, `{"role":"user","content":"x \ud83d\ude00"}`),
				msg(transcript.OpenAI, `{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function",`+
					`"function":{"name":"f","arguments":"{\"n\": 9007199254740993}"}},{"id":"b","type":"function",`+
					`"function":{"name":"f","arguments":"not json"}}]}`),
				msg(transcript.OpenAI, `{"role":"tool","tool_call_id":"b","content":"B"}`),
				made(pipeline.Made{Role: pipeline.RoleTool, CallID: "a", Text: "none", IsError: true}),
				msg(transcript.OpenAI, `{"role":"user","content":"go on"}`),
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
				msg(transcript.OpenAI, `{"role":"system","content":"S"}`),
				msg(transcript.OpenAI, `{"role":"user","content":"a"}`),
				msg(transcript.OpenAI, `{"role":"system","content":"T"}`),
			},
			[]string{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"T"}]}`},
			[]string{"role", "system message"},
		},
		{
			"images of results follow behind the last of them", transcript.Anthropic, transcript.OpenAI,
			[]pipeline.ContextItem{
				msg(transcript.Anthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",`+
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
				msg(transcript.Anthropic, `{"role":"assistant","content":[{"type":"thinking","thinking":"t",`+
					`"signature":"s"},`+
					`{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{`+
					`"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}`),
				msg(transcript.Anthropic, `{"role":"assistant","content":[{"type":"compaction","content":"c"},{`+
					`"type":"text",`+
					`"text":"a"}]}`),
				msg(transcript.Anthropic, `{"role":"user","content":[{"type":"document","source":{"type":"base64",`+
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
				msg(transcript.OpenAI, `{"role":"user","content":[{"type":"image_url","image_url":"https://x/a.png"},{`+
					`"type":"image_url","image_url":{"url":"ftp://x"}},{"type":"file","file":{"filename":"f.pdf",`+
					`"file_data":"AAAA"}},{"type":"file","file":{"file_id":"x"}}]}`),
				msg(transcript.OpenAI, `{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{`+
					`"name":"f",`+
					`"arguments":{"a":1}}}]}`),
				msg(transcript.OpenAI, `{"role":"tool","tool_call_id":"","content":[{"type":"text","text":"a"},{`+
					`"type":"text","text":" "},{"type":"text","text":"b"}]}`),
				msg(transcript.OpenAI, `{"role":"tool","tool_call_id":"stray","content":[{"type":"text","text":" "},{`+
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
				msg(transcript.OpenAI, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{`+
					`"name":"f",`+
					`"arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
				msg(transcript.OpenAI, `{"role":"tool","tool_call_id":"a","content":"1"}`),
				msg(transcript.OpenAI, `{"role":"tool","tool_call_id":"a","content":"2"}`),
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
				msg(transcript.Anthropic, `{"role":"user","content":[{"type":"image","source":{"type":"base64",`+
					`"media_type":"image/png","data":"AA\r\nAA"}},{"type":"image","source":{"type":"file",`+
					`"file_id":"f"}},{"type":"image"}]}`),
			},
			[]string{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
				`AAAA"}},{"type":"text","text":"[image omitted]"},{"type":"text","text":"[image omitted]"}]}`},
			[]string{"image", "image"},
		},
		{
			"halves of characters", transcript.ClaudeCode, transcript.Anthropic,
			[]pipeline.ContextItem{msg(transcript.ClaudeCode,
				userLine(`cut \ud83d \ude00 \ud83d\ude00 \\ud83d `+"\xff", "1"))},
			[]string{`{"role":"user","content":[{"type":"text","text":"cut \ufffd \ufffd \ud83d\ude00 \\ud83d ` +
				"\ufffd" + `"}]}`},
			[]string{"broken characters"},
		},
		{
			"edits are done first, blank text is left out", transcript.ClaudeCode, transcript.Anthropic,
			[]pipeline.ContextItem{
				{
					Message: msg(transcript.ClaudeCode, userLine("long", "1")).Message,
					Edits:   []pipeline.Edit{replace(0, -1, "short")},
				},
				{
					Message: msg(transcript.ClaudeCode, userLine("gone", "2")).Message,
					Edits:   []pipeline.Edit{drop(0, -1)},
				},
				msg(transcript.ClaudeCode, userLine(` \n`, "3")),
			},
			[]string{`{"role":"user","content":[{"type":"text","text":"short"}]}`},
			nil,
		},
		{
			"the same format: the same bytes", transcript.Anthropic, transcript.Anthropic,
			[]pipeline.ContextItem{
				msg(transcript.Anthropic, `{ "role" : "user", "content":"a" }`),
				msg(transcript.Anthropic, `{"role":"user","content":"b"}`),
			},
			[]string{`{ "role" : "user", "content":"a" }`, `{"role":"user","content":"b"}`},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
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
			if !slices.Equal(got, c.out) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.out, "\n"))
			}
			if !slices.Equal(lost, c.losses) {
				t.Errorf("lost %q, want %q", lost, c.losses)
			}
		})
	}
	if _, _, err := convert.Messages(nil, transcript.Anthropic, transcript.ClaudeCode); err == nil ||
		!strings.Contains(err.Error(), "no way leads") {
		t.Errorf("to claude-code: %v", err)
	}
	if _, _, err := convert.Messages(nil, "word", transcript.Anthropic); err == nil {
		t.Error("a format that there is not is converted")
	}
	if _, _, err := convert.Messages([]pipeline.ContextItem{{}}, transcript.OpenAI, transcript.Anthropic); err == nil ||
		!strings.Contains(err.Error(), "entry 0") {
		t.Errorf("an empty entry: %v", err)
	}
}
