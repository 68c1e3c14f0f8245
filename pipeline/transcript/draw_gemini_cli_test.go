package transcript_test

import (
	"strings"

	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

func init() { drawn[transcript.GeminiCLI] = drawEntry }

// drawEntry draws a valid entry of a session as the store has it, with unusual blanks.
func drawEntry() *rapid.Generator[[]byte] {
	text := rapid.SampledFrom([]string{`"a"`, `"\u0000\ud800"`, `"<b> é"`, `"two\nlines"`})
	part := rapid.OneOf(text, rapid.Map(text, func(s string) string { return `{ "text": ` + s + `}` }),
		rapid.Just(`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`))
	list := func(g *rapid.Generator[string], min, max int) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(g, min, max),
			func(all []string) string { return "[ " + strings.Join(all, " , ") + " ]" })
	}
	response := rapid.Map(text, func(s string) string {
		return `{"functionResponse":{"id":"c","name":"f","response":{"output": ` + s + `}}}`
	})
	result := rapid.OneOf(text, response, list(response, 1, 1), rapid.Map(response, func(s string) string {
		return `[` + s + ` , {"inlineData":{"mimeType":"image/png","data":"AAAA"}}]`
	}))
	call := rapid.Just(`{"id":"c","name":"f","args":{"n":9007199254740993}, "result":[] ,"status":"success"}`)
	results := list(rapid.Map(result, func(s string) string { return `{"id":"c","name":"f","result": ` + s + `}` }), 1,
		3)
	thoughts := list(rapid.Just(`{"subject":"s","description":"d"}`), 0, 2)
	return rapid.Custom(func(t *rapid.T) []byte {
		switch rapid.SampledFrom([]string{"user", "gemini", "results"}).Draw(t, "type") {
		case "user":
			content := rapid.OneOf(text, list(part, 1, 4)).Draw(t, "content")
			return []byte(`{"id":"m", "type":"user" ,"content": ` + content + `}`)
		case "gemini":
			return []byte(`{"id":"m","type":"gemini","content":` +
				rapid.OneOf(text, rapid.Just(`""`), list(part, 0, 3)).Draw(t, "content") +
				` , "thoughts": ` + thoughts.Draw(t, "thoughts") + `,"toolCalls":` + list(call, 0, 3).Draw(t, "calls") +
				` }`)
		}
		return []byte(`{"type":"toolResults","of":"m","toolCalls": ` + results.Draw(t, "results") + `}`)
	})
}
