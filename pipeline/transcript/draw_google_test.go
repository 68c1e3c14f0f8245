package transcript_test

import (
	"strings"

	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

func init() { drawn[transcript.Google] = drawContent }

// drawContent draws a valid Content, with unusual blanks.
func drawContent() *rapid.Generator[[]byte] {
	text := rapid.SampledFrom([]string{`"a"`, `"\u0000\ud800"`, `"<b> é"`, `"two\nlines"`})
	textPart := rapid.Map(text, func(s string) string { return `{ "text" : ` + s + ` }` })
	image := rapid.SampledFrom([]string{
		`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`,
		`{"inline_data":{"mime_type":"image/png","data":"AAAA"}}`,
		`{"fileData":{"mimeType":"application/pdf","fileUri":"https://x"}}`,
	})
	list := func(g *rapid.Generator[string], min, max int) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(g, min, max),
			func(all []string) string { return "[ " + strings.Join(all, " , ") + " ]" })
	}
	response := rapid.OneOf(
		rapid.Map(text, func(s string) string { return `{"output": ` + s + `}` }),
		rapid.Map(text, func(s string) string { return `{"error":` + s + ` }` }),
		rapid.Just(`{"files":["a"],"n":9007199254740993}`), rapid.Just(`{}`),
	)
	result := rapid.Custom(func(t *rapid.T) string {
		s := `{"functionResponse":{"name":"f", "response" : ` + response.Draw(t, "response")
		if rapid.Bool().Draw(t, "media") {
			s += `, "parts":` + list(image, 1, 2).Draw(t, "parts")
		}
		return s + `,"id":"r"}}`
	})
	model := rapid.OneOf(textPart,
		rapid.Just(`{"text":"t","thought":true,"thoughtSignature":"c2ln"}`),
		rapid.Just(`{"functionCall":{"name":"f","args":{"n":9007199254740993}}, "thoughtSignature":"c2ln"}`),
		rapid.Just(`{"function_call":{"name":"f"}}`))
	content := func(role string, parts *rapid.Generator[string]) *rapid.Generator[[]byte] {
		return rapid.Map(parts, func(p string) []byte {
			return []byte(`{ "role":"` + role + `" , "parts": ` + p +
				`}`)
		})
	}
	return rapid.OneOf(content("user", list(rapid.OneOf(textPart, image, result), 1, 4)),
		content("model", list(model, 1, 4)))
}
