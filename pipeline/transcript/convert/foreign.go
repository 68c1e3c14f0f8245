package convert

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/wire/anthropic"
)

// common returns a message of a foreign format as the messages that an API would have. That is one, except for an
// assistant message that contains results: the results become a message of their own after it, and what the assistant
// said after them becomes another one.
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
		case p.Kind != pipeline.PartToolCall: // consecutive calls are one step, wherever their results are
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
		case p.Text != "": // a file with text is read as text
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

// notRecorded replaces the result of a call in a format that has no results.
const notRecorded = "[What this call returned is not recorded in the transcript.]"

// pair assigns the ids that an API requires to calls and results without one. Such a result answers the first call of
// its step that has neither an id nor a result, preferably one of its own name. A call that remains unanswered gets a
// result that says so, and a result without a call becomes text.
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
			// In a format without results, the assistant's next message follows them.
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
			c.lose("tool result", "its call is missing: it becomes text of role user")
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

// answered returns the index of the open call that a result of the name answers, -1 for none.
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
