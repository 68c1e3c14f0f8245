package pipeline

// division is a partition in progress. Its positions count the conversation without system messages and environment,
// including the prior summary.
type division struct {
	*work
	in               PartitionInput
	system, userInfo []int
	conv             []Message
	index            []int // of conv's messages in in.Messages
	pairing          Pairing
	after            []int // after[p] is the size in tokens of conv[p:]
	warnings         []ShapeWarning

	lastUser   int // -1 if there is none
	unanswered int // the first user message without an answer, len(conv) if there is none
	pending    int // start of the step that the model has not read, len(conv) if there is none
	floor      int // the latest split that keeps both in the tail; used to summarize everything
	lastOrphan int // the last result without a call that a split can move behind, -1 if there is none
}

func newDivision(w *work, in PartitionInput) *division {
	d := &division{work: w, in: in}
	head := true
	for i, m := range in.Messages {
		w.spend(0)
		switch {
		case head && m.Role == RoleSystem:
			d.system = append(d.system, i)
			continue
		case head && m.Kind == KindUserInfo:
			d.userInfo = append(d.userInfo, i)
			continue
		case m.Kind != KindSummary:
			head = false
		}
		d.conv = append(d.conv, m)
		d.index = append(d.index, i)
	}
	n := len(d.conv)
	d.pairing = pair(w, d.conv)
	d.after = make([]int, n+1)
	for p := n - 1; p >= 0; p-- {
		tokens := d.conv[p].Tokens
		if tokens == 0 {
			w.spend(bytesOf(d.conv[p]))
			tokens = EstimateMessage(d.conv[p])
		}
		d.after[p] = d.after[p+1] + scale(tokens, clampRatio(in.Calibration))
	}
	d.findUsers()
	d.findPending()
	d.lastOrphan = -1
	d.floor = d.back(min(d.unanswered, d.pending))
	for _, orphan := range d.pairing.Orphans {
		if orphan.Message < d.floor {
			d.lastOrphan = orphan.Message
		}
	}
	return d
}

func (d *division) findUsers() {
	d.lastUser, d.unanswered = -1, len(d.conv)
	answered := false
	for p := len(d.conv) - 1; p >= 0; p-- {
		m := d.conv[p]
		answered = answered || m.Role == RoleAssistant
		if !m.Genuine() {
			continue
		}
		if d.lastUser < 0 {
			d.lastUser = p
		}
		if answered {
			break
		}
		d.unanswered = p
	}
}

// findPending looks for a last step with results that the model has not read, or that are still to come.
func (d *division) findPending() {
	d.pending = len(d.conv)
	last := len(d.conv) - 1
	for last >= 0 && d.conv[last].Role != RoleAssistant {
		last--
	}
	if last < 0 {
		return
	}
	first := last
	for first > 0 && d.conv[first-1].Role == RoleAssistant {
		first--
	}
	for _, pair := range d.pairing.Pairs {
		if pair.Call.Message >= first && pair.Result.Message > last {
			d.pending = first
		}
	}
	for _, call := range d.pairing.Unanswered {
		if call.Message >= first {
			d.pending = first
		}
	}
}

// whole reports whether a split at p separates no call from its result.
func (d *division) whole(p int) bool {
	switch {
	case p <= 0, p >= len(d.conv):
		return true
	case d.pairing.OpenAfter(p - 1):
		return false
	}
	role := d.conv[p].Role
	return role != RoleTool && !(role == RoleAssistant && d.conv[p-1].Role == RoleAssistant)
}

// sound reports whether a split at p is whole and leaves no result without its call in the tail.
func (d *division) sound(p int) bool { return p > d.lastOrphan && d.whole(p) }

// back returns the nearest whole split at or before p.
func (d *division) back(p int) int {
	for !d.whole(p) {
		p--
	}
	return p
}

// guard returns the last position at which a split means that everything is summarized.
func (d *division) guard() int {
	if d.in.Settings.RelaxedSplitGuard {
		return 0
	}
	return 1
}

// split returns where the tail begins.
func (d *division) split() int {
	if d.in.Full {
		return d.floor
	}
	wanted := min(d.lastUser, d.unanswered) // -1: no user message
	split := wanted
	if wanted >= 0 {
		split = d.repair(wanted)
	}
	if from := max(split, d.firstSaid()); d.overBudget(from) {
		split = d.forward(from)
	}
	if split <= d.guard() {
		split = d.floor
	}
	return split
}

// firstSaid returns the position behind the prior summary.
func (d *division) firstSaid() int {
	if d.hasPrior() {
		return 1
	}
	return 0
}

func (d *division) hasPrior() bool { return len(d.conv) > 0 && d.conv[0].Kind == KindSummary }

// repair moves a split to the nearest sound one and adds a warning: back, so that more stays verbatim, or forward if
// there is none behind it that the guard accepts.
func (d *division) repair(wanted int) int {
	if d.sound(wanted) {
		return wanted
	}
	d.warn(wanted)
	for p := wanted; p > d.guard(); p-- {
		if d.sound(p) {
			return p
		}
	}
	for p := wanted; p <= d.floor; p++ {
		if d.sound(p) {
			return p
		}
	}
	return d.guard()
}

// warn adds a warning about a tail that begins at p.
func (d *division) warn(p int) {
	w := ShapeWarning{
		Code: tailShapeInvalid,
		Detail: "the tail would have parted tool calls from their results; " +
			"the split was moved to where no call is open",
	}
	for _, pair := range d.pairing.Pairs {
		if pair.Call.Message < p && pair.Result.Message >= p {
			w.CallIDs = append(w.CallIDs, pair.Call.ID)
		}
	}
	for _, call := range d.pairing.Unanswered {
		if call.Message < p && !d.pairing.Dead(call) {
			w.CallIDs = append(w.CallIDs, call.ID)
		}
	}
	for _, orphan := range d.pairing.Orphans {
		if orphan.Message >= p {
			w.CallIDs = append(w.CallIDs, orphan.ID)
		}
	}
	d.warnings = append(d.warnings, w)
}

// newest returns the highest Seq.
func (d *division) newest() int64 {
	var newest int64
	for _, m := range d.conv {
		newest = max(newest, m.Seq)
	}
	return newest
}

// indexOf returns the index of the message at position p.
func (d *division) indexOf(p int) int {
	if p < len(d.index) {
		return d.index[p]
	}
	return len(d.in.Messages)
}
