package pipeline

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// genText draws texts of many kinds, with what breaks careless code: wide chars, invalid bytes, our own
// tags and markers, base64.
func genText() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.StringMatching(`[a-z ]{0,40}`),
		rapid.String(),
		rapid.SampledFrom([]string{
			"漢字かな", "😀👩‍👩‍👧", "\xff\xfe", "\xe6\xbc", "</message>", "<message seq=\"1\" role=\"user\">",
			"< / MESSAGE >", "<conversation_summary>", "</conversation_summary>", "<user_query>", "</user_query>",
			"<mess", "age>", "<", "&lt;", "[... truncated, 5 chars]", "…[5 chars omitted]…", "\n", "\r\n\n", "\x00",
			"\\", "\"", "`",
		}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		var out strings.Builder
		for range rapid.IntRange(0, 4).Draw(t, "pieces") {
			out.WriteString(strings.Repeat(piece.Draw(t, "piece"),
				rapid.SampledFrom([]int{1, 1, 1, 3, 40, 400}).Draw(t, "times")))
		}
		return out.String()
	})
}

func genPart(kinds ...PartKind) *rapid.Generator[Part] {
	return rapid.Custom(func(t *rapid.T) Part {
		p := Part{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch p.Kind {
		case PartText, PartReasoning:
			p.Text = genText().Draw(t, "text")
		case PartToolCall:
			p.CallID = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			p.Name = rapid.SampledFrom([]string{"Read", "Bash", "evil\n</message>"}).Draw(t, "name")
			p.Input = genText().Draw(t, "input")
		case PartToolResult:
			p.CallID = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			p.IsError = rapid.Bool().Draw(t, "error")
			p.Content = rapid.SliceOfN(genPart(PartText, PartText, PartImage), 0, 3).Draw(t, "content")
		case PartImage:
			p.Bytes = rapid.IntRange(0, 200_000).Draw(t, "bytes")
			p.Width, p.Height = 100, 100
		}
		return p
	})
}

// genMessages draws conversations of any shape, most of them wrong in some way.
func genMessages(most int) *rapid.Generator[[]Message] {
	return rapid.Custom(func(t *rapid.T) []Message {
		n := rapid.IntRange(0, most).Draw(t, "messages")
		ms := make([]Message, n)
		for i := range ms {
			m := Message{
				Seq: int64(i + 1),
				Role: rapid.SampledFrom([]Role{
					RoleUser, RoleAssistant, RoleTool, RoleAssistant, RoleTool,
					RoleSystem,
				}).Draw(t, "role"),
			}
			switch m.Role {
			case RoleUser:
				m.Kind = rapid.SampledFrom([]Kind{
					KindOrdinary, KindOrdinary, KindOrdinary, KindReminder, KindSummary,
					KindUserInfo, KindSynthetic,
				}).Draw(t, "kind")
				m.Parts = rapid.SliceOfN(genPart(PartText, PartText, PartImage, PartToolResult), 0, 3).Draw(t, "parts")
			case RoleAssistant:
				m.Parts = rapid.SliceOfN(genPart(PartText, PartToolCall, PartReasoning), 0, 3).Draw(t, "parts")
			case RoleTool:
				m.Parts = rapid.SliceOfN(genPart(PartToolResult), 0, 2).Draw(t, "parts")
			case RoleSystem:
				m.Parts = rapid.SliceOfN(genPart(PartText), 0, 1).Draw(t, "parts")
			}
			ms[i] = m
		}
		return ms
	})
}

// The makers of hand-written conversations.

func textMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Kind: PartText, Text: text}}}
}

func summaryMessage(text string) Message {
	m := textMessage(RoleUser, text)
	m.Kind = KindSummary
	return m
}

func callMessage(text, id, name, input string) Message {
	m := Message{Role: RoleAssistant}
	if text != "" {
		m.Parts = append(m.Parts, Part{Kind: PartText, Text: text})
	}
	m.Parts = append(m.Parts, Part{Kind: PartToolCall, CallID: id, Name: name, Input: input})
	return m
}

func resultMessage(id, text string) Message {
	return Message{
		Role:  RoleTool,
		Parts: []Part{{Kind: PartToolResult, CallID: id, Content: []Part{{Kind: PartText, Text: text}}}},
	}
}

// numbered gives the messages their sequence numbers; a summary has none.
func numbered(ms ...Message) []Message {
	seq := int64(0)
	for i := range ms {
		if ms[i].Kind != KindSummary {
			seq++
			ms[i].Seq = seq
		}
	}
	return ms
}

// workday is a conversation of turns in which an agent speaks, calls a tool, and speaks again.
func workday(turns, resultChars int) []Message {
	var ms []Message
	for i := range turns {
		id := fmt.Sprintf("call%d", i)
		ms = append(ms,
			textMessage(RoleUser, fmt.Sprintf("USER-%d please go on", i)),
			callMessage(fmt.Sprintf("NARRATION-%d", i), id, "read_file",
				fmt.Sprintf(`{"path":"src/f%d.go","mark":"ARGS-%d"}`, i, i)),
			resultMessage(id, fmt.Sprintf("TOOLTEXT-%d ", i)+strings.Repeat("abc ", resultChars/4)),
			textMessage(RoleAssistant, fmt.Sprintf("CONCLUSION-%d", i)),
		)
	}
	return numbered(ms...)
}
