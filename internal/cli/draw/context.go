package draw

import (
	"fmt"
	"strings"

	"precis/internal/cli/term"
	"precis/internal/service"
	"precis/pipeline"
)

// How much of each part of a context is shown, in chars.
const (
	readableText   = 700
	readableCall   = 160
	readableResult = 240
)

// Context returns the messages of a context as text: each one shortened, the summary in full.
func Context(list []service.ReadableMessage) string {
	var b strings.Builder
	for _, m := range list {
		who := string(m.Role)
		if m.Kind != pipeline.KindOrdinary {
			who += ", " + string(m.Kind)
		}
		title := fmt.Sprintf("%d  %s", m.Place, who)
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
