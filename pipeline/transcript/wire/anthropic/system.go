package anthropic

import (
	"strings"

	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// PlaceSystem returns messages with each system message where the API takes it: directly behind a message of the user,
// and in front of one of the assistant or at the end. A system message that the user's next message follows moves
// behind that; one that no message of the user precedes becomes a marked message of the user. All other messages keep
// their bytes and their order.
func PlaceSystem(messages [][]byte) [][]byte {
	out := make([][]byte, 0, len(messages))
	var held [][]byte
	last := ""
	release := func() {
		for _, m := range held {
			if last != "user" && last != "system" {
				m = Wrap("user", [][]byte{layout.TextBlock(Marked(systemText(m)))})
				last = ""
			} else {
				last = "system"
			}
			out = append(out, m)
		}
		held = nil
	}
	for _, m := range messages {
		role := rawjson.Root(m).Get("role").Text()
		if role == "system" {
			held = append(held, m)
			continue
		}
		if role == "assistant" {
			release()
		}
		out, last = append(out, m), role
	}
	release()
	return out
}

// Marked returns the text of a system message for a message of the user, in the element in which agents put what the
// user did not say.
func Marked(text string) string { return "<system-reminder>\n" + text + "\n</system-reminder>" }

// systemText returns the text of a system message.
func systemText(native []byte) string {
	content := rawjson.Root(native).Get("content")
	if !content.IsArray() {
		return content.Text()
	}
	var all []string
	for _, el := range content.Elements() {
		if s := el.Get("text").Text(); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n\n")
}
