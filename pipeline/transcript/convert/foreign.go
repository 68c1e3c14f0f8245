package convert

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/wire/anthropic"
)

// common returns a message of a foreign format as the messages that an API would hold: one, but for an assistant
// message that has its results in it. Those become a message of their own behind it, and what the assistant said after
// them another one.
func common(c transcript.Codec, m pipeline.Message, item int) []spoken {
	var out []spoken
	said, given := spoken{role: m.Role, item: item}, spoken{role: pipeline.RoleTool, item: item}
	flush := func() {
		if len(given.parts) > 0 {
			out = append(out, said, given)
			said.parts, given.parts = nil, nil
		}
	}
	for _, p := range m.Parts {
		p = commonPart(c, p)
		switch {
		case p.Kind == pipeline.PartToolResult && m.Role == pipeline.RoleAssistant:
			given.parts = append(given.parts, p)
			continue
		case p.Kind != pipeline.PartToolCall: // calls in a row are one step, wherever their results stand
			flush()
		}
		said.parts = append(said.parts, p)
	}
	flush()
	if len(said.parts) > 0 || len(out) == 0 {
		out = append(out, said)
	}
	return out
}

func commonPart(c transcript.Codec, p pipeline.Part) pipeline.Part {
	raw := p
	p.Raw = nil
	switch p.Kind {
	case pipeline.PartToolCall:
		p.Type = "tool_use"
	case pipeline.PartToolResult:
		p.Type = "tool_result"
		p.Content = nil
		for _, x := range raw.Content {
			p.Content = append(p.Content, commonPart(c, x))
		}
	case pipeline.PartImage:
		p.Raw = anthropic.Source("image", p, c.Address(raw))
	case pipeline.PartFile:
		switch url := c.Address(raw); {
		case p.MediaType == "application/pdf":
			p.Raw = anthropic.Source("document", p, url)
		case p.Text != "": // a file that is text reads as text
			p.Kind, p.Type, p.Text = pipeline.PartText, "", namedText(p)
		}
	}
	return p
}

func namedText(p pipeline.Part) string {
	if p.Name == "" {
		return p.Text
	}
	return p.Name + ":\n" + p.Text
}

// notRecorded stands for the result of a call in a format that has no results.
const notRecorded = "[What this call returned is not recorded in the transcript.]"

// pair returns calls and results without an id the ids that an API wants. A result without one goes with the first
// call of its step that has none and no result yet, one of its own name before the others. A call that is left
// over gets a result that says so, and a result that is left over becomes text.
func (c *converter) pair(all *[]spoken) {
	used := map[string]bool{}
	recorded := false // whether there are results without an id at all
	for _, m := range *all {
		for _, p := range m.parts {
			used[p.CallID] = true
			recorded = recorded || p.Kind == pipeline.PartToolResult && p.CallID == ""
		}
	}
	n := 0
	fresh := func() string {
		for {
			n++
			if id := fmt.Sprintf("call_%d", n); !used[id] {
				return id
			}
		}
	}
	var out []spoken
	var open []*pipeline.Part // calls of the step without a result
	closeStep := func() {
		if len(open) == 0 {
			return
		}
		given := spoken{role: pipeline.RoleTool, item: out[len(out)-1].item}
		for _, call := range open {
			given.parts = append(given.parts, madeParts(pipeline.Made{
				Role: pipeline.RoleTool, CallID: call.CallID, Name: call.Name, Text: notRecorded,
			})...)
		}
		c.item = given.item
		c.lose("tool results", "the transcript has none for %d calls, which %s must have: they say so", len(open), c.to)
		out, open = append(out, given), nil
	}
	for i := range *all {
		m := &(*all)[i]
		if m.role == pipeline.RoleAssistant {
			// Where there are no results, what the assistant says next it says after them.
			if i > 0 && ((*all)[i-1].role != pipeline.RoleAssistant || !recorded) {
				closeStep()
			}
			for j := range m.parts {
				if p := &m.parts[j]; p.Kind == pipeline.PartToolCall && p.CallID == "" {
					p.CallID = fresh()
					open = append(open, p)
				}
			}
			out = append(out, *m)
			continue
		}
		rest := m.parts[:0:0]
		for _, p := range m.parts {
			if p.Kind != pipeline.PartToolResult || p.CallID != "" {
				rest = append(rest, p)
				continue
			}
			if at := answered(open, p.Name); at >= 0 {
				p.CallID = open[at].CallID
				open = append(open[:at:at], open[at+1:]...)
				rest = append(rest, p)
				continue
			}
			c.item = m.item
			c.lose("tool result", "its call is not there: it is text of role user")
			rest = append(rest, p.Content...)
			m.role = pipeline.RoleUser
		}
		if m.role != pipeline.RoleTool {
			closeStep()
		}
		m.parts = rest
		out = append(out, *m)
	}
	closeStep()
	*all = out
}

// answered returns which of the open calls a result of the name goes with, -1 for none.
func answered(open []*pipeline.Part, name string) int {
	for i, call := range open {
		if name != "" && call.Name == name {
			return i
		}
	}
	if len(open) > 0 {
		return 0
	}
	return -1
}
