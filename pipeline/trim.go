package pipeline

import "slices"

// TrimStats counts what trimming left out of a context.
type TrimStats struct {
	// Binaries is the number of images, files and runs of base64 that were removed from tool results.
	Binaries int `json:"binaries"`
	// ToolResults is the number of tool results that became previews or were cut to the cap.
	ToolResults int `json:"tool_results"`
	// SavedTokens is what all of this saved, in tokens by the local estimate.
	SavedTokens int `json:"saved_tokens"`
	// DroppedTurns is the number of oldest turns that were dropped for the input budget.
	DroppedTurns int `json:"dropped_turns"`
}

const (
	// previewHeadChars is how much of an old tool result its preview shows, in chars: enough to recognize it.
	previewHeadChars = 300
	// previewNote ends a preview.
	previewNote = " chars; call the tool again if the rest is needed]"
	// budgetSteps is how finely turns are dropped. An excess over the input budget is rounded up to the next eighth of
	// the budget, so that a growing turn rarely moves the start of the context.
	budgetSteps = 8
)

// trim makes a context cheaper before it is sent to a model. It calls no model and leaves the transcript as it is: the
// items are returned in order, with edits, and only results of the agent's tools are edited.
//
//   - Base64 and raw binary in the text of tool results becomes "[binary omitted: ~138 KB]": no model reads
//     it. Images and files in tool results are also replaced, but only after their turn: until then the model
//     needs to see them.
//   - A tool result over ToolResultPreviewChars that is older than the last ToolResultKeepTurns user turns
//     becomes a short preview.
//   - A tool result over MaxToolResultTokens keeps both ends, in any turn.
//   - Past the input budget the oldest turns are dropped whole, but never a system message, the environment, the
//     summary and the live state beside it, the last turn, or a call without its result. The budget is
//     MaxInputTokens, none by default: a context that fills its window needs a compaction, and must count as
//     full.
//
// Trimming twice has the same result as trimming once. Within a turn an earlier message does not change because of a
// later one, so that the vendor's prompt cache stays valid. Only the input budget can break this, when the last turn
// alone exceeds it, and then in steps of an eighth of the budget. Items without a change are shared with the input.
func trim(w *work, items []ContextItem, s Settings, counts tokenCounts) ([]ContextItem, TrimStats) {
	t := trimmer{work: w, settings: s, turns: turnsOf(items), counts: counts}
	out := items
	for i, item := range items {
		w.spend(0)
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

type trimmer struct {
	*work
	settings Settings
	turns    contextTurns
	stats    TrimStats
	counts   tokenCounts
	copied   bool
	// most is the cap on the results of the current message, in tokens, 0 for none.
	most int
}

// trimItem returns the edits of an item after trimming, and whether they differ from those it has.
func (t *trimmer) trimItem(item ContextItem, turn int) ([]Edit, bool) {
	m := item.Message
	if m == nil || turn == noTurn || m.Role == RoleSystem {
		return nil, false
	}
	// A message of so few tokens has no result over the cap: no need to count again.
	t.most = t.settings.MaxToolResultTokens
	if m.Tokens > 0 && m.Tokens <= t.most {
		t.most = 0
	}
	before := newEditIndex(item.Edits)
	var more []Edit
	for i, p := range m.Parts {
		if !ownResult(m, p) {
			continue
		}
		t.spend(partBytes(p))
		view := viewResult(p, before[i])
		if view.dropped || !t.trimResult(&view, turn) {
			continue
		}
		more = append(more, view.edits(i)...)
	}
	return withEdits(item.Edits, more), len(more) > 0
}

// trimResult applies the rules to one tool result and reports whether any of them changed it.
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

// capTokens cuts the texts of a result so that they share the cap fairly, each with at least one token.
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
	for i, share := range fairShare(over, limit) {
		if share < over[i] {
			text, tokens := cutToTokens(view.contents[i].text, over[i]+1, share+1, EstimateText)
			t.counts.keep(text, tokens)
			view.contents[i] = contentView{text: text, isText: true, edited: true}
		}
	}
	return true
}
