package transcript

import (
	"bytes"
	"cmp"
	"strings"

	"precis/pipeline"
)

// responses writes items. A message becomes one item for each run of what it says, and one for each call and result.
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
		// Results first: what else their message says comes behind them.
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

// withoutVendors leaves out the calls that the vendor of the source ran itself, and their results, which stand in
// messages of the assistant's.
func (c *converter) withoutVendors(m spoken) []pipeline.Part {
	if m.role != pipeline.RoleAssistant {
		return m.parts
	}
	var out []pipeline.Part
	for _, p := range m.parts {
		switch {
		case p.Kind == pipeline.PartToolResult,
			p.Kind == pipeline.PartToolCall && p.Type != "tool_use" && strings.HasSuffix(p.Type, "_tool_use"):
			c.lose(p.Type, "what the vendor's own tools did has no place with another vendor")
		default:
			out = append(out, p)
		}
	}
	return out
}

// responsesMessage writes a message item; a single text is a plain string.
func responsesMessage(role string, content [][]byte) []byte {
	b := append([]byte(`{"type":"message","role":`), quote(role)...)
	b = append(append(b, `,"content":`...), responsesContent(content)...)
	return append(b, '}')
}

func responsesContent(content [][]byte) []byte {
	if len(content) == 1 {
		v := root(content[0])
		switch text(content[0], first(get(content[0], v, "type"))) {
		case "input_text", "output_text":
			return first(get(content[0], v, "text")).of(content[0])
		}
	}
	return append(append([]byte{'['}, bytes.Join(content, []byte{','})...), ']')
}

func (c *converter) responsesCall(p pipeline.Part) []byte {
	b := append([]byte(`{"type":"function_call","call_id":`), quote(c.ids.call(p.CallID, c.item))...)
	b = append(append(b, `,"name":`...), quote(toolName(p.Name))...)
	b = append(append(b, `,"arguments":`...), quote(cmp.Or(p.Input, "{}"))...)
	return append(b, '}')
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
	b := append([]byte(`{"type":"function_call_output","call_id":`), quote(c.ids.result(p.CallID))...)
	b = append(append(b, `,"output":`...), output...)
	return append(b, '}')
}

// responsesPart writes one content part, nil for what is left out.
func (c *converter) responsesPart(p pipeline.Part, role pipeline.Role) []byte {
	typ := "input_text"
	if role == pipeline.RoleAssistant {
		typ = "output_text"
	}
	say := func(s string) []byte { return itemTextPart(typ, quote(s)) }
	switch p.Kind {
	case pipeline.PartText:
		if strings.TrimSpace(p.Text) == "" {
			return nil
		}
		return itemTextPart(typ, literal(p))
	case pipeline.PartReasoning:
		c.lose("reasoning", "only the vendor that made it can use it")
		return nil
	case pipeline.PartImage:
		if url := addressOf(p); url != "" && role != pipeline.RoleAssistant {
			b := append([]byte(`{"type":"input_image","image_url":`), quote(url)...)
			return append(b, `,"detail":"auto"}`...)
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

// responsesFile writes a PDF, the one kind of file that is taken as it is everywhere; nil for any other.
func responsesFile(p pipeline.Part) []byte {
	url := addressOf(p)
	switch {
	case url == "" || p.MediaType != "application/pdf":
		return nil
	case strings.HasPrefix(url, "data:"):
		b := append([]byte(`{"type":"input_file","filename":`), quote(cmp.Or(p.Name, "document.pdf"))...)
		b = append(append(b, `,"file_data":`...), quote(url)...)
		return append(b, '}')
	}
	return append(append([]byte(`{"type":"input_file","file_url":`), quote(url)...), '}')
}
