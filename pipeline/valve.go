package pipeline

import "slices"

// minSqueezedTokens is the least that the head_tail valve leaves of a part.
const minSqueezedTokens = 64

// squeeze opens the tail valve on the items up to ValveUpTo. What it does rests on those items alone, so that
// it does the same on every later read.
func (b *contextBuilder) squeeze(items []ContextItem) []ContextItem {
	if b.in.Valve == TailValveNone {
		return items
	}
	items = slices.Clone(items)
	v := newValve(items, b.in)
	v.omitBinaries()
	b.omitted = v.omitted
	v.previews()
	if b.in.Valve == TailValveHeadTail {
		v.headAndTail()
	}
	return items
}

type valve struct {
	items    []ContextItem
	in       ContextInput
	upTo     int // items before this one are in reach
	lastUser int // the last genuine user message in reach, -1 when there is none
	answered int // the last assistant message in reach, -1 when there is none
	step     int // where the last step in reach begins
	omitted  TrimStats
}

func newValve(items []ContextItem, in ContextInput) *valve {
	v := &valve{items: items, in: in, lastUser: -1, answered: -1}
	for i, item := range items {
		m := item.Message
		if m == nil || m.Seq > in.ValveUpTo {
			continue
		}
		v.upTo = i + 1
		if m.Genuine() {
			v.lastUser = i
		}
		if m.Role == RoleAssistant {
			if i == 0 || items[i-1].Message == nil || items[i-1].Message.Role != RoleAssistant {
				v.step = i
			}
			v.answered = i
		}
	}
	return v
}

// reach gives the message of item i, nil when the valve leaves it alone.
func (v *valve) reach(i int) *Message {
	m := v.items[i].Message
	if m == nil || m.Seq > v.in.ValveUpTo || m.Role == RoleSystem || m.Kind == KindUserInfo || m.Kind == KindSummary {
		return nil
	}
	return m
}

// protected says whether the words of item i are the user's and still count: the last message, and all that
// nobody has answered.
func (v *valve) protected(i int) bool {
	return v.items[i].Message.Genuine() && (i == v.lastUser || i > v.answered)
}

// omitBinaries does in reach what Trim does everywhere: a cut would leave it two ends of base64 that it no
// longer knows for such.
func (v *valve) omitBinaries() {
	for i := range v.upTo {
		m := v.reach(i)
		if m == nil || m.Role == RoleAssistant {
			continue
		}
		for j, p := range m.Parts {
			if p.Kind != PartToolResult {
				continue
			}
			view := viewResult(p, j, v.items[i].Edits)
			if view.dropped {
				continue
			}
			n := view.omitBinaries(false)
			if n == 0 {
				continue
			}
			before := v.items[i]
			kept := slices.DeleteFunc(slices.Clone(before.Edits), func(e Edit) bool { return e.Part == j })
			v.items[i].Edits = append(kept, view.edits(j)...)
			v.omitted.Binaries += n
			v.omitted.SavedTokens += EstimateItem(before) - EstimateItem(v.items[i])
		}
	}
}

// previews turns the large tool results of all steps but the last into previews.
func (v *valve) previews() {
	limit := v.in.Settings.ToolResultPreviewChars
	if limit <= 0 {
		limit = DefaultSettings().ToolResultPreviewChars
	}
	for i := range v.upTo {
		m := v.reach(i)
		if m == nil || i >= v.step || m.Role == RoleAssistant {
			continue
		}
		for j, p := range m.Parts {
			if p.Kind != PartToolResult {
				continue
			}
			view := viewResult(p, j, v.items[i].Edits)
			text, ok := view.text()
			if view.dropped || !ok {
				continue
			}
			if short, ok := previewResult(text, limit); ok {
				v.replace(i, j, -1, short)
			}
		}
	}
}

// squeezable is a text that the head_tail valve may cut.
type squeezable struct {
	item, part, content int
	text                string
}

// headAndTail cuts the texts in reach to their fair shares of what the tail may take.
func (v *valve) headAndTail() {
	var texts []squeezable
	var sizes []int
	fixed := 0 // what is not to be cut
	for i := range v.upTo {
		m := v.reach(i)
		if m == nil {
			continue
		}
		rest := EstimateItem(v.items[i])
		if !v.protected(i) {
			for _, t := range v.textsOf(i, m) {
				texts, sizes = append(texts, t), append(sizes, EstimateText(t.text))
				rest -= sizes[len(sizes)-1]
			}
		}
		fixed += max(rest, 0)
	}
	for k, share := range FairShare(sizes, v.budget()-fixed) {
		share = max(share, minSqueezedTokens)
		if t := texts[k]; share < sizes[k] {
			v.replace(t.item, t.part, t.content, squeezed(t.text, sizes[k], share))
		}
	}
}

// squeezed is a text of size tokens in at most limit tokens: without its binaries, and cut if need be.
func squeezed(text string, size, limit int) string {
	if short, n := OmitBinary(text); n > 0 {
		text, size = short, EstimateText(short)
	}
	if size <= limit {
		return text
	}
	return cutToTokens(text, size, limit)
}

// textsOf lists what may be cut of a message: the texts of tool results, and what the agent and its runtime
// said. Results inside an assistant message are the vendor's own and stay.
func (v *valve) textsOf(i int, m *Message) []squeezable {
	var texts []squeezable
	edits := v.items[i].Edits
	for j, p := range m.Parts {
		switch {
		case p.Kind == PartText && !edited(edits, j):
			texts = append(texts, squeezable{item: i, part: j, content: -1, text: p.Text})
		case p.Kind == PartToolResult && m.Role != RoleAssistant:
			view := viewResult(p, j, edits)
			if view.dropped {
				continue
			}
			for k, c := range view.contents {
				if view.whole {
					k = -1
				}
				if c.isText && !c.gone {
					texts = append(texts, squeezable{item: i, part: j, content: k, text: c.text})
				}
			}
		}
	}
	return texts
}

func edited(edits []Edit, part int) bool {
	return slices.ContainsFunc(edits, func(e Edit) bool { return e.Part == part && e.Content < 0 })
}

// budget is what the squeezed items may take, in tokens.
func (v *valve) budget() int {
	window := v.in.Window
	if window <= 0 {
		window = DefaultContextWindow
	}
	budget := float64(tailBudget(v.in.Settings, window))
	if c := clampRatio(v.in.Calibration); c > 0 {
		budget /= c
	}
	return int(budget)
}

// replace puts text in place of a part, or of a content of it.
func (v *valve) replace(item, part, content int, text string) {
	kept := slices.DeleteFunc(slices.Clone(v.items[item].Edits), func(e Edit) bool {
		return e.Part == part && (content < 0 || e.Content == content || e.Content < 0)
	})
	v.items[item].Edits = append(kept, Edit{Part: part, Content: content, Op: EditReplace, Text: text})
}
