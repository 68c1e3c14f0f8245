package convert

import (
	"cmp"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/responses"
)

// responses writes items. A message becomes one item for each run of text and media, and one for each call and result.
func (c *converter) responses(all []spoken) [][]byte {
	var out [][]byte
	for _, m := range all {
		c.item = m.item
		role := string(m.role)
		if m.role == pipeline.RoleTool {
			role = "user" // an image beside results
		}
		var said [][]byte
		flush := func() {
			if len(said) > 0 {
				out = append(out, responsesMessage(role, said))
				said = nil
			}
		}
		parts := c.withoutVendors(m)
		// Results come first; the other parts of their message follow.
		for _, p := range parts {
			if p.Kind == pipeline.PartToolResult {
				out = append(out, c.responsesResult(p))
			}
		}
		for _, p := range parts {
			switch p.Kind {
			case pipeline.PartToolResult:
			case pipeline.PartToolCall:
				flush()
				out = append(out, c.responsesCall(p))
			default:
				if b := c.responsesPart(p, m.role); b != nil {
					said = append(said, b)
				}
			}
		}
		flush()
	}
	return out
}

// withoutVendors leaves out the calls that the vendor of the source ran itself, and their results, which are in
// messages of the assistant.
func (c *converter) withoutVendors(m spoken) []pipeline.Part {
	if m.role != pipeline.RoleAssistant {
		return m.parts
	}
	var out []pipeline.Part
	for _, p := range m.parts {
		switch {
		case p.Kind == pipeline.PartToolResult,
			p.Kind == pipeline.PartToolCall && p.Type != "tool_use" && strings.HasSuffix(p.Type, "_tool_use"):
			c.lose(p.Type, "results of the vendor's own tools cannot be sent to another vendor")
		default:
			out = append(out, p)
		}
	}
	return out
}

// responsesMessage writes a message item; a single text is a plain string.
func responsesMessage(role string, content [][]byte) []byte {
	return fmt.Appendf(nil, `{"type":"message","role":%s,"content":%s}`, rawjson.Quote(role), responsesContent(content))
}

func responsesContent(content [][]byte) []byte {
	if len(content) == 1 {
		v := rawjson.Root(content[0])
		switch v.Get("type").Text() {
		case "input_text", "output_text":
			return v.Get("text").Raw()
		}
	}
	return fmt.Appendf(nil, "[%s]", rawjson.Join(content))
}

func (c *converter) responsesCall(p pipeline.Part) []byte {
	return fmt.Appendf(nil, `{"type":"function_call","call_id":%s,"name":%s,"arguments":%s}`,
		rawjson.Quote(c.ids.call(p.CallID, c.item)), rawjson.Quote(toolName(p.Name)),
		rawjson.Quote(cmp.Or(p.Input, "{}")))
}

func (c *converter) responsesResult(p pipeline.Part) []byte {
	if p.IsError {
		c.lose("error flag", "an output has none; its text says what failed")
	}
	var content [][]byte
	for _, part := range p.Content {
		if b := c.responsesPart(part, pipeline.RoleTool); b != nil {
			content = append(content, b)
		}
	}
	output := []byte(`""`)
	if len(content) > 0 {
		output = responsesContent(content)
	}
	return fmt.Appendf(nil, `{"type":"function_call_output","call_id":%s,"output":%s}`,
		rawjson.Quote(c.ids.result(p.CallID)), output)
}

// responsesPart writes one content part, nil for a part that is left out.
func (c *converter) responsesPart(p pipeline.Part, role pipeline.Role) []byte {
	typ := "input_text"
	if role == pipeline.RoleAssistant {
		typ = "output_text"
	}
	say := func(s string) []byte { return responses.TextPart(typ, rawjson.Quote(s)) }
	switch p.Kind {
	case pipeline.PartText:
		if strings.TrimSpace(p.Text) == "" {
			return nil
		}
		return responses.TextPart(typ, literal(p))
	case pipeline.PartReasoning:
		c.lose("reasoning", "only the vendor that made it can use it")
		return nil
	case pipeline.PartImage:
		if url := addressOf(p); url != "" && role != pipeline.RoleAssistant {
			return fmt.Appendf(nil, `{"type":"input_image","image_url":%s,"detail":"auto"}`, rawjson.Quote(url))
		}
	case pipeline.PartFile:
		if p.Text != "" {
			return say(p.Text)
		}
		if b := responsesFile(p); b != nil && role != pipeline.RoleAssistant {
			return b
		}
	}
	if s, ok := c.leaveOut(p); ok {
		return say(s)
	}
	return nil
}

// responsesFile writes a PDF, the only kind of file that all servers take; nil for any other.
func responsesFile(p pipeline.Part) []byte {
	url := addressOf(p)
	switch {
	case url == "" || p.MediaType != "application/pdf":
		return nil
	case strings.HasPrefix(url, "data:"):
		return fmt.Appendf(nil, `{"type":"input_file","filename":%s,"file_data":%s}`,
			rawjson.Quote(cmp.Or(p.Name, "document.pdf")), rawjson.Quote(url))
	}
	return fmt.Appendf(nil, `{"type":"input_file","file_url":%s}`, rawjson.Quote(url))
}
