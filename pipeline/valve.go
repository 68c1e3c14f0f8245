package pipeline

import (
	"math"
	"slices"
)

// minSqueezedTokens is the least that the head_tail valve leaves of a part.
const minSqueezedTokens = 64

// squeeze opens the tail valve on the items up to ValveUpTo. The result depends on those items alone, so that it is the
// same on every later read.
func (b *contextBuilder) squeeze(items []ContextItem) []ContextItem {
	if b.in.Valve == TailValveNone {
		return items
	}
	items = slices.Clone(items)
	v := newValve(b.work, items, b.in, b.counts)
	v.omitBinaries()
	b.omitted = v.omitted
	v.previews()
	if b.in.Valve == TailValveHeadTail {
		v.headAndTail()
	}
	return items
}

type valve struct {
	*work
	items    []ContextItem
	in       ContextInput
	counts   tokenCounts
	upTo     int // items before this one are in reach
	lastUser int // the last genuine user message in reach, -1 if there is none
	answered int // the last assistant message in reach, -1 if there is none
	step     int // the start of the last step in reach
	omitted  TrimStats
}

func newValve(w *work, items []ContextItem, in ContextInput, counts tokenCounts) *valve {
	v := &valve{work: w, items: items, in: in, counts: counts, lastUser: -1, answered: -1}
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

// reach returns the message of item i, nil if the valve must not change it.
func (v *valve) reach(i int) *Message {
	m := v.items[i].Message
	if m == nil || m.Seq > v.in.ValveUpTo || m.Role == RoleSystem || m.Kind == KindUserInfo || m.Kind == KindSummary {
		return nil
	}
	return m
}

// protected reports whether item i has words of the user that still matter: the last message, and all without an
// answer.
func (v *valve) protected(i int) bool {
	return v.items[i].Message.Genuine() && (i == v.lastUser || i > v.answered)
}

// omitBinaries does in reach what trim does everywhere. A cut would otherwise leave two ends of base64 that are no
// longer recognized.
func (v *valve) omitBinaries() {
	for i := range v.upTo {
		m := v.reach(i)
		if m == nil {
			continue
		}
		edits, more := newEditIndex(v.items[i].Edits), []Edit(nil)
		for j, p := range m.Parts {
			if !ownResult(m, p) {
				continue
			}
			v.spend(partBytes(p))
			view := viewResult(p, edits[j])
			if view.dropped {
				continue
			}
			if n := view.omitBinaries(false); n > 0 {
				more = append(more, view.edits(j)...)
				v.omitted.Binaries += n
			}
		}
		if len(more) > 0 {
			before := v.items[i]
			v.items[i].Edits = withEdits(before.Edits, more)
			v.omitted.SavedTokens += v.counts.item(before) - v.counts.item(v.items[i])
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
		if m == nil || i >= v.step {
			continue
		}
		edits, more := newEditIndex(v.items[i].Edits), []Edit(nil)
		for j, p := range m.Parts {
			if !ownResult(m, p) {
				continue
			}
			v.spend(partBytes(p))
			view := viewResult(p, edits[j])
			text, ok := view.text()
			if view.dropped || !ok {
				continue
			}
			if short, ok := previewResult(text, limit); ok {
				more = append(more, Edit{Part: j, Content: -1, Op: EditReplace, Text: short})
			}
		}
		v.items[i].Edits = withEdits(v.items[i].Edits, more)
	}
}

// squeezable is a text that the head_tail valve may cut, with its size in tokens.
type squeezable struct {
	item, part, content int
	text                string
	size                int
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
		v.spend(bytesOf(*m))
		rest := v.counts.item(v.items[i])
		if !v.protected(i) {
			for _, t := range v.textsOf(i, m, rest) {
				texts, sizes = append(texts, t), append(sizes, t.size)
				rest -= t.size
			}
		}
		fixed += max(rest, 0)
	}
	more := map[int][]Edit{} // by item
	for k, share := range fairShare(sizes, v.budget()-fixed) {
		share = max(share, minSqueezedTokens)
		t := texts[k]
		if share >= t.size {
			continue
		}
		v.spend(len(t.text))
		if short := v.squeezed(t.text, t.size, share); short != t.text {
			more[t.item] = append(more[t.item], Edit{Part: t.part, Content: t.content, Op: EditReplace, Text: short})
		}
	}
	for i, edits := range more {
		v.items[i].Edits = withEdits(v.items[i].Edits, edits)
	}
}

// squeezed returns a text of about size tokens cut to about limit tokens, without its binaries.
func (v *valve) squeezed(text string, size, limit int) string {
	// As in EstimateText, the whole text sets the level, and the weight gives the share of a piece.
	perWeight := float64(size) / float64(max(weighText(text), 1))
	count := func(s string) int { return int(perWeight * float64(weighText(s))) }
	short, binaries := omitBinary(text)
	if binaries > 0 {
		size = EstimateText(short) // base64 has another level
		perWeight = float64(size) / float64(max(weighText(short), 1))
	}
	if size > limit {
		short, size = cutToTokens(short, size, limit, count)
	}
	v.counts.keep(short, size)
	return short
}

// textsOf lists what may be cut of a message of so many tokens: the texts of tool results, and what the agent and its
// runtime wrote. Results inside an assistant message are the vendor's and stay. Texts that are certainly within
// minSqueezedTokens also stay, since no token has less than a byte.
func (v *valve) textsOf(i int, m *Message, tokens int) []squeezable {
	var texts []squeezable
	edits := newEditIndex(v.items[i].Edits)
	add := func(part, content int, text string) {
		if len(text) > minSqueezedTokens {
			texts = append(texts, squeezable{item: i, part: part, content: content, text: text})
		}
	}
	for j, p := range m.Parts {
		switch {
		case p.Kind == PartText && !edits.whole(j):
			add(j, -1, p.Text)
		case ownResult(m, p):
			view := viewResult(p, edits[j])
			if view.dropped {
				continue
			}
			for k, c := range view.contents {
				if view.whole {
					k = -1
				}
				if c.isText && !c.dropped {
					add(j, k, c.text)
				}
			}
		}
	}
	v.measure(texts, v.items[i], tokens)
	return texts
}

// measure fills in the sizes of the texts of an item. Counting the tokens of a whole conversation would be most of the
// cost of the valve, and has been done before: the figure of an item that is unchanged is divided among its texts by
// weight.
func (v *valve) measure(texts []squeezable, item ContextItem, tokens int) {
	if len(texts) > 0 && len(item.Edits) == 0 {
		v.shareOut(item.Message.Parts, tokens-messageOverhead)
	}
	for k := range texts {
		texts[k].size = v.counts.text(texts[k].text)
	}
}

// shareOut divides a figure among the texts of parts that have so many tokens.
func (v *valve) shareOut(parts []Part, tokens int) {
	var texts []string
	var weights []int
	add := func(s string) { texts, weights = append(texts, s), append(weights, weighText(s)) }
	for _, p := range parts {
		switch p.Kind {
		case PartText:
			add(p.Text)
		case PartToolCall:
			tokens -= partOverhead
			add(p.Name)
			add(p.Input)
		case PartToolResult:
			tokens -= partOverhead
			for _, c := range p.Content {
				if c.Kind == PartText {
					add(c.Text)
				} else {
					tokens -= estimatePart(c)
				}
			}
		default:
			tokens -= estimatePart(p)
		}
	}
	perWeight := float64(max(tokens, 0)) / float64(max(sum(weights), 1))
	for i, s := range texts {
		v.counts.keep(s, int(math.Ceil(perWeight*float64(weights[i]))))
	}
}

// budget returns what the squeezed items may take, in tokens.
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
