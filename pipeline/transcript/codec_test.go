package transcript

import (
	"strings"
	"testing"

	"precis/pipeline"
)

// Messages of odd but real shapes, and what they mean.
func TestDecode(t *testing.T) {
	t.Parallel()
	attachment := func(attachment string) string {
		return `{"parentUuid":"p","type":"attachment","attachment":` + attachment + `,"uuid":"q"}`
	}
	for _, c := range []struct {
		name   string
		format Format
		in     string
		want   string // as dumpMessage has it, without the native
	}{
		{
			"a bare string among blocks", Anthropic, `{"role":"user","content":["a",{"type":"text","text":"b"}]}`,
			`message user|text text="a"|text type="text" text="b"`,
		},
		{"no content", Anthropic, `{"role":"user","content":[]}`, `message user/reminder`},
		{"blank", Anthropic, `{"role":"user","content":" \n"}`, `message user/reminder|text text=" \n"`},
		{
			"a text block without text", Anthropic, `{"role":"user","content":[{"type":"text","text":7}]}`,
			`message user|opaque type="text"`,
		},
		{"a block without a type", Anthropic, `{"role":"assistant","content":[{"x":1}]}`, `message assistant|opaque`},
		{
			"an image without a source", Anthropic, `{"role":"user","content":[{"type":"image"}]}`,
			`message user|image type="image"`,
		},
		{
			"a plain document", Anthropic, `{"role":"user","content":[{"type":"document","source":{"type":"text",` +
				`"media_type":"text/plain","data":"né"}}]}`,
			`message user|file type="document" text="n\u00e9" media="text/plain" 3 bytes 0×0`,
		},
		{"the error of a server tool", Anthropic, `{"role":"assistant","content":[{` +
			`"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error",` +
			`"error_code":"x"}}]}`, `message assistant|tool_result type="web_search_tool_result" call="s" error|  ` +
			`opaque type="web_search_tool_result_error"`},
		{
			"a result of a kind that is not known yet", Anthropic,
			`{"role":"user","content":[{"type":"new_tool_result","tool_use_id":"n","content":"r"}]}`,
			`message tool|tool_result type="new_tool_result" call="n"|  text text="r"`,
		},
		{
			"results, a reminder and a picture without a word", Anthropic, `{"role":"user","content":[{` +
				`"type":"tool_result","tool_use_id":"t"},{"type":"text",` +
				`"text":"<system-reminder>x</system-reminder>"},{"type":"image","source":{"type":"file",` +
				`"file_id":"f"}}]}`,
			`message tool|tool_result type="tool_result" call="t"|text type="text" ` +
				`text="<system-reminder>x</system-reminder>"|image type="image"`,
		},
		{"an escaped key", Anthropic, `{"r\u006fle":"user","content":"a"}`, `message user|text text="a"`},
		{
			"a system message in the middle", Anthropic, `{"role":"system","content":"s"}`,
			`message system|text text="s"`,
		},

		{"a bare string among parts", OpenAI, `{"role":"user","content":["a"]}`, `message user|text text="a"`},
		{
			"an image as its address", OpenAI,
			`{"role":"user","content":[{"type":"image_url","image_url":"https://x/a.png"}]}`,
			`message user|image type="image_url"`,
		},
		{
			"a file without a data URL", OpenAI,
			`{"role":"user","content":[{"type":"file","file":{"filename":"f","file_data":"AAAA"}}]}`,
			`message user|file type="file" name="f" 3 bytes 0×0`,
		},
		{
			"a file by its id", OpenAI, `{"role":"user","content":[{"type":"file","file":{"file_id":"x"}}]}`,
			`message user|file type="file"`,
		},
		{
			"a refusal among parts", OpenAI, `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
			`message assistant|text type="refusal" text="no"`,
		},
		{
			"a part that is not known", OpenAI, `{"role":"user","content":[{"type":"video_url","video_url":{}}]}`,
			`message user|opaque type="video_url"`,
		},
		{
			"arguments that are an object", OpenAI, `{"role":"assistant","tool_calls":[{"id":"c","type":"function",` +
				`"function":{"name":"f","arguments":{"a":1}}}]}`,
			`message assistant|tool_call type="function" call="c" name="f" input="{\"a\":1}"`,
		},
		{
			"a call without a function", OpenAI, `{"role":"assistant","tool_calls":[{"id":"c"}]}`,
			`message assistant|tool_call call="c"`,
		},
		{
			"reasoning under its other name", OpenAI, `{"role":"assistant","reasoning":"r","content":"a"}`,
			`message assistant|reasoning text="r"|text text="a"`,
		},
		{"nothing said", OpenAI, `{"role":"assistant","content":null}`, `message assistant`},

		{"what was typed meanwhile, in blocks", ClaudeCode, attachment(`{"type":"queued_command","prompt":[{` +
			`"type":"text","text":"and"},{"type":"image","source":{"type":"base64","media_type":"image/png",` +
			`"data":"AAAA"}}]}`), `message user id=q|text type="text" text="and"|image type="image" ` +
			`media="image/png" 3 bytes 0×0`},
		{
			"a thought of which only the signature is left", ClaudeCode, `{"type":"assistant","uuid":"a","message":{` +
				`"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}}`,
			`message assistant id=a|reasoning type="thinking"`,
		},
		{
			"a reminder beside what was said", ClaudeCode, `{"type":"user","uuid":"a","message":{"role":"user",` +
				`"content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"image",` +
				`"source":{}}]}}`,
			`message user id=a|text type="text" text="<system-reminder>x</system-reminder>"|image type="image"`,
		},
	} {
		codec, err := CodecFor(c.format)
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
		format Format
		in     string
		err    string
	}{
		{Anthropic, ``, "ends in the middle"},
		{Anthropic, `{} {}`, "something follows"},
		{Anthropic, `[]`, "it is no object"},
		{Anthropic, `{"role":"user"}`, "it has no content"},
		{Anthropic, `{"role":"user","content":7}`, "neither a string nor an array of blocks"},
		{Anthropic, `{"role":"user","content":[7]}`, "a content block is no object"},
		{Anthropic, `{"role":"user","content":[{"tool_use_id":"t","content":[7]}]}`, "a content block is no object"},
		{Anthropic, `{"role":7,"content":"a"}`, "it has no role"},
		{OpenAI, `7`, "it is no object"},
		{OpenAI, `{"role":"user","content":{}}`, "neither a string nor an array of parts"},
		{OpenAI, `{"role":"user","content":[7]}`, "a part of its content is no object"},
		{OpenAI, `{"role":"tool","content":{}}`, "neither a string nor an array of parts"},
		{OpenAI, `{"role":"assistant","tool_calls":[7]}`, "a tool call is no object"},
		{OpenAI, `{"content":"a"}`, "it has no role"},
		{OpenAI, `{"role":"exit","content":"a"}`, "its role is not system"},
		{OpenAI, `{`, "ends in the middle"},
		{ClaudeCode, ` `, "it is empty"},
		{ClaudeCode, `[]`, "a record is no object"},
		{ClaudeCode, `{`, "ends in the middle"},
		{ClaudeCode, `{"type":"system"}`, `a record of type "system" is no message`},
		{ClaudeCode, `{"type":"user","message":"x"}`, "a user record has no message"},
		{
			ClaudeCode, `{"type":"user","message":{"role":"assistant","content":"x"}}`,
			"a user record has a message of another role",
		},
		{
			ClaudeCode, `{"type":"attachment","attachment":{"type":"queued_command","prompt":7}}`,
			`a record of type "attachment" is no message`,
		},
		{
			ClaudeCode, `{"type":"attachment","attachment":{"type":"queued_command","prompt":[7]}}`,
			"a content block is no object",
		},
	} {
		codec, _ := CodecFor(c.format)
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
	for i := range 3 * maxNoteKinds {
		b.WriteString("\n" + `{"type":"made-up-` + strings.Repeat("x", i) + `","sessionId":"s"}`)
	}
	all, err := items(t, strings.NewReader(b.String()), Options{})
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
	if kinds != maxNoteKinds+1 || total != 3*maxNoteKinds {
		t.Errorf("%d notes count %d records", kinds, total)
	}
}
