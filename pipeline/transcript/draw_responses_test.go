package transcript_test

import (
	"strings"

	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

func init() {
	drawn[transcript.OpenAIResponses] = func() *rapid.Generator[[]byte] {
		return rapid.Map(drawItem(), func(s string) []byte { return []byte(s) })
	}
}

// drawItem draws a valid item, with unusual blanks, but none of the vendor's own tools: their call and result are one
// item, which is removed only as a whole.
func drawItem() *rapid.Generator[string] {
	text := rapid.SampledFrom([]string{`"a"`, `"\u0000\ud800"`, `"<b> é"`, `"two\nlines"`})
	input := rapid.Map(text, func(s string) string { return `{"type":"input_text", "text" : ` + s + ` }` })
	output := rapid.Map(text, func(s string) string {
		return `{"type":"output_text","annotations":[], "text":` + s +
			`}`
	})
	media := rapid.SampledFrom([]string{
		`{"type":"input_image","image_url":"data:image/png;base64,AAAA", "detail":"auto"}`,
		`{"type":"input_file","filename":"a.pdf","file_data":"AAAA"}`,
		`{"type":"input_image","file_id":"f"}`,
	})
	list := func(g *rapid.Generator[string], min, max int) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(g, min, max),
			func(all []string) string { return "[ " + strings.Join(all, " , ") + " ]" })
	}
	item := func(head string, content *rapid.Generator[string], tail string) *rapid.Generator[string] {
		return rapid.Map(content, func(c string) string { return head + c + tail })
	}
	arguments := rapid.SampledFrom([]string{`"{\"n\": 9007199254740993}"`, `"not json"`, `""`})
	return rapid.OneOf(
		item(`{ "role":"user" , "content": `, text, `}`),
		item(`{ "type":"message","role":"user","content":`, list(rapid.OneOf(input, media), 1, 4), ` }`),
		item(`{"type":"message","id":"m","status":"completed","role":"assistant", "content":`, list(output, 1, 3), `}`),
		item(`{"type":"function_call","call_id":"c","name":"f","arguments":`, arguments, `,"id":"fc"}`),
		item(`{"call_id":"c","type":"custom_tool_call","name":"f","input": `, text, `}`),
		item(`{"type":"function_call_output","call_id":"c","output":`,
			rapid.OneOf(text, list(rapid.OneOf(input, media), 0, 3)), `}`),
		item(`{"type":"custom_tool_call_output","output":`, text, `,"call_id":"c"}`),
		item(`{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":`, text,
			`}],"encrypted_content":"gAAA"}`),
		rapid.Just(`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"o","stderr":"e","outcome":{`+
			`"type":"exit","exit_code":0}}]}`),
		rapid.Just(`{"type":"compaction","encrypted_content":"gAAA"}`),
	)
}
