package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

func (c *converter) openAI(all []spoken) [][]byte {
	all = joinAssistant(all)
	var out [][]byte
	// A tool message cannot contain images; they follow the last of consecutive tool messages.
	var images [][]byte
	flush := func() {
		if len(images) > 0 {
			out = append(out, openAIMessage("user", images))
			images = nil
		}
	}
	for _, m := range all {
		c.item = m.item
		if m.role == pipeline.RoleAssistant {
			flush()
			if b := c.openAIAssistant(m.parts); b != nil {
				out = append(out, b)
			}
			continue
		}
		var said [][]byte
		for _, p := range m.parts {
			if p.Kind != pipeline.PartToolResult {
				if b := c.openAIPart(p); b != nil {
					said = append(said, b)
				}
				continue
			}
			b, pictures := c.openAIResult(p)
			out = append(out, b)
			images = append(images, pictures...)
		}
		if m.role != pipeline.RoleTool {
			flush()
		}
		if len(said) > 0 {
			role := "user"
			if m.role == pipeline.RoleSystem {
				role = "system"
			}
			out = append(out, openAIMessage(role, said))
		}
	}
	flush()
	return out
}

// joinAssistant joins consecutive assistant messages: for Anthropic they are one turn, whose results may follow the
// last of them.
func joinAssistant(all []spoken) []spoken {
	var out []spoken
	for _, m := range all {
		if last := len(out) - 1; last >= 0 && m.role == pipeline.RoleAssistant && out[last].role == m.role {
			out[last].parts = slices.Concat(out[last].parts, m.parts)
			continue
		}
		out = append(out, m)
	}
	return out
}

// openAIMessage writes a message of content parts; a single text is a plain string.
func openAIMessage(role string, content [][]byte) []byte {
	return fmt.Appendf(nil, `{"role":%s,"content":%s}`, rawjson.Quote(role), openAIContentOf(content))
}

func openAIContentOf(content [][]byte) []byte {
	if len(content) == 1 {
		v := rawjson.Root(content[0])
		if typ := v.Get("type"); typ.Text() == "text" {
			if lit, ok := v.Lookup("text"); ok {
				return lit.Raw()
			}
		}
	}
	return fmt.Appendf(nil, "[%s]", rawjson.Join(content))
}

func (c *converter) openAIAssistant(all []pipeline.Part) []byte {
	var said, calls [][]byte
	for _, p := range all {
		switch {
		case p.Kind == pipeline.PartReasoning:
			c.lose("reasoning", "only the vendor that made it can use it")
		case p.Kind == pipeline.PartToolCall && p.Type != "tool_use",
			p.Kind == pipeline.PartToolResult:
			c.lose(p.Type, "a chat message cannot contain results of the vendor's own tools")
		case p.Kind == pipeline.PartToolCall:
			b := fmt.Appendf(nil, `{"id":%s,"type":"function","function":{"name":%s,"arguments":%s`,
				rawjson.Quote(chatID(p.CallID)), rawjson.Quote(toolName(p.Name)), rawjson.Quote(cmp.Or(p.Input, "{}")))
			calls = append(calls, append(b, "}}"...))
		default:
			if b := c.openAIPart(p); b != nil {
				said = append(said, b)
			}
		}
	}
	if len(said)+len(calls) == 0 {
		return nil
	}
	b := []byte(`{"role":"assistant","content":`)
	if len(said) == 0 {
		b = append(b, "null"...)
	} else {
		b = append(b, openAIContentOf(said)...)
	}
	if len(calls) > 0 {
		b = fmt.Appendf(b, `,"tool_calls":[%s]`, rawjson.Join(calls))
	}
	return append(b, "}"...)
}

// openAIResult writes a tool message, and returns the images that go behind it.
func (c *converter) openAIResult(p pipeline.Part) (message []byte, images [][]byte) {
	if p.IsError {
		c.lose("error flag", "a tool message has none; its text says what failed")
	}
	var texts [][]byte
	for _, part := range p.Content {
		b := c.openAIPart(part)
		if b == nil {
			continue
		}
		if part.Kind != pipeline.PartText && kindOf(b) != "text" {
			c.lose(string(part.Kind), "a tool message contains only text: it follows in a user message")
			images = append(images, b)
			b = layout.TextBlock(fmt.Sprintf("[%s: in the user message behind the results]", part.Kind))
		}
		texts = append(texts, b)
	}
	content := []byte(`""`)
	if len(texts) > 0 {
		content = openAIContentOf(texts)
	}
	return fmt.Appendf(nil, `{"role":"tool","tool_call_id":%s,"content":%s}`, rawjson.Quote(chatID(p.CallID)), content),
		images
}

func kindOf(block []byte) string { return rawjson.Root(block).Get("type").Text() }

// openAIPart writes one content part, nil for a part that is left out.
func (c *converter) openAIPart(p pipeline.Part) []byte {
	switch p.Kind {
	case pipeline.PartText:
		if strings.TrimSpace(p.Text) == "" {
			return nil
		}
		return literalBlock(p)
	case pipeline.PartImage:
		if url := addressOf(p); url != "" {
			return fmt.Appendf(nil, `{"type":"image_url","image_url":{"url":%s}}`, rawjson.Quote(url))
		}
	case pipeline.PartFile:
		if p.Text != "" {
			return layout.TextBlock(p.Text)
		}
		if url := addressOf(p); strings.HasPrefix(url, "data:") {
			return fmt.Appendf(nil, `{"type":"file","file":{"filename":%s,"file_data":%s}}`,
				rawjson.Quote(cmp.Or(p.Name, "document")), rawjson.Quote(url))
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
