package convert

import (
	"cmp"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
	"precis/pipeline/transcript/wire/openai"
)

// converter has the state of a conversion.
type converter struct {
	from, to transcript.Format
	// source is the format of the conversation; from is the API format of its messages after cross.
	source transcript.Format
	// model is the model of the request, for targets whose form depends on it.
	model  string
	item   int
	losses []Loss
	ids    callIDs
	// index maps the entries to their index in the context; nil if they are the same.
	index []int
}

func (c *converter) lose(what, why string, args ...any) {
	c.losses = append(c.losses, Loss{c.item, what, fmt.Sprintf(why, args...)})
}

// A spoken is a message during its conversion.
type spoken struct {
	role  pipeline.Role
	parts []pipeline.Part
	item  int
}

// cross returns the entries as messages of an API.
func (c *converter) cross(codec transcript.Codec, items []pipeline.ContextItem) ([]pipeline.ContextItem, error) {
	api, err := transcript.CodecFor(c.from.API())
	if err != nil {
		return nil, err
	}
	var out []pipeline.ContextItem
	for i, it := range items {
		fail := func(err error) error { return fmt.Errorf("entry %d of the context: %w", i, err) }
		if it.Made == nil {
			native, err := codec.EncodeItem(it)
			if err != nil {
				return nil, fail(err)
			}
			if native == nil {
				continue
			}
			if native, err = codec.APIMessage(native); err != nil {
				return nil, fail(err)
			}
			if native == nil {
				c.losses = append(c.losses, Loss{
					i, "message",
					"it has no content that can be sent: the file does not contain the model's reasoning",
				})
				continue
			}
			m, err := api.Decode(native)
			if err != nil {
				return nil, fail(err)
			}
			it = pipeline.ContextItem{Message: &m}
		}
		out, c.index = append(out, it), append(c.index, i)
	}
	return out, nil
}

// read decodes the entries as they would be sent, with their edits applied.
func (c *converter) read(codec transcript.Codec, items []pipeline.ContextItem) ([]spoken, error) {
	foreign := codec.HasOwnAddresses()
	out := make([]spoken, 0, len(items))
	for i, it := range items {
		if it.Made != nil {
			out = append(out, spoken{it.Made.Role, madeParts(*it.Made), i})
			continue
		}
		b, err := codec.EncodeItem(it)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b == nil {
			continue
		}
		m, err := codec.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if foreign {
			out = append(out, common(codec, m, i)...)
			continue
		}
		out = append(out, spoken{m.Role, m.Parts, i})
	}
	matchIDs(out)
	if foreign {
		c.pair(&out)
	}
	return out, nil
}

func madeParts(m pipeline.Made) []pipeline.Part {
	body := pipeline.Part{Kind: pipeline.PartText, Text: m.Text}
	if m.Role != pipeline.RoleTool {
		return []pipeline.Part{body}
	}
	return []pipeline.Part{{
		Kind: pipeline.PartToolResult, Type: "tool_result", CallID: m.CallID, Name: m.Name, IsError: m.IsError,
		Content: []pipeline.Part{body},
	}}
}

// liftSystem removes the system messages at the head. Later ones become user messages in the same place, marked as what
// the user did not say.
func (c *converter) liftSystem(all []spoken) ([]spoken, []string) {
	var system []string
	n := 0
	for ; n < len(all) && all[n].role == pipeline.RoleSystem; n++ {
		for _, p := range all[n].parts {
			if p.Kind == pipeline.PartText {
				system = append(system, p.Text)
			}
		}
	}
	rest := all[n:]
	for i := range rest {
		if rest[i].role == pipeline.RoleSystem {
			c.item = rest[i].item
			c.lose("role", "a system message in the middle is a marked user message here")
			rest[i] = spoken{pipeline.RoleUser, []pipeline.Part{{
				Kind: pipeline.PartText, Text: anthropic.Marked(textOf(rest[i].parts)),
			}}, rest[i].item}
		}
	}
	return rest, system
}

// textOf returns the texts of parts.
func textOf(parts []pipeline.Part) string {
	var all []string
	for _, p := range parts {
		if p.Kind == pipeline.PartText && strings.TrimSpace(p.Text) != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n\n")
}

// leaveOut reports a part that the target cannot hold as a loss, and returns a text in its place. For a part that
// only its own vendor can use it returns no text, unless it is a readable summary.
func (c *converter) leaveOut(p pipeline.Part) (text string, ok bool) {
	what := cmp.Or(p.Type, string(p.Kind))
	if p.Kind == pipeline.PartOpaque {
		if s := compactionText(p); s != "" {
			c.lose(what, "only the vendor that wrote it takes it as a summary: its text replaces it")
			return s, true
		}
		c.lose(what, "only the vendor that made it can use it")
		return "", false
	}
	c.lose(string(p.Kind), "%s cannot hold it, or it is not in the transcript", c.to)
	return fmt.Sprintf("[%s omitted]", cmp.Or(p.MediaType, what)), true
}

// compactionText returns the text of a compaction block of Anthropic, "" for an encrypted one.
func compactionText(p pipeline.Part) string {
	if p.Type != "compaction" || len(p.Raw) == 0 {
		return ""
	}
	return rawjson.Root(p.Raw).Get("content").Text()
}

// literal returns the string of a text part as it was written, including its escapes.
func literal(p pipeline.Part) []byte {
	if len(p.Raw) > 0 {
		v := rawjson.Root(p.Raw)
		if v.IsString() {
			return v.Raw()
		}
		if lit, ok := v.Lookup(cmp.Or(p.Type, "text")); ok && lit.IsString() {
			return lit.Raw()
		}
	}
	return rawjson.Quote(p.Text)
}

// addressOf returns the address of an image or a file in a message of an API: a data URL for data in the message
// itself.
func addressOf(p pipeline.Part) string { return cmp.Or(anthropic.Address(p), openai.Address(p)) }
