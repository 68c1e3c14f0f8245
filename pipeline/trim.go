package pipeline

import "slices"

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
	// previewHeadChars is how much of an old tool result its preview shows, in chars: enough to see what
	// it was.
	previewHeadChars = 300
	// previewNote ends a preview.
	previewNote = " chars; call the tool again if the rest is needed]"
	// budgetSteps is how finely turns are dropped: an excess over the input budget is rounded up to the next
	// eighth of the budget, so that a growing turn moves the start of the context rarely.
	budgetSteps = 8
)

// trim makes a context cheaper before it goes to a model. No model is called, and the transcript stays as
// it is: the items come back with edits, in their order, and only what the agent's tools returned is edited.
//
//   - Base64 and raw binary in the text of tool results becomes "[binary omitted: ~138 KB]": no model reads
//     it. So do images and files in tool results once their turn is over; until then the model needs to see
//     them.
//   - A tool result over ToolResultPreviewChars that is older than the last ToolResultKeepTurns user turns
//     becomes a short preview.
//   - A tool result over MaxToolResultTokens keeps its two ends, in any turn.
//   - Past the input budget the oldest turns go whole; never a system message, the environment, the summary
//     and the live state beside it, nor the last turn, and never a call without its result. The budget is
//     MaxInputTokens, none by default: a context that fills its window is for a compaction, and must be seen
//     to be full.
//
// Trimming twice is trimming once. Within a turn nothing changes for an earlier message because a later one
// came, so that a provider's prompt cache holds; only the input budget can break this, when the last turn
// itself outgrows it, and then in steps of an eighth of the budget. Items are shared with the input where
// nothing changed.
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

type trimmer struct {
	settings Settings
	turns    contextTurns
	stats    TrimStats
	counts   tokenCounts
	copied   bool
	// most is the cap on the results of the message at hand, in tokens, 0 for none.
	most int
}

// trimItem returns the edits of an item after trimming, and whether they differ from those it has.
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
	for i, share := range fairShare(over, limit) {
		if share < over[i] {
			text, tokens := cutToTokens(view.contents[i].text, over[i]+1, share+1, EstimateText)
			t.counts.keep(text, tokens)
			view.contents[i] = contentView{text: text, isText: true, edited: true}
		}
	}
	return true
}
