package pipeline

import (
	"slices"
	"strings"
)

// PartitionInput is what is to be divided.
type PartitionInput struct {
	// Messages is what is live: the summary of the active marker first, if there is one, with Seq 0 and
	// KindSummary, then what that marker kept and what came since. System messages and the environment
	// message may stand before or after the summary.
	Messages []Message
	Settings Settings
	// Full asks for everything to be summarized.
	Full bool
	// Window is the model's context window in tokens, 0 when unknown: the tail has no budget then.
	Window int
	// Calibration is the trigger's, for the sizes of messages; 0: none.
	Calibration float64
	// SeenSeq is the newest message at the time when the active marker was applied, 0 without a marker.
	SeenSeq int64
	// Again says that a new focus, model or prompt was given, so that the same messages may be summarized
	// once more.
	Again bool
}

// What there is nothing to do for.
const (
	NothingEmpty            = "empty"             // no message holds anything
	NothingAllProtected     = "all_protected"     // everything has to stay verbatim
	NothingAlreadyCompacted = "already_compacted" // nothing but the last summary and what it left
)

// ShapeWarning reports a tail that could not be taken as it was.
type ShapeWarning struct {
	Code string `json:"code"`
	// CallIDs of the calls and results at fault, in order.
	CallIDs []string `json:"call_ids"`
	// Detail is one sentence on what was wrong and what was done.
	Detail string `json:"detail"`
}

// TailShapeInvalid is the code of the only warning there is.
const TailShapeInvalid = "tail_shape_invalid"

// Partition divides messages into those that stay in front, those that are summarized and those that stay
// verbatim behind the summary. All of its lists are indexes into the messages, ascending, except that
// ToSummarize ends with the last user message under preserveLastUser. System, UserInfo, ToSummarize and Tail
// hold every message once; what is in Carried, and that last user message, stands twice.
type Partition struct {
	System, UserInfo []int
	// ToSummarize begins with the prior summary, if there is one.
	ToSummarize []int
	// Tail stays as it is, byte for byte.
	Tail []int
	// Carried is summarized and stays verbatim as well, ahead of the tail: the user message of the turn that
	// the split is inside of, or the last one of all when the tail would hold none.
	Carried []int
	// Split is the index of the first message of the tail, the number of messages when it is empty.
	Split int
	// CoversFrom and CoversTo are the first and last Seq that is summarized, 0 when there is none.
	CoversFrom, CoversTo int64
	// Skills are the skill blocks found in what is summarized, each once.
	Skills   []string
	Warnings []ShapeWarning
	// Nothing says why there is nothing to summarize, empty when there is something. A context over its limit
	// with nothing to summarize can still be made smaller by a TailValve.
	Nothing string
}

// minWorthTokens is the least that is worth a summary when it holds nothing that the user said: the frame
// of the summary message alone costs about as much.
const minWorthTokens = 64

// PartitionMessages divides the live messages.
//
// The tail begins at the last genuine user message, or at the first that nobody has answered. A split at or
// before the first message (the guard; counted without system, user info) or Full means that everything is
// summarized. What the agent is in the middle of stays in the tail even then: user messages without an
// answer, and a step whose results the model has not read, be they there or still to come.
//
// A tail over its budget gives up its older steps: the split moves forward to a step boundary, and the turn's
// user message is carried. The same boundaries serve a conversation without any user message.
//
// No split tears a call from its results (see Pairing). A call that will never be answered does not hold
// the split back. A result without a call moves the split behind it, unless it is part of the step that the
// model has still to read.
func PartitionMessages(in PartitionInput) Partition {
	d := newDivision(in)
	if !d.anyContent() {
		return d.nothing(NothingEmpty)
	}
	if in.SeenSeq > 0 && !in.Again && d.newest() <= in.SeenSeq {
		return d.nothing(NothingAlreadyCompacted)
	}
	split := d.split()
	carried := d.carried(split)
	if !d.worthIt(split, carried) {
		if d.hasPrior() {
			return d.nothing(NothingAlreadyCompacted)
		}
		return d.nothing(NothingAllProtected)
	}
	return d.result(split, carried)
}

// UnderWay says whether the agent is in the middle of something: the last thing said is a message to it, or
// a call whose result it has not answered to. What the runtime injects beside the conversation says nothing.
func UnderWay(messages []Message) bool {
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		switch {
		case m.Kind == KindReminder, m.Kind == KindUserInfo, m.Kind == KindSummary, m.Role == RoleSystem:
		case m.Role == RoleAssistant:
			return len(m.Calls()) > len(m.Results())
		default:
			return true
		}
	}
	return false
}

// division is a partition in the making. Its positions count the conversation without system messages and
// environment, the prior summary included.
type division struct {
	in               PartitionInput
	system, userInfo []int
	conv             []Message
	index            []int // of conv's messages in in.Messages
	pairing          Pairing
	after            []int // after[p] is the size in tokens of conv[p:]
	warnings         []ShapeWarning

	lastUser   int // -1 when there is none
	unanswered int // the first user message that nobody answered, len(conv) when there is none
	pending    int // where the step begins that the model has not read, len(conv) when there is none
	floor      int // the latest split that keeps both in the tail: what summarizes everything splits here
	lastOrphan int // the last result without a call that a split can be moved behind, -1 when there is none
}

func newDivision(in PartitionInput) *division {
	d := &division{in: in}
	head := true
	for i, m := range in.Messages {
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
	d.pairing = Pair(d.conv)
	d.after = make([]int, n+1)
	for p := n - 1; p >= 0; p-- {
		tokens := d.conv[p].Tokens
		if tokens == 0 {
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

// findPending looks for a last step whose results wait for the model, or are still to come.
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

// whole says whether a split at p tears nothing apart.
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

// sound says whether a split at p is whole and leaves no result without its call.
func (d *division) sound(p int) bool { return p > d.lastOrphan && d.whole(p) }

// back is the nearest whole split at p or before.
func (d *division) back(p int) int {
	for !d.whole(p) {
		p--
	}
	return p
}

// guard is the position at which and before which a split means that everything is summarized.
func (d *division) guard() int {
	if d.in.Settings.RelaxedSplitGuard {
		return 0
	}
	return 1
}

// split finds where the tail begins.
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

// firstSaid is the position behind the prior summary.
func (d *division) firstSaid() int {
	if d.hasPrior() {
		return 1
	}
	return 0
}

func (d *division) hasPrior() bool { return len(d.conv) > 0 && d.conv[0].Kind == KindSummary }

// repair moves a split to the nearest sound one and reports that it had to: back, so that more stays
// verbatim, and forward where there is none behind it that the guard lets stand.
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

// warn reports what is wrong with a tail that begins at p.
func (d *division) warn(p int) {
	w := ShapeWarning{
		Code: TailShapeInvalid,
		Detail: "the tail would have parted tool calls from their results; the split was moved to where no call is " +
			"open",
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

// tailBudget is the most that the tail may take of a window, in tokens; 0 of a window of 0.
func tailBudget(s Settings, window int) int {
	fraction := s.TailMaxFraction
	if !(fraction > 0 && fraction <= 1) {
		fraction = DefaultSettings().TailMaxFraction
	}
	return floorShare(max(window, 0), fraction)
}

// overBudget says whether the tail from p, with the user message that would be carried, is too large.
func (d *division) overBudget(p int) bool {
	size := d.after[p]
	if d.lastUser >= 0 && d.lastUser < p {
		size += d.after[d.lastUser] - d.after[d.lastUser+1]
	}
	budget := tailBudget(d.in.Settings, d.in.Window)
	return budget > 0 && size > budget
}

// forward is the first step boundary behind p from which the tail is within its budget, and the last one
// possible where there is none.
func (d *division) forward(p int) int {
	for q := p + 1; q <= d.floor; q++ {
		if d.sound(q) && !d.overBudget(q) {
			return q
		}
	}
	return d.floor
}

// carried lists the user messages in front of the split that stay verbatim. Those that nobody has answered are
// never in front of it.
func (d *division) carried(split int) []int {
	if d.lastUser >= 0 && d.lastUser < split {
		return []int{d.lastUser}
	}
	return nil
}

// worthIt says whether a summary of what is in front of the split would stand for anything that does not
// stay anyway.
func (d *division) worthIt(split int, carried []int) bool {
	tokens := 0
	for p := 0; p < split; p++ {
		m := d.conv[p]
		if slices.Contains(carried, p) || m.Kind != KindOrdinary || !hasContent(m) {
			continue
		}
		if m.Genuine() {
			return true
		}
		tokens += d.after[p] - d.after[p+1]
	}
	if d.in.Again && d.hasPrior() && split > 0 {
		return true
	}
	return tokens >= minWorthTokens
}

func (d *division) anyContent() bool {
	for _, m := range d.conv {
		if hasContent(m) {
			return true
		}
	}
	return false
}

// newest is the highest Seq there is.
func (d *division) newest() int64 {
	var newest int64
	for _, m := range d.conv {
		newest = max(newest, m.Seq)
	}
	return newest
}

// nothing leaves everything where it is.
func (d *division) nothing(why string) Partition {
	return Partition{
		System: d.system, UserInfo: d.userInfo, Tail: d.index,
		Split: d.indexOf(0), Warnings: d.warnings, Nothing: why,
	}
}

func (d *division) result(split int, carried []int) Partition {
	p := Partition{
		System:      d.system,
		UserInfo:    d.userInfo,
		ToSummarize: append([]int(nil), d.index[:split]...),
		Tail:        d.index[split:],
		Split:       d.indexOf(split),
		Warnings:    d.warnings,
	}
	for _, c := range carried {
		p.Carried = append(p.Carried, d.index[c])
	}
	for _, m := range d.conv[:split] {
		if m.Seq <= 0 {
			continue
		}
		if p.CoversFrom == 0 {
			p.CoversFrom = m.Seq
		}
		p.CoversTo = max(p.CoversTo, m.Seq)
	}
	p.Skills = skillBlocks(d.conv[:split])
	if d.in.Settings.PreserveLastUser && !d.in.Full && d.lastUser >= split {
		p.ToSummarize = append(p.ToSummarize, d.index[d.lastUser])
	}
	return p
}

// indexOf is the index of the message at position p.
func (d *division) indexOf(p int) int {
	if p < len(d.index) {
		return d.index[p]
	}
	return len(d.in.Messages)
}

// hasContent says whether a message holds anything at all.
func hasContent(m Message) bool {
	for _, p := range m.Parts {
		if p.Kind != PartText && p.Kind != PartReasoning || strings.TrimSpace(p.Text) != "" {
			return true
		}
	}
	return false
}

// skillBlocks gives the "<skill…>…</skill…>" elements in the texts of messages, each once, in order.
func skillBlocks(messages []Message) []string {
	var blocks []string
	seen := map[string]bool{}
	scan := func(text string) {
		unclosed := map[string]bool{}
		for {
			at := strings.Index(text, "<skill")
			if at < 0 {
				return
			}
			text = text[at:]
			name := text[1:]
			if end := strings.IndexAny(name, " \t\r\n/>"); end >= 0 {
				name = name[:end]
			}
			closing := "</" + name + ">"
			end := -1
			if !unclosed[name] {
				end = strings.Index(text, closing)
			}
			if end < 0 {
				unclosed[name] = true // nor will a later one be, in this text: the search stays linear
				text = text[1:]
				continue
			}
			block := text[:end+len(closing)]
			text = text[len(block):]
			if !seen[block] {
				seen[block] = true
				blocks = append(blocks, block)
			}
		}
	}
	for _, m := range messages {
		if m.Kind == KindSummary {
			continue
		}
		for _, p := range m.Parts {
			if p.Kind == PartText {
				scan(p.Text)
			}
			for _, c := range p.Content {
				scan(c.Text)
			}
		}
	}
	return blocks
}
