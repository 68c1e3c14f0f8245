package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// codecOf returns the codec of a format.
func codecOf(t *testing.T, f transcript.Format) transcript.Codec {
	t.Helper()
	c, err := transcript.CodecFor(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func replace(part, content int, text string) pipeline.Edit {
	return pipeline.Edit{Part: part, Content: content, Op: pipeline.EditReplace, Text: text}
}

func drop(part, content int) pipeline.Edit {
	return pipeline.Edit{Part: part, Content: content, Op: pipeline.EditDrop}
}

// A record line around an Anthropic message, and what a line looks like without its message.
const (
	lineHead = `{"parentUuid":"p", "type":"%s","message":`
	lineTail = `,"toolUseResult":{"stdout":"ok"},"uuid":"u"}`
)

func TestEncodeWithEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		format transcript.Format
		in     string
		edits  []pipeline.Edit
		out    string // empty: nothing is left
	}{
		{
			"a text block", transcript.Anthropic,
			`{ "role":"user", "content":[ {"type":"text", "text":"a\u0000", "cache_control":{"type":"ephemeral"}} ` +
				`, {"type":"text","text":"b"} ] }`,
			[]pipeline.Edit{replace(0, -1, "x <y>")},
			`{ "role":"user", "content":[ {"type":"text", "text":"x <y>", "cache_control":{"type":"ephemeral"}} , ` +
				`{"type":"text","text":"b"} ] }`,
		},
		{
			"a plain string", transcript.Anthropic,
			`{"content":"long","role":"user"}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"content":"short","role":"user"}`,
		},
		{
			"a result as a whole: id, flag and unknown keys stay", transcript.Anthropic,
			`{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text",` +
				`"text":"a"}],"is_error":true,"x":{"n":9007199254740993}}]}`,
			[]pipeline.Edit{replace(0, -1, "gone")},
			`{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"gone","is_error":true,` +
				`"x":{"n":9007199254740993}}]}`,
		},
		{
			"a result without content", transcript.Anthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1" }]}`,
			[]pipeline.Edit{replace(0, -1, "none")},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1" ,"content":"none"}]}`,
		},
		{
			"an image inside of a result becomes text", transcript.Anthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
				`"text":"a"}, {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}`,
			[]pipeline.Edit{replace(0, 1, "[binary omitted: ~1 KB]")},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
				`"text":"a"}, {"type":"text","text":"[binary omitted: ~1 KB]"}]}]}`,
		},
		{
			"a text inside of a result that is a plain string", transcript.Anthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"abc"}]}`,
			[]pipeline.Edit{replace(0, 0, "a…")},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a…"}]}`,
		},
		{
			"all content of a result dropped", transcript.Anthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
				`"text":"a"},{"type":"text","text":"b"}]}]}`,
			[]pipeline.Edit{drop(0, 0), drop(0, 1)},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":""}]}`,
		},
		{
			"a plain result dropped", transcript.Anthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"abc"}]}`,
			[]pipeline.Edit{drop(0, 0)},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":""}]}`,
		},
		{
			"an edit of the whole result beats those of its content, the later one the earlier", transcript.Anthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
				`"text":"a"}]}]}`,
			[]pipeline.Edit{replace(0, -1, "first"), replace(0, 0, "inner"), replace(0, -1, "last")},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"last"}]}`,
		},
		{
			"reasoning dropped", transcript.Anthropic,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}, {"type":"text",` +
				`"text":"a"}, {"type":"redacted_thinking","data":"d"}]}`,
			[]pipeline.Edit{drop(0, -1), drop(2, -1)},
			`{"role":"assistant","content":[{"type":"text","text":"a"}]}`,
		},
		{
			"everything dropped", transcript.Anthropic,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}`,
			[]pipeline.Edit{drop(0, -1)},
			``,
		},
		{
			"a plain string dropped", transcript.Anthropic,
			`{"role":"user","content":"x"}`,
			[]pipeline.Edit{drop(0, -1)},
			``,
		},
		{
			"a text replaced by nothing goes: no API takes an empty block", transcript.Anthropic,
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			[]pipeline.Edit{replace(0, -1, "")},
			`{"role":"user","content":[{"type":"text","text":"b"}]}`,
		},
		{
			"a document", transcript.Anthropic,
			`{"role":"user","content":[{"type":"document","source":{"type":"base64",` +
				`"media_type":"application/pdf","data":"AAAA"}}]}`,
			[]pipeline.Edit{replace(0, -1, "[a PDF]")},
			`{"role":"user","content":[{"type":"text","text":"[a PDF]"}]}`,
		},
		{
			"the input of a call", transcript.Anthropic,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{"a":"long"}}]}`,
			[]pipeline.Edit{replace(0, -1, `{"a":"s"}`)},
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{"a":"s"}}]}`,
		},
		{
			"what a server tool gave has a shape of its own and stays", transcript.Anthropic,
			`{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s1","content":[{` +
				`"type":"web_search_result","url":"u"}]}]}`,
			[]pipeline.Edit{replace(0, -1, "x"), replace(0, 0, "y")},
			`{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s1","content":[{` +
				`"type":"web_search_result","url":"u"}]}]}`,
		},
		{
			"of keys that stand twice the one that counts", transcript.Anthropic,
			`{"role":"user","content":"a","content":"b"}`,
			[]pipeline.Edit{replace(0, -1, "c")},
			`{"role":"user","content":"a","content":"c"}`,
		},
		{
			"a plain string", transcript.OpenAI,
			`{"role":"user","content":"a","name":"n"}`,
			[]pipeline.Edit{replace(0, -1, "b")},
			`{"role":"user","content":"b","name":"n"}`,
		},
		{
			"a tool message", transcript.OpenAI,
			`{"role":"tool", "content":"long", "tool_call_id":"c1"}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"role":"tool", "content":"short", "tool_call_id":"c1"}`,
		},
		{
			"a tool message in parts, as a whole", transcript.OpenAI,
			`{"role":"tool","content":[{"type":"text","text":"a"}],"tool_call_id":"c1"}`,
			[]pipeline.Edit{replace(0, -1, "short")},
			`{"role":"tool","content":"short","tool_call_id":"c1"}`,
		},
		{
			"a part of a tool message", transcript.OpenAI,
			`{"role":"tool","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_call_id":"c1"}`,
			[]pipeline.Edit{replace(0, 1, "c"), drop(0, 0)},
			`{"role":"tool","content":[{"type":"text","text":"c"}],"tool_call_id":"c1"}`,
		},
		{
			"the content of a tool message dropped", transcript.OpenAI,
			`{"role":"tool","content":"a","tool_call_id":"c1"}`,
			[]pipeline.Edit{drop(0, 0)},
			`{"role":"tool","content":"","tool_call_id":"c1"}`,
		},
		{
			"a tool message dropped", transcript.OpenAI,
			`{"role":"tool","content":"a","tool_call_id":"c1"}`,
			[]pipeline.Edit{drop(0, -1)},
			``,
		},
		{
			"the text beside calls dropped", transcript.OpenAI,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"c1","type":"function","function":{"name":"f",` +
				`"arguments":"{}"}}]}`,
			[]pipeline.Edit{drop(0, -1)},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f",` +
				`"arguments":"{}"}}]}`,
		},
		{
			"one call of two dropped", transcript.OpenAI,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f",` +
				`"arguments":"{}"}}, {"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			[]pipeline.Edit{drop(0, -1)},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"f",` +
				`"arguments":"{}"}}]}`,
		},
		{
			"all calls dropped: their key goes with them", transcript.OpenAI,
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{` +
				`}"}}], "content":"a"}`,
			[]pipeline.Edit{drop(1, -1)},
			`{"role":"assistant", "content":"a"}`,
		},
		{
			"the arguments of a call", transcript.OpenAI,
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{` +
				`\"a\": 1}"}}]}`,
			[]pipeline.Edit{replace(0, -1, `{"a": 2}`)},
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{` +
				`\"a\": 2}"}}]}`,
		},
		{
			"reasoning dropped", transcript.OpenAI,
			`{"role":"assistant","reasoning_content":"r","content":"a"}`,
			[]pipeline.Edit{drop(0, -1)},
			`{"role":"assistant","content":"a"}`,
		},
		{
			"an image", transcript.OpenAI,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},{` +
				`"type":"text","text":"a"}]}`,
			[]pipeline.Edit{replace(0, -1, "[image]")},
			`{"role":"user","content":[{"type":"text","text":"[image]"},{"type":"text","text":"a"}]}`,
		},
		{
			"a result in a record", transcript.ClaudeCode,
			fmt.Sprintf(lineHead, "user") +
				`{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"long"}]}` + lineTail,
			[]pipeline.Edit{replace(0, -1, "short")},
			fmt.Sprintf(lineHead, "user") +
				`{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"short"}]}` + lineTail,
		},
		{
			"the record of a dropped part goes", transcript.ClaudeCode,
			fmt.Sprintf(lineHead, "assistant") +
				`{"role":"assistant","id":"m","content":[{"type":"thinking","thinking":"t","signature":"s"}]}` +
				lineTail + "\n" +
				fmt.Sprintf(lineHead, "assistant") +
				`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail,
			[]pipeline.Edit{drop(0, -1)},
			fmt.Sprintf(lineHead, "assistant") +
				`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail,
		},
		{
			"the last record of several", transcript.ClaudeCode,
			fmt.Sprintf(lineHead, "assistant") +
				`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail + "\n" +
				fmt.Sprintf(lineHead, "assistant") +
				`{"role":"assistant","id":"m","content":[{"type":"text","text":"b"}]}` + lineTail,
			[]pipeline.Edit{drop(1, -1)},
			fmt.Sprintf(lineHead, "assistant") +
				`{"role":"assistant","id":"m","content":[{"type":"text","text":"a"}]}` + lineTail,
		},
		{
			"a record that is a string, dropped", transcript.ClaudeCode,
			fmt.Sprintf(lineHead, "user") + `{"role":"user","content":"x"}` + lineTail,
			[]pipeline.Edit{drop(0, -1)},
			``,
		},
	} {
		t.Run(fmt.Sprint(c.format, "/", c.name), func(t *testing.T) {
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
			if again, err := codec.Encode(m, nil); err != nil || !bytes.Equal(again, m.Native) {
				t.Errorf("without edits: %s, %v", again, err)
			}
		})
	}
}

func TestEditsThatCannotBe(t *testing.T) {
	t.Parallel()
	in := `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use",` +
		`"id":"t","name":"n","input":{}}]}`
	m, err := codecOf(t, transcript.Anthropic).Decode([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		edit pipeline.Edit
		err  string
	}{
		{replace(2, -1, "x"), "names part 2 of a message with 2"},
		{replace(0, 0, "x"), "names content 0 of a part with 0"},
		{replace(0, -1, "x"), "reasoning is kept as it is or dropped"},
		{replace(1, -1, "x"), "must be a JSON object"},
		{replace(1, -1, `[1]`), "must be a JSON object"},
		{pipeline.Edit{Part: 1, Content: -1, Op: "paint"}, `no edit "paint"`},
	} {
		if _, err := codecOf(t, transcript.Anthropic).Encode(m, []pipeline.Edit{c.edit}); err == nil ||
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v; want %q", c.edit, err, c.err)
		}
	}
}

// Whatever is edited, what comes out is a sound message, and what was not named has its old bytes.
func TestEditsLeaveTheRestAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(transcript.Formats()).Draw(t, "format")
		codec, _ := transcript.CodecFor(f)
		native := drawMessage(f).Draw(t, "message")
		m, err := codec.Decode(native)
		if err != nil {
			t.Fatalf("%v: %s", err, native)
		}
		edits := drawEdits(m).Draw(t, "edits")
		out, err := codec.Encode(m, edits)
		if err != nil {
			t.Fatal(err)
		}
		touched, gone := map[int]bool{}, map[int]bool{}
		dropped := 0
		for i := range m.Parts {
			last := -1
			for k, e := range edits {
				if e.Part == i && e.Content < 0 {
					last = k
				}
				touched[i] = touched[i] || e.Part == i
			}
			gone[i] = last >= 0 && (edits[last].Op == pipeline.EditDrop || edits[last].Text == "" &&
				m.Parts[i].Kind != pipeline.PartToolResult)
			// Where a call and its result are one entry, the result goes with its call.
			if f == transcript.OpenCode && i > 0 && m.Parts[i].Kind == pipeline.PartToolResult && gone[i-1] {
				gone[i], touched[i] = true, true
			}
			if gone[i] {
				dropped++
			}
		}
		if dropped == len(m.Parts) {
			if len(m.Parts) > 0 && out != nil {
				t.Fatalf("nothing is left, yet there is %s", out)
			}
			return
		}
		back, err := codec.Decode(out)
		if err != nil {
			t.Fatalf("%v edits %+v of\n%s\ngave\n%s", err, edits, native, out)
		}
		if len(back.Parts) != len(m.Parts)-dropped {
			t.Fatalf("%d parts less %d are %d: edits %+v of\n%s\ngave\n%s", len(m.Parts), dropped, len(back.Parts),
				edits, native, out)
		}
		for i, p := range m.Parts {
			if !touched[i] && !slices.ContainsFunc(back.Parts,
				func(q pipeline.Part) bool { return bytes.Equal(p.Raw, q.Raw) && p.Text == q.Text }) {
				t.Fatalf("part %d was not named and is gone: edits %+v of\n%s\ngave\n%s", i, edits, native, out)
			}
		}
	})
}

func drawEdits(m pipeline.Message) *rapid.Generator[[]pipeline.Edit] {
	one := rapid.Custom(func(t *rapid.T) pipeline.Edit {
		e := pipeline.Edit{Part: rapid.IntRange(0, len(m.Parts)-1).Draw(t, "part"), Content: -1, Op: pipeline.EditDrop}
		p := m.Parts[e.Part]
		if len(p.Content) > 0 && rapid.Bool().Draw(t, "inside") {
			e.Content = rapid.IntRange(0, len(p.Content)-1).Draw(t, "content")
			p = p.Content[e.Content]
		}
		if p.Kind != pipeline.PartReasoning && rapid.Bool().Draw(t, "replace") {
			e.Op, e.Text = pipeline.EditReplace, rapid.SampledFrom([]string{"x", "<a>\n\"", ""}).Draw(t, "text")
			if p.Kind == pipeline.PartToolCall {
				e.Text = `{"short":true}`
			}
		}
		return e
	})
	if len(m.Parts) == 0 {
		return rapid.Just([]pipeline.Edit(nil))
	}
	return rapid.SliceOfN(one, 1, 4)
}

// drawn has the generators of messages for the formats that have theirs in a file of their own.
var drawn = map[transcript.Format]func() *rapid.Generator[[]byte]{}

// drawMessage draws a sound message of a format, oddly spaced.
func drawMessage(f transcript.Format) *rapid.Generator[[]byte] {
	if g, ok := drawn[f]; ok {
		return g()
	}
	text := rapid.SampledFrom([]string{`"a"`, `"\u0000\ud800"`, `"<b> é"`, `"two\nlines"`})
	textBlock := rapid.Map(text, func(s string) string { return `{"type":"text", "text":` + s + `}` })
	image := rapid.Just(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`)
	list := func(g *rapid.Generator[string], min, max int) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(g, min, max),
			func(all []string) string { return "[ " + strings.Join(all, " , ") + " ]" })
	}
	anthropicUser := rapid.OneOf(textBlock, image,
		rapid.Map(rapid.OneOf(text, list(rapid.OneOf(textBlock, image), 0, 3)), func(content string) string {
			return `{"type":"tool_result","tool_use_id":"t","content":` + content + `,"is_error":true}`
		}))
	anthropicAssistant := rapid.OneOf(textBlock,
		rapid.Just(`{"type":"thinking","thinking":"t","signature":"s"}`),
		rapid.Just(`{"type":"tool_use","id":"t","name":"n","input":{"n":9007199254740993}}`))
	message := func(role string, content *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.Map(content, func(c string) string { return `{ "role":"` + role + `" , "content": ` + c + `}` })
	}
	anthropic := rapid.OneOf(message("user", text), message("user", list(anthropicUser, 1, 4)),
		message("assistant", list(anthropicAssistant, 1, 4)))
	switch f {
	case transcript.Anthropic:
		return rapid.Map(anthropic, func(s string) []byte { return []byte(s) })
	case transcript.ClaudeCode:
		return rapid.Custom(func(t *rapid.T) []byte {
			record := func(typ, m string) string { return fmt.Sprintf(lineHead, typ) + m + lineTail }
			if rapid.Bool().Draw(t, "user") {
				return []byte(record("user", message("user", list(anthropicUser, 1, 3)).Draw(t, "message")))
			}
			var lines []string
			for range rapid.IntRange(1, 4).Draw(t, "records") {
				lines = append(lines, record("assistant",
					message("assistant", list(anthropicAssistant, 1, 2)).Draw(t, "message")))
			}
			return []byte(strings.Join(lines, "\n"))
		})
	}
	imageURL := rapid.Just(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`)
	call := rapid.Map(rapid.SampledFrom([]string{`{\"a\": 1}`, ``}), func(args string) string {
		return `{"id":"c", "type":"function","function":{"name":"f","arguments":"` + args + `"}}`
	})
	return rapid.Map(rapid.OneOf(
		message("user", text),
		message("user", list(rapid.OneOf(textBlock, imageURL), 1, 4)),
		rapid.Map(rapid.OneOf(text, list(textBlock, 1, 3)),
			func(c string) string { return `{"role":"tool","content":` + c + `, "tool_call_id":"c"}` }),
		rapid.Map(list(call, 1, 3), func(c string) string {
			return `{"tool_calls":` + c + `,"role":"assistant","content":"said","reasoning_content":"r"}`
		}),
		rapid.Map(list(call, 1, 3), func(c string) string {
			return `{"role":"assistant","content":null,"tool_calls":` +
				c + `}`
		}),
	), func(s string) []byte { return []byte(s) })
}

func TestMake(t *testing.T) {
	t.Parallel()
	summary := pipeline.Made{
		Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
		Text: "<conversation_summary>\nall</conversation_summary>",
	}
	state := pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: "todo: \"x\""}
	ask := pipeline.Made{Role: pipeline.RoleUser, Text: "summarise"}
	result := pipeline.Made{Role: pipeline.RoleTool, CallID: "t1", Name: "n", Text: "none", IsError: true}
	for _, c := range []struct {
		format transcript.Format
		made   pipeline.Made
		out    string
		err    string
	}{
		{transcript.Anthropic, summary, `{"role":"user","content":[{"type":"text",` +
			`"text":"<conversation_summary>\nall</conversation_summary>"}]}`, ""},
		{
			transcript.Anthropic, result,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"none",` +
				`"is_error":true}]}`, "",
		},
		{transcript.Anthropic, pipeline.Made{Role: pipeline.RoleSystem, Text: "s"}, "", "stands beside them"},
		{transcript.Anthropic, pipeline.Made{Role: pipeline.RoleUser, Text: " \n"}, "", "has no text"},
		{transcript.OpenAI, state, `{"role":"user","content":"todo: \"x\""}`, ""},
		{transcript.OpenAI, result, `{"role":"tool","tool_call_id":"t1","content":"none"}`, ""},
		{transcript.OpenAI, pipeline.Made{Role: pipeline.RoleSystem, Text: "s"}, `{"role":"system","content":"s"}`, ""},
		{transcript.OpenAI, pipeline.Made{Role: pipeline.RoleUser}, "", "has no text"},
		{transcript.ClaudeCode, summary, `{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user",` +
			`"message":{"role":"user","content":"<conversation_summary>\nall</conversation_summary>"},` +
			`"isVisibleInTranscriptOnly":true,"isCompactSummary":true,"uuid":""}`, ""},
		{transcript.ClaudeCode, state, `{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user",` +
			`"message":{"role":"user","content":"todo: \"x\""},"isMeta":true,"uuid":""}`, ""},
		{transcript.ClaudeCode, ask, `{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user",` +
			`"message":{` +
			`"role":"user","content":"summarise"},"uuid":""}`, ""},
		{transcript.ClaudeCode, result, `{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user",` +
			`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"none",` +
			`"is_error":true}]},"uuid":""}`, ""},
		{transcript.ClaudeCode, pipeline.Made{Role: pipeline.RoleAssistant, Text: "x"}, "", "none can be made"},
	} {
		codec, err := transcript.CodecFor(c.format)
		if err != nil {
			t.Fatal(err)
		}
		out, err := codec.Make(c.made)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %+v: %v; want %q", c.format, c.made, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := c.out
		if c.format == transcript.ClaudeCode { // the uuid is a hash: only that it is the same every time matters
			again, _ := codec.Make(c.made)
			if !bytes.Equal(out, again) {
				t.Errorf("made twice: %s and %s", out, again)
			}
			want = want[:strings.LastIndex(want, `"uuid"`)]
		}
		if !strings.HasPrefix(string(out), want) || !json.Valid(out) {
			t.Errorf("%s: got  %s\nwant %s", c.format, out, want)
		}
		m, err := codec.Decode(out)
		if err != nil || m.Role != c.made.Role {
			t.Errorf("%s: read back it has role %q: %v", c.format, m.Role, err)
		}
	}
}
