package pipeline

import "slices"

// noTurn marks the items that belong to no turn: those at the head of a context.
const noTurn = -2

// contextTurns has the turn of each item: numbered from 0 by genuine user messages, -1 before the first of them, noTurn
// for the head.
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

// headItem reports whether an item is state rather than history: system, environment, summary, enrichments.
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

// dropTurns drops the oldest turns until the rest is within budget.
func (t *trimmer) dropTurns(items []ContextItem, budget int) []ContextItem {
	tokens := make([]int, t.turns.last+2) // of each turn, from -1
	total := 0
	for i, item := range items {
		t.spend(itemBytes(item))
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
	cut, freed := -1, 0 // cut: the last turn that is dropped, as an index into tokens
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

// cuts reports after which turns the history may be cut, as indexes from turn -1: where no call would lose its result,
// and no user message without an answer is dropped.
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
	open := make([]int, len(may)+1) // by how much the number of open calls changes with each turn
	for _, pair := range pair(t.work, messages).Pairs {
		from, to := t.turns.of[pair.Call.Message], t.turns.of[pair.Result.Message]
		if from < to {
			open[from+1]++
			open[to+1]--
		}
	}
	calls := 0
	for turn := range may {
		if calls += open[turn]; calls > 0 {
			may[turn] = false
		}
	}
	return may
}

// sentParts returns the parts of a message that its edits do not drop.
func sentParts(item ContextItem) []Part {
	parts := item.Message.Parts
	if !slices.ContainsFunc(item.Edits, dropsPart) {
		return parts
	}
	var kept []Part
	edits := newEditIndex(item.Edits)
	for i, p := range parts {
		if !slices.ContainsFunc(edits[i], dropsPart) {
			kept = append(kept, p)
		}
	}
	return kept
}

func dropsPart(e Edit) bool { return e.Content < 0 && e.Op == EditDrop }
