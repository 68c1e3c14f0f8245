package transcript_test

import (
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// Messages of odd but real shapes, and what they mean.
func TestDecode(t *testing.T) {
	t.Parallel()
	attachment := func(attachment string) string {
		return `{"parentUuid":"p","type":"attachment","attachment":` + attachment + `,"uuid":"q"}`
	}
	for _, c := range []struct {
		name   string
		format transcript.Format
		in     string
		want   string // as dumpMessage has it, without the native
	}{
		{
			"a bare string among blocks", transcript.Anthropic,
			`{"role":"user","content":["a",{"type":"text","text":"b"}]}`,
			`message user|text text="a"|text type="text" text="b"`,
		},
		{"no content", transcript.Anthropic, `{"role":"user","content":[]}`, `message user/reminder`},
		{"blank", transcript.Anthropic, `{"role":"user","content":" \n"}`, `message user/reminder|text text=" \n"`},
		{
			"a text block without text", transcript.Anthropic, `{"role":"user","content":[{"type":"text","text":7}]}`,
			`message user|opaque type="text"`,
		},
		{
			"a block without a type", transcript.Anthropic, `{"role":"assistant","content":[{"x":1}]}`,
			`message assistant|opaque`,
		},
		{
			"an image without a source", transcript.Anthropic, `{"role":"user","content":[{"type":"image"}]}`,
			`message user|image type="image"`,
		},
		{
			"a plain document", transcript.Anthropic,
			`{"role":"user","content":[{"type":"document","source":{"type":"text",` +
				`"media_type":"text/plain","data":"né"}}]}`,
			`message user|file type="document" text="n\u00e9" media="text/plain" 3 bytes 0×0`,
		},
		{"the error of a server tool", transcript.Anthropic, `{"role":"assistant","content":[{` +
			`"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error",` +
			`"error_code":"x"}}]}`, `message assistant|tool_result type="web_search_tool_result" call="s" error|  ` +
			`opaque type="web_search_tool_result_error"`},
		{
			"a result of a kind that is not known yet", transcript.Anthropic,
			`{"role":"user","content":[{"type":"new_tool_result","tool_use_id":"n","content":"r"}]}`,
			`message tool|tool_result type="new_tool_result" call="n"|  text text="r"`,
		},
		{
			"results, a reminder and a picture without a word", transcript.Anthropic, `{"role":"user","content":[{` +
				`"type":"tool_result","tool_use_id":"t"},{"type":"text",` +
				`"text":"<system-reminder>x</system-reminder>"},{"type":"image","source":{"type":"file",` +
				`"file_id":"f"}}]}`,
			`message tool|tool_result type="tool_result" call="t"|text type="text" ` +
				`text="<system-reminder>x</system-reminder>"|image type="image"`,
		},
		{"an escaped key", transcript.Anthropic, `{"r\u006fle":"user","content":"a"}`, `message user|text text="a"`},
		{
			"a system message in the middle", transcript.Anthropic, `{"role":"system","content":"s"}`,
			`message system|text text="s"`,
		},

		{
			"a bare string among parts", transcript.OpenAI, `{"role":"user","content":["a"]}`,
			`message user|text text="a"`,
		},
		{
			"an image as its address", transcript.OpenAI,
			`{"role":"user","content":[{"type":"image_url","image_url":"https://x/a.png"}]}`,
			`message user|image type="image_url"`,
		},
		{
			"a file without a data URL", transcript.OpenAI,
			`{"role":"user","content":[{"type":"file","file":{"filename":"f","file_data":"AAAA"}}]}`,
			`message user|file type="file" name="f" 3 bytes 0×0`,
		},
		{
			"a file by its id", transcript.OpenAI, `{"role":"user","content":[{"type":"file","file":{"file_id":"x"}}]}`,
			`message user|file type="file"`,
		},
		{
			"a refusal among parts", transcript.OpenAI,
			`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
			`message assistant|text type="refusal" text="no"`,
		},
		{
			"a part that is not known", transcript.OpenAI,
			`{"role":"user","content":[{"type":"video_url","video_url":{}}]}`, `message user|opaque type="video_url"`,
		},
		{
			"arguments that are an object", transcript.OpenAI,
			`{"role":"assistant","tool_calls":[{"id":"c","type":"function",` +
				`"function":{"name":"f","arguments":{"a":1}}}]}`,
			`message assistant|tool_call type="function" call="c" name="f" input="{\"a\":1}"`,
		},
		{
			"a call without a function", transcript.OpenAI, `{"role":"assistant","tool_calls":[{"id":"c"}]}`,
			`message assistant|tool_call call="c"`,
		},
		{
			"reasoning under its other name", transcript.OpenAI, `{"role":"assistant","reasoning":"r","content":"a"}`,
			`message assistant|reasoning text="r"|text text="a"`,
		},
		{"nothing said", transcript.OpenAI, `{"role":"assistant","content":null}`, `message assistant`},

		{
			"what was typed meanwhile, in blocks", transcript.ClaudeCode,
			attachment(`{"type":"queued_command","prompt":[{` +
				`"type":"text","text":"and"},{"type":"image","source":{"type":"base64","media_type":"image/png",` +
				`"data":"AAAA"}}]}`), `message user id=q|text type="text" text="and"|image type="image" ` +
				`media="image/png" 3 bytes 0×0`,
		},
		{
			"a thought of which only the signature is left", transcript.ClaudeCode,
			`{"type":"assistant","uuid":"a","message":{` +
				`"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}}`,
			`message assistant id=a|reasoning type="thinking"`,
		},
		{
			"a reminder beside what was said", transcript.ClaudeCode,
			`{"type":"user","uuid":"a","message":{"role":"user",` +
				`"content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"image",` +
				`"source":{}}]}}`,
			`message user id=a|text type="text" text="<system-reminder>x</system-reminder>"|image type="image"`,
		},
	} {
		codec, err := transcript.CodecFor(c.format)
		if err != nil || codec.Format() != c.format {
			t.Fatalf("the codec of %s is of %s: %v", c.format, codec.Format(), err)
		}
		m, err := codec.Decode([]byte(c.in))
		if err != nil {
			t.Errorf("%s/%s: %v", c.format, c.name, err)
			continue
		}
		got, _, _ := strings.Cut(dumpMessage(m), "\n  = ")
		if got = strings.ReplaceAll(got, "\n  ", "|"); got != c.want {
			t.Errorf("%s/%s:\ngot  %s\nwant %s", c.format, c.name, got, c.want)
		}
		checkMessage(t, c.format, m)
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format transcript.Format
		in     string
		err    string
	}{
		{transcript.Anthropic, ``, "ends in the middle"},
		{transcript.Anthropic, `{} {}`, "something follows"},
		{transcript.Anthropic, `[]`, "it is no object"},
		{transcript.Anthropic, `{"role":"user"}`, "it has no content"},
		{transcript.Anthropic, `{"role":"user","content":7}`, "neither a string nor an array of blocks"},
		{transcript.Anthropic, `{"role":"user","content":[7]}`, "a content block is no object"},
		{
			transcript.Anthropic, `{"role":"user","content":[{"tool_use_id":"t","content":[7]}]}`,
			"a content block is no object",
		},
		{transcript.Anthropic, `{"role":7,"content":"a"}`, "it has no role"},
		{transcript.OpenAI, `7`, "it is no object"},
		{transcript.OpenAI, `{"role":"user","content":{}}`, "neither a string nor an array of parts"},
		{transcript.OpenAI, `{"role":"user","content":[7]}`, "a part of its content is no object"},
		{transcript.OpenAI, `{"role":"tool","content":{}}`, "neither a string nor an array of parts"},
		{transcript.OpenAI, `{"role":"assistant","tool_calls":[7]}`, "a tool call is no object"},
		{transcript.OpenAI, `{"content":"a"}`, "it has no role"},
		{transcript.OpenAI, `{"role":"exit","content":"a"}`, "its role is not system"},
		{transcript.OpenAI, `{`, "ends in the middle"},
		{transcript.ClaudeCode, ` `, "it is empty"},
		{transcript.ClaudeCode, `[]`, "a record is no object"},
		{transcript.ClaudeCode, `{`, "ends in the middle"},
		{transcript.ClaudeCode, `{"type":"system"}`, `a record of type "system" is no message`},
		{transcript.ClaudeCode, `{"type":"user","message":"x"}`, "a user record has no message"},
		{
			transcript.ClaudeCode, `{"type":"user","message":{"role":"assistant","content":"x"}}`,
			"a user record has a message of another role",
		},
		{
			transcript.ClaudeCode, `{"type":"attachment","attachment":{"type":"queued_command","prompt":7}}`,
			`a record of type "attachment" is no message`,
		},
		{
			transcript.ClaudeCode, `{"type":"attachment","attachment":{"type":"queued_command","prompt":[7]}}`,
			"a content block is no object",
		},
	} {
		codec, _ := transcript.CodecFor(c.format)
		_, err := codec.Decode([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.err) || pipeline.KindOf(err) != pipeline.BadRequest {
			t.Errorf("%s %s: %v; want %q", c.format, c.in, err, c.err)
		}
		if out, err := codec.Encode(pipeline.Message{Native: []byte(c.in)}, []pipeline.Edit{drop(0, -1)}); err == nil {
			t.Errorf("%s %s: edited it is %s", c.format, c.in, out)
		}
	}
}

// A file that makes up names is not given memory for each of them.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(userLine("a", "1"))
	for i := range 3 * transcript.MaxNoteKinds {
		b.WriteString("\n" + `{"type":"made-up-` + strings.Repeat("x", i) + `","sessionId":"s"}`)
	}
	all, err := items(t, strings.NewReader(b.String()), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kinds, total := 0, 0
	for _, it := range all {
		if it.Note != nil {
			kinds++
			total += it.Note.Count
		}
	}
	if kinds != transcript.MaxNoteKinds+1 || total != 3*transcript.MaxNoteKinds {
		t.Errorf("%d notes count %d records", kinds, total)
	}
}
