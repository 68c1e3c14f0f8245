package convert

import (
	"bytes"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// anthropic writes messages whose roles alternate.
func (c *converter) anthropic(all []spoken) [][]byte {
	var out [][]byte
	var role string
	var results, blocks [][]byte
	flush := func() {
		// Results have to be the first blocks of their message.
		if all := append(results, blocks...); len(all) > 0 {
			out = append(out, anthropic.Wrap(role, all))
		}
		results, blocks = nil, nil
	}
	for _, m := range all {
		c.item = m.item
		next := "user"
		if m.role == pipeline.RoleAssistant {
			next = "assistant"
		}
		var mine, said [][]byte
		for _, p := range m.parts {
			b := c.anthropicBlock(p)
			switch {
			case b == nil:
			case p.Kind == pipeline.PartToolResult && next == "user":
				mine = append(mine, b)
			default:
				said = append(said, b)
			}
		}
		if len(mine)+len(said) == 0 {
			continue
		}
		if next != role {
			flush()
			role = next
		}
		results, blocks = append(results, mine...), append(blocks, said...)
	}
	flush()
	return out
}

// anthropicBlock writes one block, nil for a part that is left out.
func (c *converter) anthropicBlock(p pipeline.Part) []byte {
	if p.Kind == pipeline.PartText && strings.TrimSpace(p.Text) == "" {
		return nil // the API does not take blank text
	}
	if c.from.API() == transcript.Anthropic && len(p.Raw) > 0 {
		if p.Raw[0] == '"' {
			return literalBlock(p)
		}
		return p.Raw
	}
	switch p.Kind {
	case pipeline.PartText:
		return literalBlock(p)
	case pipeline.PartToolCall:
		input := []byte(p.Input)
		switch {
		case len(bytes.TrimSpace(input)) == 0:
			input = []byte(`{}`)
		case rawjson.Check(input) != nil || !rawjson.Root(input).IsObject():
			c.lose("tool call arguments", "they are not a JSON object and are put into one under the key \"arguments\"")
			input = fmt.Appendf(nil, `{"arguments":%s}`, rawjson.Quote(p.Input))
		}
		return fmt.Appendf(nil, `{"type":"tool_use","id":%s,"name":%s,"input":%s}`,
			rawjson.Quote(c.ids.call(p.CallID, c.item)), rawjson.Quote(p.Name), bytes.TrimSpace(input))
	case pipeline.PartToolResult:
		return anthropic.ToolResult(c.ids.result(p.CallID), c.anthropicContent(p.Content), p.IsError)
	case pipeline.PartImage:
		if b := c.anthropicSource("image", p); b != nil {
			return b
		}
	case pipeline.PartFile:
		if p.MediaType == "application/pdf" {
			if b := c.anthropicSource("document", p); b != nil {
				return b
			}
		}
	case pipeline.PartReasoning:
		c.lose("reasoning", "only the vendor that made it can use it")
		return nil
	}
	if s, ok := c.leaveOut(p); ok {
		return layout.TextBlock(s)
	}
	return nil
}

func literalBlock(p pipeline.Part) []byte {
	return fmt.Appendf(nil, `{"type":"text","text":%s}`, literal(p))
}

// anthropicContent writes the content of a result.
func (c *converter) anthropicContent(content []pipeline.Part) []byte {
	if len(content) == 0 {
		return []byte(`""`)
	}
	if len(content) == 1 && content[0].Kind == pipeline.PartText {
		return literal(content[0])
	}
	var blocks [][]byte
	for _, p := range content {
		if b := c.anthropicBlock(p); b != nil {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 0 {
		return []byte(`""`)
	}
	return fmt.Appendf(nil, "[%s]", rawjson.Join(blocks))
}

// anthropicSource writes an image or a document.
func (c *converter) anthropicSource(typ string, p pipeline.Part) []byte {
	return anthropic.Source(typ, p, addressOf(p))
}
