package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SlimInput is what is to be shown to a summarizer.
type SlimInput struct {
	// Messages in order, a prior summary (KindSummary) first if there is one.
	Messages []Message
	// BudgetChars bounds the result, in chars, its own notes and wrappers counted in.
	BudgetChars int
	// ToolDropThreshold is the share of tool messages from which they go first; over 1 they never do. Default
	// ToolMessageDropThreshold.
	ToolDropThreshold float64
	// MinUsefulChars is the least that a cut message is left with. Default DefaultMinUsefulChars.
	MinUsefulChars int
	// TranscriptHint says where the full transcript is, "" when nowhere. Its first 500 chars are used.
	TranscriptHint string
	// Redact takes secrets out of a text; nil: none. It sees every text whole, before anything is cut.
	Redact func(string) string
}

// Share is the input for a summarizer that is to see no more than a share, up to 1, of what it would: of the
// budget, or of what the messages take where that is less, so that what was refused as too large is not sent again.
func (in SlimInput) Share(share float64) SlimInput {
	if share < 1 {
		in.BudgetChars = int(float64(min(in.BudgetChars, Slim(in).Chars)) * share)
	}
	return in
}

// Fate is what became of a message that a summarizer does not see whole.
type Fate string

// The fates.
const (
	FateCut          Fate = "cut"           // its start, or both ends, are there
	FateOmitted      Fate = "omitted"       // a placeholder stands for it, or for it and its neighbors
	FateToolsDropped Fate = "tools_dropped" // its tool calls or results went; what it says stayed
)

// Omission is one message that a summarizer does not see whole.
type Omission struct {
	Seq  int64 `json:"seq"`
	Role Role  `json:"role"`
	// Chars is what the message has, rendered.
	Chars int  `json:"chars"`
	Fate  Fate `json:"fate"`
}

// The valves of slimming, in the order in which they open.
const (
	ValveBinaries  = "binaries"   // binary content replaced; the only one that opens within budget as well
	ValveTools     = "tools"      // tool calls and results dropped
	ValveFairShare = "fair_share" // the rest cut to fair shares
	ValveRuns      = "runs"       // not even the placeholders fit: neighbors share one
)

// Slimmed is a transcript made to fit.
type Slimmed struct {
	// Text holds one element a message, in order, on lines of its own:
	//
	//	<message seq="12" role="assistant">
	//	...
	//	</message>
	//
	// The roles are system, user, assistant, tool, and environment, reminder or automatic for what no person
	// said under the user's name. A prior summary is a <conversation_summary> element. No text can open or
	// close an element: see escapeTags. Placeholders and the note at the head are lines in square brackets
	// outside of the elements.
	Text string
	// Chars is the size of Text, never over the budget.
	Chars int
	// Messages came in. Each is counted once below, unless it says nothing: Whole as it was, Cut in part,
	// Placeholders by its size only, DroppedTools without its tool calls and results.
	Messages, Whole, Cut, Placeholders, DroppedTools int
	// Binaries is the number of binary pieces that were replaced.
	Binaries int
	// Valves that had to open, in order.
	Valves []string
	// Omitted lists the messages that are not whole, in order.
	Omitted []Omission
}

// Slim renders messages for a summarizer, within a budget whatever they are. Binary content goes always. Where that
// does not fit, tool noise goes: calls with their results, when tool messages are at least ToolDropThreshold of all
// and something else is left to read; what an assistant said beside its calls stays, and the note at the head names
// the files that the calls touched. Where that does not fit either, the rest is cut by max-min fair shares: a prior
// summary is kept whole, what the user said is set aside for first, a message whose share would be under
// MinUsefulChars becomes "[omitted assistant message, 48213 chars]". Where even those lines do not fit, runs of them
// become one. The cost is linear, but for sorting the sizes.
func Slim(in SlimInput) Slimmed {
	s := newSlimmer(in)
	s.render()
	if s.size() > in.BudgetChars {
		s.squeeze()
	}
	return s.result()
}

// segment is a piece of a message that is cut as one.
type segment struct {
	text  string
	chars int
	kind  segmentKind
	// glued says that it follows the one before without a line break.
	glued bool
}

type segmentKind int

const (
	segmentText segmentKind = iota
	segmentQuery
	segmentCall
	segmentResult
)

func (k segmentKind) tool() bool { return k == segmentCall || k == segmentResult }

// element is one message in the result, or what the user said and what tools returned in one message.
type element struct {
	message  int // index into the messages
	role     Role
	open     string // the opening tag, "" for a line alone
	close    string
	segments []segment
	body     int // chars between the tags
	summary  bool
	genuine  bool
	marker   bool // a line of ours, for tool calls that were dropped

	// room is what the body may take: body for whole, omitted for not at all.
	room int
}

const omitted = -1

// wrap is what the tags and line breaks of an element take, in chars. Tags are ASCII.
func (e *element) wrap() int {
	if e.open == "" {
		return len("\n")
	}
	return len(e.open) + len(e.close) + len("\n\n\n")
}

func (e *element) full() int { return e.wrap() + e.body }

// measure counts the chars of the segments and of the body.
func (e *element) measure() {
	e.body = 0
	for i := range e.segments {
		s := &e.segments[i]
		if s.chars == 0 {
			s.chars = Chars(s.text)
		}
		e.body += s.chars
		if i > 0 && !s.glued {
			e.body++
		}
	}
	e.room = e.body
}

// query is how much of the body the user's message itself marks as typed.
func (e *element) query() int {
	n := 0
	for _, s := range e.segments {
		if s.kind == segmentQuery {
			n += s.chars
		}
	}
	return n
}

type slimmer struct {
	in       SlimInput
	out      Slimmed
	elements []element
	// note is the line at the head, "" for none. It is laid out with the largest numbers first, to know
	// its size.
	note    string
	noting  bool
	hint    string
	touched string
	runs    bool
	bare    bool
	dropped []bool // messages that lost tool parts
	chars   []int  // of each message, rendered
}

func newSlimmer(in SlimInput) *slimmer {
	return &slimmer{
		in:      in,
		out:     Slimmed{Messages: len(in.Messages)},
		dropped: make([]bool, len(in.Messages)),
		chars:   make([]int, len(in.Messages)),
	}
}

// render makes the elements.
func (s *slimmer) render() {
	names := map[string]string{} // of the tools, by call id
	for i, m := range s.in.Messages {
		role := renderRole(m)
		main := element{
			message: i, role: m.Role, open: openTag(messageTag, m.Seq, role),
			close: "</" + messageTag + ">", genuine: m.Genuine(),
		}
		// What tools returned inside of a user's message is not the user's words.
		results := main
		results.open, results.genuine = openTag(messageTag, m.Seq, string(RoleTool)), false
		if m.Kind == KindSummary {
			main.open, main.close, main.summary = "<"+summaryTag+">", "</"+summaryTag+">", true
		}
		for _, p := range m.Parts {
			if p.Kind == PartToolCall {
				names[p.CallID] = p.Name
			}
			text, binaries := renderPart(p, names[p.CallID])
			s.out.Binaries += binaries
			if main.summary {
				text = summaryBody(text)
			}
			if s.in.Redact != nil && text != "" {
				text = s.in.Redact(text)
			}
			if text = escapeTags(text); text == "" {
				continue
			}
			switch {
			case p.Kind == PartToolResult && m.Role == RoleUser:
				results.segments = append(results.segments, segment{text: text, kind: segmentResult})
			case p.Kind == PartToolResult:
				main.segments = append(main.segments, segment{text: text, kind: segmentResult})
			case p.Kind == PartToolCall:
				main.segments = append(main.segments, segment{text: text, kind: segmentCall})
			case main.genuine:
				main.segments = append(main.segments, splitQuery(text)...)
			default:
				main.segments = append(main.segments, segment{text: text})
			}
		}
		s.add(results)
		s.add(main)
	}
	if s.out.Binaries > 0 {
		s.out.Valves = append(s.out.Valves, ValveBinaries)
	}
}

func (s *slimmer) add(e element) {
	n := len(s.elements)
	if s.elements = appendElement(s.elements, e); len(s.elements) > n {
		s.chars[e.message] += s.elements[n].body
	}
}

// appendElement measures an element and adds it, unless there is nothing in it.
func appendElement(to []element, e element) []element {
	if len(e.segments) == 0 {
		return to
	}
	e.measure()
	return append(to, e)
}

// splitQuery divides a text of the user's at its <user_query> blocks, which hold what the person typed.
func splitQuery(text string) []segment {
	const open, end = "<user_query>", "</user_query>"
	var segments []segment
	add := func(text string, kind segmentKind) {
		if text != "" {
			segments = append(segments, segment{text: text, kind: kind, glued: len(segments) > 0})
		}
	}
	for {
		from := strings.Index(text, open)
		if from < 0 {
			break
		}
		to := len(text)
		if n := strings.Index(text[from:], end); n >= 0 {
			to = from + n + len(end)
		}
		add(text[:from], segmentText)
		add(text[from:to], segmentQuery)
		text = text[to:]
	}
	add(text, segmentText)
	return segments
}

// size is what the result takes as it stands, whole.
func (s *slimmer) size() int {
	n := 0
	for i := range s.elements {
		n += s.elements[i].full()
	}
	return n
}

// squeeze makes the elements fit.
func (s *slimmer) squeeze() {
	s.layNote()
	room := s.in.BudgetChars - Chars(s.note)
	if s.dropTools() {
		s.out.Valves = append(s.out.Valves, ValveTools)
		s.layTouched()
		room = s.in.BudgetChars - Chars(s.note)
		if s.size() <= room {
			return
		}
	}
	s.out.Valves = append(s.out.Valves, ValveFairShare)
	used, fits := s.fitSummaries(room)
	room -= used
	if fits && s.fitShares(room) {
		return
	}
	s.out.Valves = append(s.out.Valves, ValveRuns)
	s.runs = true
	if !s.fitRuns(room) {
		s.fitOne(room)
	}
}

// dropTools takes out tool calls and results, as pairs since all of them go. It says whether it did.
func (s *slimmer) dropTools() bool {
	tools, all := 0, 0
	for _, m := range s.in.Messages {
		switch {
		case m.Role == RoleSystem || m.Kind == KindUserInfo || m.Kind == KindSummary:
			continue
		case m.Role == RoleTool:
			tools++
		}
		all++
	}
	if tools == 0 || float64(tools) < s.in.ToolDropThreshold*float64(all) || !s.talk() {
		return false
	}
	// A turn in which nobody but tools spoke keeps a line that says so.
	var kept []element
	calls, results, marker, said := 0, 0, -1, false
	endTurn := func() {
		if marker >= 0 && !said {
			line := fmt.Sprintf("[%d tool calls and %d results omitted]", calls, results)
			kept[marker].segments = []segment{{text: line}}
			kept[marker].measure()
		}
		calls, results, marker, said = 0, 0, -1, false
	}
	for _, e := range s.elements {
		if e.genuine {
			endTurn()
		}
		var rest []segment
		for _, seg := range e.segments {
			switch seg.kind {
			case segmentCall:
				calls++
			case segmentResult:
				results++
			default:
				rest = append(rest, seg)
			}
		}
		if len(rest) < len(e.segments) {
			s.dropped[e.message] = true
			if marker < 0 {
				marker = len(kept)
				kept = append(kept, element{message: e.message, role: e.role, marker: true})
			}
		}
		if len(rest) == 0 {
			continue
		}
		said = said || e.role == RoleAssistant
		e.segments = rest
		e.measure()
		kept = append(kept, e)
	}
	endTurn()
	s.elements = kept[:0]
	for _, e := range kept {
		if len(e.segments) > 0 {
			s.elements = append(s.elements, e)
		}
	}
	return true
}

// talk says whether anything but tools and summaries has something to say.
func (s *slimmer) talk() bool {
	for _, e := range s.elements {
		if e.summary || e.role != RoleUser && e.role != RoleAssistant {
			continue
		}
		for _, seg := range e.segments {
			if !seg.kind.tool() {
				return true
			}
		}
	}
	return false
}

// fitSummaries gives prior summaries what they need, all of the room if need be. It says how much it was,
// and whether there was any for each.
func (s *slimmer) fitSummaries(room int) (used int, fits bool) {
	var which []int
	var sizes []int
	need, wraps := 0, 0
	for i := range s.elements {
		if e := &s.elements[i]; e.summary {
			which, sizes = append(which, i), append(sizes, e.body)
			need += e.full()
			wraps += e.wrap()
		}
	}
	room -= s.gaps() * s.runLine() // a word about the others
	if need <= room {
		return need, true
	}
	fits = true
	for k, share := range FairShare(sizes, room-wraps) {
		e := &s.elements[which[k]]
		e.room = share
		if share < min(e.body, 1) || room < wraps {
			e.room, fits = omitted, false
			continue
		}
		used += e.wrap() + share
	}
	return used, fits
}

// fitShares cuts what is no summary to fair shares. It says whether that fits: if not, the rooms it gave
// mean nothing.
func (s *slimmer) fitShares(room int) bool {
	var which, rest []int
	aside := s.setAside(room)
	for i := range s.elements {
		if e := &s.elements[i]; !e.summary {
			which, rest = append(which, i), append(rest, e.full()-aside[i])
		}
	}
	remaining := room - sum(aside)
	for k, r := range ascending(rest) {
		e := &s.elements[which[r]]
		share := max(remaining, 0) / (len(which) - k)
		got, line := aside[which[r]]+share-e.wrap(), len(omittedLine(e))+len("\n")
		switch {
		case got >= e.body || got < s.useful() && line >= e.full():
			e.room = e.body
			remaining -= e.full()
		case got >= s.useful():
			e.room = got
			remaining -= e.wrap() + got
		default:
			e.room = omitted
			remaining -= line
		}
		remaining += aside[which[r]]
	}
	return remaining >= 0
}

// setAside says how much each element gets before the rest is shared out: the blocks in which a user's words
// are marked, whole as far as nine tenths of the room go; then, from a quarter of what is left, the other
// genuine user messages. What the user asked for and forbade is small, and lost first among tool output.
func (s *slimmer) setAside(room int) []int {
	marked, plain := make([]int, len(s.elements)), make([]int, len(s.elements))
	least := make([]int, len(s.elements))
	for i := range s.elements {
		e := &s.elements[i]
		if !e.genuine {
			continue
		}
		if n := e.query(); n > 0 {
			marked[i] = min(e.full(), e.wrap()+n+markerRoom)
		} else {
			plain[i] = e.full()
			least[i] = min(e.full(), e.wrap()+s.useful())
		}
	}
	aside := FairShare(marked, max(room, 0)*9/10)
	for i, n := range usefulShares(plain, least, (max(room, 0)-sum(aside))/4) {
		aside[i] += n
	}
	return aside
}

// usefulShares is FairShare, except that where the shares would be too small to be of use, the newest, which
// are the last, get a useful one and the others nothing. least says for each size from where on a share is
// of use.
func usefulShares(sizes, least []int, room int) []int {
	shares, enough := FairShare(sizes, room), true
	for i := range sizes {
		enough = enough && shares[i] >= least[i]
	}
	if enough {
		return shares
	}
	clear(shares)
	more := make([]int, len(sizes))
	for i := len(sizes) - 1; i >= 0 && least[i] <= room; i-- {
		room -= least[i]
		shares[i], more[i] = least[i], sizes[i]-least[i]
	}
	for i, n := range FairShare(more, room) {
		shares[i] += n
	}
	return shares
}

// fitRuns keeps as many messages as there is useful room for, and lets one line stand for each run of the
// others. It says whether any message could be kept.
func (s *slimmer) fitRuns(room int) bool {
	least := make([]int, len(s.elements))
	left := room - s.gaps()*s.runLine()
	keep := func(from int, genuine bool, limit int) {
		for i := from; i >= 0; i-- {
			e := &s.elements[i]
			if e.summary || e.marker || e.genuine != genuine || e.room != omitted {
				continue
			}
			need := e.wrap() + min(e.body, s.useful())
			if left-need-s.runLine() < limit {
				return
			}
			left -= need + s.runLine()
			e.room, least[i] = need-e.wrap(), need
		}
	}
	for i := range s.elements {
		if e := &s.elements[i]; !e.summary {
			e.room = omitted
		}
	}
	newest := len(s.elements) - 1
	keep(newest, true, left/2) // the user's words first, the newest of them first, but not alone
	keep(newest, false, 0)
	keep(newest, true, 0)

	more := make([]int, len(s.elements))
	kept := false
	for i := range s.elements {
		if least[i] > 0 {
			more[i] = s.elements[i].full() - least[i]
			kept = true
		}
	}
	for i, n := range FairShare(more, left) {
		if least[i] > 0 {
			s.elements[i].room += n
		}
	}
	return kept
}

// fitOne is for a room that takes nothing useful: as much as it can of the newest thing that the user said,
// or of the newest thing, without a word about the rest. Where an earlier summary stands already, the line
// about the rest is all.
func (s *slimmer) fitOne(room int) {
	pick := -1
	better := func(a, b *element) bool { // a is newer
		if a.summary != b.summary {
			return b.summary
		}
		return a.genuine || !b.genuine
	}
	for i := range s.elements {
		e := &s.elements[i]
		if e.summary && e.room != omitted {
			s.bare = room < s.gaps()*s.runLine()
			return
		}
		if !e.marker && (pick < 0 || better(e, &s.elements[pick])) {
			pick = i
		}
	}
	s.bare = true
	if pick < 0 {
		return
	}
	e := &s.elements[pick]
	if room > e.wrap() {
		room -= e.wrap()
	} else {
		// The text alone: nothing in it can be taken for the structure.
		e.open, e.close = "", ""
	}
	if room > 0 {
		e.room = min(room, e.body)
	}
}

// gaps is how many runs there are when every message but the summaries that have room is omitted.
func (s *slimmer) gaps() int {
	n, inside := 0, false
	for i := range s.elements {
		if e := &s.elements[i]; e.summary && e.room != omitted {
			inside = false
			continue
		}
		if !inside {
			n++
		}
		inside = true
	}
	return n
}

// useful is the least that a cut message is left with, in chars.
func (s *slimmer) useful() int { return max(s.in.MinUsefulChars, 1) }

// markerRoom is what the longest marker of a cut takes, with its line break.
const markerRoom = 40

// layNote writes the note at the head with the largest numbers it can have, and leaves it out when it would
// take over half of the budget.
func (s *slimmer) layNote() {
	s.noting = true
	s.hint = Truncate(escapeTags(strings.Join(strings.Fields(s.in.TranscriptHint), " ")), 500)
	for _, hint := range []string{s.hint, ""} {
		s.hint = hint
		s.note = s.writeNote(len(s.in.Messages), len(s.in.Messages))
		if Chars(s.note) <= s.in.BudgetChars/2 {
			return
		}
	}
	s.noting, s.note = false, ""
}

// touchedShare is how much of the budget the note may take for what the dropped calls tell of the work, and maxTouched
// the most, in chars: without it a summarizer would not know which files it was about, and what is open.
const (
	touchedShare = 20
	maxTouched   = 4000
)

// layTouched adds to the note the files that the dropped calls touched last, and the agent's open tasks.
func (s *slimmer) layTouched() {
	if !s.noting {
		return
	}
	d := &digest{changed: map[string]bool{}}
	for i, m := range s.in.Messages {
		for _, p := range m.Parts {
			if s.dropped[i] && p.Kind == PartToolCall {
				d.call(p, false)
			}
		}
	}
	room := min(s.in.BudgetChars/touchedShare, maxTouched)
	open, _ := OpenTasks(s.in.Messages)
	tasks := s.lastThatFit(open, "; ", room/2)
	s.touched = tellList(" Open on the agent's list: ", tasks, "; ")
	files := s.lastThatFit(d.files.lines(), ", ", room-Chars(s.touched))
	s.touched += tellList(" Files that the omitted tool calls touched, the last ones last: ", files, ", ")
	s.note = s.writeNote(len(s.in.Messages), len(s.in.Messages))
	if Chars(s.note) > s.in.BudgetChars/2 {
		s.touched = ""
		s.note = s.writeNote(len(s.in.Messages), len(s.in.Messages))
	}
}

// lastThatFit gives the last items that fit into room chars, each on one line, without secrets and without tags.
func (s *slimmer) lastThatFit(items []string, between string, room int) []string {
	var kept []string
	for i := len(items) - 1; i >= 0; i-- {
		item := strings.Join(strings.Fields(items[i]), " ")
		if s.in.Redact != nil {
			item = s.in.Redact(item)
		}
		item = escapeTags(item)
		if room -= Chars(item) + len(between); room < 0 {
			break
		}
		kept = append(kept, item)
	}
	slices.Reverse(kept)
	return kept
}

func tellList(title string, items []string, between string) string {
	if len(items) == 0 {
		return ""
	}
	return title + strings.Join(items, between) + "."
}

func (s *slimmer) writeNote(omitted, cut int) string {
	note := fmt.Sprintf(
		"[Note: of %d messages, %d were omitted and %d shortened for size; they may be anywhere in this record.",
		len(s.in.Messages), omitted, cut)
	if s.hint != "" {
		note += " The full transcript: " + s.hint
	}
	return note + s.touched + "]\n"
}

// omittedLine is the line that stands for one element.
func omittedLine(e *element) string {
	return "[omitted " + string(e.role) + " message, " + strconv.Itoa(e.body) + " chars]"
}

// omittedRunLine is the line that stands for several messages.
func omittedRunLine(messages, chars int) string {
	return "[omitted " + strconv.Itoa(messages) + " messages, " + strconv.Itoa(chars) + " chars]"
}

// runLine is the most that the line for a run of omitted messages takes, in chars.
func (s *slimmer) runLine() int {
	total := sum(s.chars)
	one := omittedLine(&element{role: RoleAssistant, body: total})
	return max(len(one), len(omittedRunLine(len(s.in.Messages), total))) + len("\n")
}

// result writes the text and counts what became of the messages.
func (s *slimmer) result() Slimmed {
	const (
		whole = 1 << iota
		cut
		gone
	)
	fates := make([]int, len(s.in.Messages))
	var out strings.Builder
	out.Grow(s.bytes())
	var run omittedRun
	for i := range s.elements {
		e := &s.elements[i]
		if e.room == omitted {
			fates[e.message] |= gone
			if !s.runs {
				out.WriteString(omittedLine(e) + "\n")
			} else if !s.bare {
				run.add(e)
			}
			continue
		}
		run.flush(&out)
		switch {
		case e.marker:
		case e.room < e.body:
			fates[e.message] |= cut
		default:
			fates[e.message] |= whole
		}
		e.write(&out)
	}
	run.flush(&out)

	leftOut := 0
	for i, m := range s.in.Messages {
		fate := Fate("")
		switch {
		case fates[i] == gone:
			s.out.Placeholders++
			leftOut++
			fate = FateOmitted
		case fates[i]&(cut|gone) != 0:
			s.out.Cut++
			fate = FateCut
		case s.dropped[i]:
			s.out.DroppedTools++
			fate = FateToolsDropped
			if fates[i] == 0 {
				leftOut++
			}
		case fates[i] != 0:
			s.out.Whole++
		}
		if fate != "" {
			s.out.Omitted = append(s.out.Omitted, Omission{Seq: m.Seq, Role: m.Role, Chars: s.chars[i], Fate: fate})
		}
	}
	text := out.String()
	if n := len(s.out.Omitted); n > 0 && s.noting {
		text = s.writeNote(leftOut, n-leftOut) + text
	}
	s.out.Text = strings.TrimSuffix(text, "\n")
	s.out.Chars = Chars(s.out.Text)
	return s.out
}

// bytes is about how long the result gets.
func (s *slimmer) bytes() int {
	n := 0
	for i := range s.elements {
		if e := &s.elements[i]; e.room == e.body {
			for _, seg := range e.segments {
				n += len(seg.text)
			}
		} else {
			n += 2 * max(e.room, 0)
		}
		n += 64
	}
	return n
}

// omittedRun gathers neighbors that one line stands for.
type omittedRun struct {
	first    *element
	elements int
	messages int
	last     int
	chars    int
}

func (r *omittedRun) add(e *element) {
	if e.marker {
		return
	}
	if r.first == nil {
		r.first = e
	}
	if r.elements == 0 || r.last != e.message {
		r.messages++
	}
	r.elements, r.last, r.chars = r.elements+1, e.message, r.chars+e.body
}

func (r *omittedRun) flush(out *strings.Builder) {
	switch {
	case r.elements == 1:
		out.WriteString(omittedLine(r.first) + "\n")
	case r.elements > 1:
		out.WriteString(omittedRunLine(r.messages, r.chars) + "\n")
	}
	*r = omittedRun{}
}

// write gives the element in the room it has.
func (e *element) write(out *strings.Builder) {
	if e.open != "" {
		out.WriteString(e.open)
		out.WriteByte('\n')
	}
	if e.room < e.body {
		out.WriteString(e.cutBody())
	} else {
		for i, s := range e.segments {
			if i > 0 && !s.glued {
				out.WriteByte('\n')
			}
			out.WriteString(s.text)
		}
	}
	out.WriteByte('\n')
	if e.open != "" {
		out.WriteString(e.close)
		out.WriteByte('\n')
	}
}

// cutBody is the body in the room there is, which is less than it needs: what the user marked as typed is
// whole first, and the other pieces share the rest fairly. A piece that would be left with next to nothing
// goes, and the marker at the end counts it.
func (e *element) cutBody() string {
	if len(e.segments) == 1 {
		return e.segments[0].cut(e.room, e.summary)
	}
	room := e.room - markerRoom - len(e.segments)
	sizes := [2][]int{make([]int, len(e.segments)), make([]int, len(e.segments))}
	for i, s := range e.segments {
		if s.kind == segmentQuery {
			sizes[0][i] = s.chars
		} else {
			sizes[1][i] = s.chars
		}
	}
	shares := FairShare(sizes[0], room)
	for i, n := range FairShare(sizes[1], room-sum(shares)) {
		shares[i] += n
	}
	var out strings.Builder
	dropped := 0
	for i, s := range e.segments {
		if shares[i] < s.chars && shares[i] < markerRoom {
			dropped += s.chars
			continue
		}
		if out.Len() > 0 && !s.glued {
			out.WriteByte('\n')
		}
		out.WriteString(s.cut(shares[i], e.summary))
	}
	if out.Len() == 0 {
		return truncateCounted(e.joined(), e.body, e.room)
	}
	if dropped > 0 {
		out.WriteString("\n" + truncatedMarker(dropped))
	}
	return out.String()
}

func (e *element) joined() string {
	var out strings.Builder
	for i, s := range e.segments {
		if i > 0 && !s.glued {
			out.WriteByte('\n')
		}
		out.WriteString(s.text)
	}
	return out.String()
}

// cut gives the segment in at most room chars: both ends of a tool result and of an earlier summary, the
// start of anything else.
func (s segment) cut(room int, ends bool) string {
	switch {
	case room >= s.chars:
		return s.text
	case ends || s.kind == segmentResult:
		return headAndTailCounted(s.text, s.chars, room)
	}
	return truncateCounted(s.text, s.chars, room)
}
