package transcript_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

// A record line around an Anthropic message, and what a line looks like without its message.
const (
	lineHead = `{"parentUuid":"p", "type":"%s","message":`
	lineTail = `,"toolUseResult":{"stdout":"ok"},"uuid":"u"}`
)

// drawn has the generators of messages of each format.
var drawn = map[transcript.Format]func() *rapid.Generator[[]byte]{}

// drawMessage draws a valid message of a format, with unusual blanks.
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
