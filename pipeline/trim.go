package pipeline

import (
	"slices"
	"strings"
)

// TrimStats says what trimming left out of a context.
type TrimStats struct {
	// Binaries is the number of images, files and runs of base64 that were taken out of tool results.
	Binaries int `json:"binaries"`
	// ToolResults is the number of tool results that became previews or were cut to the cap.
	ToolResults int `json:"tool_results"`
	// SavedTokens is what all of this saved, in tokens by the local estimate.
	SavedTokens int `json:"saved_tokens"`
	// DroppedTurns is the number of oldest turns that went for the input budget.
	DroppedTurns int `json:"dropped_turns"`
}

const (
	// previewHeadChars is how much of an old tool result its preview shows, in chars: enough to tell what
	// it was.
	previewHeadChars = 300
	// previewNote ends a preview.
	previewNote = " chars; call the tool again if the rest is needed]"
	// budgetSteps is how finely turns are dropped: an excess over the input budget is rounded up to the next
	// eighth of the budget, so that a growing turn moves the start of the context rarely.
	budgetSteps = 8
)

// Trim makes a context cheaper before it goes to a model. No model is called, and the transcript stays as
// it is: the items come back with edits, in their order, and only what the agent's tools returned is edited.
//
//   - Base64 and raw binary in the text of tool results becomes "[binary omitted: ~138 KB]": no model reads
//     it. So do images and files in tool results once their turn is over; until then the model needs to see
//     them.
//   - A tool result over ToolResultPreviewChars that is older than the last ToolResultKeepTurns user turns
//     becomes a short preview.
//   - A tool result over MaxToolResultTokens keeps its two ends, in any turn.
//   - Past the input budget the oldest turns go whole; never a system message, the environment, the summary
//     and what stands beside it, nor the last turn, and never a call without its result. The budget is
//     MaxInputTokens, none by default: a context that fills its window is for a compaction, and must be seen
//     to be full.
//
// Trimming twice is trimming once. Within a turn nothing changes for an earlier message because a later one
// came, so that a provider's prompt cache holds; only the input budget can break this, when the last turn
// itself outgrows it, and then in steps of an eighth of the budget. Items are shared with the input where
// nothing changed.
func Trim(items []ContextItem, s Settings) ([]ContextItem, TrimStats) {
	return trim(items, s, tokenCounts{})
}

func trim(items []ContextItem, s Settings, counts tokenCounts) ([]ContextItem, TrimStats) {
	t := trimmer{settings: s, turns: turnsOf(items), counts: counts}
	out := items
	for i, item := range items {
		edits, changed := t.trimItem(item, t.turns.of[i])
		if !changed {
			continue
		}
		if !t.copied {
			out = slices.Clone(items)
			t.copied = true
		}
		out[i].Edits = edits
		t.stats.SavedTokens += counts.item(item) - counts.item(out[i])
	}
	if s.MaxInputTokens > 0 {
		out = t.dropTurns(out, s.MaxInputTokens)
	}
	return out, t.stats
}

// noTurn marks the items that belong to no turn: what stands at the head of a context.
const noTurn = -2

// contextTurns says which turn each item belongs to: numbered from 0 by genuine user messages, -1 for what
// stands before the first of them, noTurn for the head.
type contextTurns struct {
	of   []int
	last int
}

func turnsOf(items []ContextItem) contextTurns {
	turns := contextTurns{of: make([]int, len(items)), last: -1}
	for i, item := range items {
		switch {
		case headItem(item):
			turns.of[i] = noTurn
			continue
		case item.Message != nil && item.Message.Genuine():
			turns.last++
		}
		turns.of[i] = turns.last
	}
	return turns
}

// headItem says whether an item is state, not history: system, environment, summary, enrichments.
func headItem(item ContextItem) bool {
	role, kind := RoleSystem, KindOrdinary
	switch {
	case item.Message != nil:
		role, kind = item.Message.Role, item.Message.Kind
	case item.Made != nil:
		if item.Made.Role != RoleTool {
			return true
		}
		role, kind = item.Made.Role, item.Made.Kind
	}
	return role == RoleSystem || kind == KindUserInfo || kind == KindSummary
}

type trimmer struct {
	settings Settings
	turns    contextTurns
	stats    TrimStats
	counts   tokenCounts
	copied   bool
	// most is the cap on the results of the message at hand, in tokens, 0 for none.
	most int
}

// trimItem gives the edits of an item after trimming, and whether they differ from those it has.
func (t *trimmer) trimItem(item ContextItem, turn int) ([]Edit, bool) {
	m := item.Message
	if m == nil || turn == noTurn || m.Role == RoleSystem {
		return nil, false
	}
	// A message of that few tokens holds no result over the cap: no need to count again.
	t.most = t.settings.MaxToolResultTokens
	if m.Tokens > 0 && m.Tokens <= t.most {
		t.most = 0
	}
	edits, changed := item.Edits, false
	for i, p := range m.Parts {
		if !ownResult(m, p) {
			continue
		}
		view := viewResult(p, i, edits)
		if view.dropped || !t.trimResult(&view, turn) {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(edits), func(e Edit) bool { return e.Part == i })
		edits, changed = append(kept, view.edits(i)...), true
	}
	return edits, changed
}

// ownResult says whether a part is what a tool of the agent returned. A result inside an assistant message is the
// vendor's own, with encrypted content that goes back as it came; but some agents store a call and its result as
// one, and theirs have the type "tool_result".
func ownResult(m *Message, p Part) bool {
	return p.Kind == PartToolResult && (m.Role != RoleAssistant || p.Type == "tool_result")
}

// resultView is a tool result as the edits so far leave it.
type resultView struct {
	contents []contentView
	// whole says that one text stands for the whole result.
	whole   bool
	dropped bool
}

// contentView is one piece of a tool result: text, or a part that is none.
type contentView struct {
	part   Part
	text   string
	isText bool
	edited bool
	gone   bool // dropped by an edit
}

func viewResult(p Part, index int, edits []Edit) resultView {
	var view resultView
	for _, c := range p.Content {
		view.contents = append(view.contents, contentView{part: c, text: c.Text, isText: c.Kind == PartText})
	}
	// One piece is the whole: then a single edit says it all.
	view.whole = len(p.Content) == 1
	for _, e := range edits {
		switch {
		case e.Part != index:
		case e.Op == EditDrop && e.Content < 0:
			view.dropped = true
		case e.Content < 0:
			view.contents = []contentView{{text: e.Text, isText: true, edited: true}}
			view.whole = true
		case e.Content < len(view.contents):
			view.contents[e.Content] = contentView{text: e.Text, isText: true, edited: true, gone: e.Op == EditDrop}
		}
	}
	return view
}

// edits says how the view differs from the stored part.
func (v resultView) edits(part int) []Edit {
	var edits []Edit
	for i, c := range v.contents {
		switch {
		case !c.edited:
			continue
		case c.gone:
			edits = append(edits, Edit{Part: part, Content: i, Op: EditDrop})
			continue
		case v.whole:
			i = -1
		}
		edits = append(edits, Edit{Part: part, Content: i, Op: EditReplace, Text: c.text})
	}
	return edits
}

// text is the result as one text. ok is false when something in it is no text.
func (v resultView) text() (text string, ok bool) {
	if len(v.contents) == 1 {
		return v.contents[0].text, v.contents[0].isText
	}
	texts := make([]string, 0, len(v.contents))
	for _, c := range v.contents {
		switch {
		case !c.isText:
			return "", false
		case !c.gone:
			texts = append(texts, c.text)
		}
	}
	return strings.Join(texts, "\n"), true
}

// trimResult applies the rules to one tool result and says whether any of them did something.
func (t *trimmer) trimResult(view *resultView, turn int) bool {
	binaries := view.omitBinaries(turn < t.turns.last)
	cut := t.preview(view, turn)
	cut = t.capTokens(view) || cut
	if binaries == 0 && !cut {
		return false
	}
	t.stats.Binaries += binaries
	if cut {
		t.stats.ToolResults++
	}
	return true
}

// omitBinaries takes out base64, and with media also images and files, and counts them. Texts of ours are
// not looked at: what a cut leaves of a text may look like binary where the text did not.
func (v *resultView) omitBinaries(media bool) int {
	binaries := 0
	for i, c := range v.contents {
		var text string
		var n int
		switch {
		case c.edited:
		case c.isText:
			text, n = OmitBinary(c.text)
		case media && c.part.Bytes > 0 && c.part.Text == "" && (c.part.Kind == PartImage || c.part.Kind == PartFile):
			text, n = renderBinary(c.part)
		}
		if n > 0 {
			v.contents[i] = contentView{text: text, isText: true, edited: true}
			binaries += n
		}
	}
	return binaries
}

// preview shortens a large result of an old turn.
func (t *trimmer) preview(view *resultView, turn int) bool {
	keep := t.settings.ToolResultKeepTurns
	if keep <= 0 || turn > t.turns.last-keep {
		return false
	}
	text, ok := view.text()
	if !ok {
		return false
	}
	short, ok := previewResult(text, t.settings.ToolResultPreviewChars)
	if !ok {
		return false
	}
	*view = resultView{contents: []contentView{{text: short, isText: true, edited: true}}, whole: true}
	return true
}

// previewResult gives the preview of a tool result over limit chars; ok is false when it is not over, is a
// preview already, or would not get smaller: fewer chars can be more tokens where the note is most of them.
func previewResult(text string, limit int) (preview string, ok bool) {
	total := Chars(text)
	if total <= limit || strings.HasSuffix(text, previewNote) {
		return "", false
	}
	head := min(previewHeadChars, max(limit, 0)/2)
	preview = text[:byteOffset(text, total, head)] + "\n" +
		strings.TrimSuffix(truncatedMarker(total-head), " chars]") + previewNote
	size := Chars(preview)
	const clearly = 8 // times as long as its preview, a text has more tokens
	return preview, size < total && (total > clearly*size || EstimateText(preview) < EstimateText(text))
}

// capTokens cuts the texts of a result so that they share the cap fairly, each with one token at least.
func (t *trimmer) capTokens(view *resultView) bool {
	limit := t.most
	if limit <= 0 {
		return false
	}
	texts, over := 0, make([]int, len(view.contents)) // over: the tokens beyond that one
	for i, c := range view.contents {
		if c.isText && c.text != "" {
			texts++
			over[i] = max(EstimateText(c.text)-1, 0)
		}
	}
	limit = max(limit-texts, 0)
	if sum(over) <= limit {
		return false
	}
	for i, share := range FairShare(over, limit) {
		if share < over[i] {
			text, tokens := cutToTokens(view.contents[i].text, over[i]+1, share+1, EstimateText)
			t.counts.keep(text, tokens)
			view.contents[i] = contentView{text: text, isText: true, edited: true}
		}
	}
	return true
}

// leastText is the least that is left of a text, one token: some APIs refuse an empty one.
const leastText = "…"

// markerTokens is about what the marker of a cut takes, in tokens, and markerChars in chars.
const (
	markerTokens = 9
	markerChars  = 25
)

// cutToTokens keeps both ends of a text of size tokens, so that it is at most limit tokens as they are counted, or
// leastText. It gives the size of that as well.
func cutToTokens(text string, size, limit int, count func(string) int) (short string, tokens int) {
	chars := Chars(text)
	aim := func(keep, limit, size int) int { return int(float64(keep) * float64(limit) / float64(size) * 0.98) }
	keep := aim(chars, limit, size)
	if limit > 2*markerTokens {
		keep = aim(chars, limit-markerTokens, size) + markerChars
	}
	for keep = min(keep, chars-1); keep > 0; keep = min(keep-1, aim(keep, limit, tokens)) {
		// Tokens are not spread evenly: aim, measure, and aim a little lower.
		short = headAndTailCounted(text, chars, keep)
		if tokens = count(short); tokens <= limit {
			return short, tokens
		}
	}
	return leastText, 1
}

// dropTurns leaves out the oldest turns until the rest is within budget.
func (t *trimmer) dropTurns(items []ContextItem, budget int) []ContextItem {
	tokens := make([]int, t.turns.last+2) // of each turn, from -1
	total := 0
	for i, item := range items {
		n := t.counts.item(item)
		total += n
		if turn := t.turns.of[i]; turn != noTurn {
			tokens[turn+1] += n
		}
	}
	if total <= budget {
		return items
	}
	mayCut := t.cuts(items)
	step := max(1, budget/budgetSteps)
	excess := (total - budget + step - 1) / step * step
	cut, freed := -1, 0 // cut: the last turn that goes, as an index into tokens
	for turn, upTo := 0, 0; turn < len(tokens)-1 && freed < excess; turn++ {
		upTo += tokens[turn]
		if mayCut[turn] {
			cut, freed = turn, upTo
		}
	}
	if freed == 0 {
		return items
	}
	kept := make([]ContextItem, 0, len(items))
	dropped := map[int]bool{}
	for i, item := range items {
		turn := t.turns.of[i]
		if turn == noTurn || turn+1 > cut {
			kept = append(kept, item)
			continue
		}
		dropped[turn] = true
	}
	t.stats.DroppedTurns = len(dropped)
	t.stats.SavedTokens += freed
	return kept
}

// cuts says after which turns the history may be cut, as indexes from turn -1: where no call would lose its
// result, and no user message goes that nobody has answered.
func (t *trimmer) cuts(items []ContextItem) []bool {
	may := make([]bool, t.turns.last+2)
	messages := make([]Message, len(items))
	for i, item := range items {
		switch {
		case item.Message != nil:
			messages[i] = *item.Message
			messages[i].Parts = sentParts(item)
		case item.Made.Role == RoleTool:
			messages[i] = Message{Role: RoleTool, Parts: []Part{{Kind: PartToolResult, CallID: item.Made.CallID}}}
		}
		if turn := t.turns.of[i]; turn != noTurn && !messages[i].Genuine() {
			may[turn+1] = true
		}
	}
	for _, pair := range Pair(messages).Pairs {
		from, to := t.turns.of[pair.Call.Message], t.turns.of[pair.Result.Message]
		for turn := from; turn < to; turn++ {
			may[turn+1] = false
		}
	}
	return may
}

// sentParts are the parts of a message that its edits do not drop.
func sentParts(item ContextItem) []Part {
	parts := item.Message.Parts
	if !slices.ContainsFunc(item.Edits, dropsPart) {
		return parts
	}
	var kept []Part
	for i, p := range parts {
		if !slices.ContainsFunc(item.Edits, func(e Edit) bool { return e.Part == i && dropsPart(e) }) {
			kept = append(kept, p)
		}
	}
	return kept
}

func dropsPart(e Edit) bool { return e.Content < 0 && e.Op == EditDrop }
