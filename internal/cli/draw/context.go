package draw

import (
	"fmt"
	"strings"

	"precis/internal/cli/term"
	"precis/internal/conversation"
	"precis/pipeline"
)

// How much of each part of a context is shown, in chars.
const (
	readableText   = 700
	readableCall   = 160
	readableResult = 240
)

// Context returns a context as text: each message shortened, the summary in full.
func Context(v conversation.View, c pipeline.Context) string {
	var b strings.Builder
	for i, it := range c.Items {
		m, ok := readableMessage(v, it)
		if !ok {
			continue
		}
		who := string(m.Role)
		if m.Kind != pipeline.KindOrdinary {
			who += ", " + string(m.Kind)
		}
		title := fmt.Sprintf("%d  %s", i+1, who)
		if m.Seq > 0 {
			title += fmt.Sprintf("  (message %d)", m.Seq)
		}
		b.WriteString("── " + title + "\n")
		for _, p := range m.Parts {
			if text := readablePart(p, m.Kind == pipeline.KindSummary); text != "" {
				b.WriteString(indent(term.Printable(text)) + "\n")
			}
		}
	}
	return b.String()
}

// readableMessage decodes an entry as it is sent, with its edits. It reports false if nothing is left of it.
func readableMessage(v conversation.View, it pipeline.ContextItem) (pipeline.Message, bool) {
	if it.Made != nil {
		kind := pipeline.PartText
		if it.Made.Role == pipeline.RoleTool {
			kind = pipeline.PartToolResult
		}
		part := pipeline.Part{Kind: kind, Text: it.Made.Text, Name: it.Made.Name}
		if kind == pipeline.PartToolResult {
			part.Content = []pipeline.Part{{Kind: pipeline.PartText, Text: it.Made.Text}}
		}
		return pipeline.Message{Role: it.Made.Role, Kind: it.Made.Kind, Parts: []pipeline.Part{part}}, true
	}
	m := *it.Message
	if len(it.Edits) == 0 {
		return m, true
	}
	native, err := v.Codec.Encode(m, it.Edits)
	if err != nil || native == nil {
		return m, false
	}
	edited, err := v.Codec.Decode(native)
	if err != nil {
		return m, false
	}
	edited.Seq, edited.Role, edited.Kind = m.Seq, m.Role, m.Kind
	return edited, true
}

func readablePart(p pipeline.Part, whole bool) string {
	switch p.Kind {
	case pipeline.PartText:
		if whole {
			return p.Text
		}
		return pipeline.CompactHeadAndTail(strings.TrimSpace(p.Text), readableText)
	case pipeline.PartReasoning:
		return "(reasoning, " + term.Plural(pipeline.Chars(p.Text), "char") + ")"
	case pipeline.PartToolCall:
		return term.Clip("→ "+p.Name+" "+term.OneLine(p.Input), readableCall)
	case pipeline.PartToolResult:
		var texts []string
		for _, content := range p.Content {
			switch content.Kind {
			case pipeline.PartText:
				texts = append(texts, content.Text)
			default:
				texts = append(texts, "("+string(content.Kind)+")")
			}
		}
		mark := "← "
		if p.IsError {
			mark = "← error: "
		}
		return term.Clip(mark+term.OneLine(strings.Join(texts, " ")), readableResult)
	}
	return "(" + string(p.Kind) + ")"
}

func indent(s string) string {
	return "   " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n   ")
}
