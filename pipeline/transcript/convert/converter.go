package convert

import (
	"cmp"
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
	"precis/pipeline/transcript/wire/openai"
)

// converter holds what a conversion is at.
type converter struct {
	from, to transcript.Format
	// source is the format of the conversation; from is that of its messages once they are those of an API.
	source transcript.Format
	// model is the one that is asked, where that matters.
	model  string
	item   int
	losses []Loss
	ids    callIDs
	// index has the places of the entries in the context, nil: their own.
	index []int
}

func (c *converter) lose(what, why string, args ...any) {
	c.losses = append(c.losses, Loss{c.item, what, fmt.Sprintf(why, args...)})
}

// A spoken is a message on its way from one format to another.
type spoken struct {
	role  pipeline.Role
	parts []pipeline.Part
	item  int
}

// cross returns the entries as the API's messages.
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
					"nothing in it could be sent: what the model thought is not in the file",
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

// read decodes the entries as they would be sent, edits done.
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

// liftSystem takes the system messages at the head out. Later ones become user messages, in their place.
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
			c.lose("role", "a system message in the middle is a user message here")
			rest[i].role = pipeline.RoleUser
		}
	}
	return rest, system
}

// leaveOut says of a part that it has no place in the target, and gives the text that stands in for it. Of what only
// the vendor that made it can use nothing is left, but for a summary that can be read.
func (c *converter) leaveOut(p pipeline.Part) (text string, ok bool) {
	what := cmp.Or(p.Type, string(p.Kind))
	if p.Kind == pipeline.PartOpaque {
		if s := compactionText(p); s != "" {
			c.lose(what, "only the vendor that wrote it takes it as a summary: its text stands there")
			return s, true
		}
		c.lose(what, "only the vendor that made it can use it")
		return "", false
	}
	c.lose(string(p.Kind), "%s has no place for it, or it is not in the transcript", c.to)
	return fmt.Sprintf("[%s omitted]", cmp.Or(p.MediaType, what)), true
}

// compactionText is the text of a compaction block of Anthropic's, empty for one that cannot be read.
func compactionText(p pipeline.Part) string {
	if p.Type != "compaction" || len(p.Raw) == 0 {
		return ""
	}
	return rawjson.Root(p.Raw).Get("content").Text()
}

// literal is a text part's string as it was written, escapes and all, where it was written as one.
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

// addressOf is where an image or a file is that came from an API: a data URL for what stands in the message itself.
func addressOf(p pipeline.Part) string { return cmp.Or(anthropic.Address(p), openai.Address(p)) }
