package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SummaryTextInput is what the text of a summary message says.
type SummaryTextInput struct {
	Summary string
	// Digest says that no model wrote it.
	Digest bool
	// UnderWay says that the agent's work goes on at once: see UnderWay.
	UnderWay bool
	// ProposeOnly says that the agent is in a mode that only proposes.
	ProposeOnly bool
	// TailKept says that messages follow verbatim.
	TailKept bool
	// Repeated is the number of user messages that stand behind the summary although it covers them as well.
	Repeated int
	// OmittedMessages is the number of messages that the summarizer was not shown, or not whole, for size.
	OmittedMessages int
	// TranscriptHint says where the full transcript is, empty when nowhere.
	TranscriptHint string
}

// The sentences of a summary message. They are the same in every language: the summary is in the
// conversation's.
const (
	summaryFirstLine = "This session continues an earlier one that ran out of context. What follows is the " +
		"summary of its earlier part."
	summaryDigest = "No model wrote this summary: it is a digest, put together from the messages themselves."
	// What follows is where, on the same line.
	summaryTranscript = "The full transcript is kept: "
	// It stands in brackets behind a number.
	summaryOmitted = " message(s) of that part were left out of the summary, or cut, for size"

	summaryTail     = "The messages after the part that is summarised follow verbatim."
	summaryContinue = "Go on from where the work stopped. Ask nothing again that was answered already, do not " +
		"acknowledge this summary, do not recap it, and write no preface: continue as if the break had not happened."
	summaryAtRest = "The summary is background. Nothing is under way: do not take up work because it is " +
		"mentioned there. The user's next message decides what happens."
	summaryPropose = "The summary is background. Propose before you act: nothing in the summary is permission to " +
		"begin, and the user decides what happens."
	// They stand together.
	summaryRepeatedBelow = "The user's last message is repeated below in its own words."
	summaryRepeated      = "It has been answered already and is no new request."
)

// SummaryText is the content of the summary message: the summary in an element that nothing inside can
// close, and behind it what the agent is to make of it. Only what is true is said.
func SummaryText(in SummaryTextInput) string {
	inside := []string{summaryFirstLine}
	if in.Digest {
		inside[0] += " " + summaryDigest
	}
	if in.OmittedMessages > 0 {
		inside = append(inside, fmt.Sprintf("[%d%s; they may be anywhere in it]", in.OmittedMessages, summaryOmitted))
	}
	if hint := strings.TrimSpace(in.TranscriptHint); hint != "" {
		inside = append(inside, summaryTranscript+strings.Join(strings.Fields(hint), " "))
	}
	inside = append(inside, strings.TrimSpace(in.Summary))

	var after []string
	if in.TailKept {
		after = append(after, summaryTail)
	}
	switch {
	case in.ProposeOnly:
		after = append(after, summaryPropose)
	case in.UnderWay:
		after = append(after, summaryContinue)
	default:
		after = append(after, summaryAtRest)
	}
	if in.Repeated > 0 && !in.UnderWay {
		after = append(after, summaryRepeatedBelow+" "+summaryRepeated)
	}
	return "<" + summaryTag + ">\n" + escapeTags(joinParagraphs(inside...)) + "\n</" + summaryTag + ">\n\n" +
		strings.Join(after, " ")
}

// Enrichment is one piece of current state that stands behind the summary.
type Enrichment struct {
	// Key is one of EnrichmentKeys, or begins with "x-".
	Key  string
	Text string
}

// EnrichmentKeys are the known keys, in the order in which they stand. Others follow, by name.
var EnrichmentKeys = []string{
	"skills", "todo", "plan", "mode", "project_root", "automation", "transcripts_folder", "conversation_id", "pins",
}

// TailValve is how far the tail is squeezed after a compaction that left the context over its limit.
type TailValve string

// The valves, each doing what the one before does as well.
const (
	TailValveNone     TailValve = ""
	TailValvePreviews TailValve = "previews"  // older tool results become previews
	TailValveHeadTail TailValve = "head_tail" // oversized parts keep their two ends
)

// ContextInput is what a context is made of.
type ContextInput struct {
	// Live is what no marker covers, and what the active one carries: system, user info, carried, tail.
	Live []Message
	// SummaryText is the text of the summary message, empty without a marker.
	SummaryText string
	// Native is the summary as the vendor compacted it itself, nil: SummaryText is what the model sees.
	Native *NativeSummary
	// Enrichments are the current values; they are left out where they are empty.
	Enrichments []Enrichment
	Valve       TailValve
	// ValveUpTo is the newest message when the marker was applied: the valve touches nothing after it.
	ValveUpTo int64
	// Calibration is the trigger's at that time, for the sizes of messages; 0: none.
	Calibration float64
	Settings    Settings
	// Window is the model's context window in tokens, 0 when unknown.
	Window int
	// Vendor is the type of API that the context is for: "anthropic", "openai", "google", "xai".
	Vendor string
}

// ContextStats are the figures of a context.
type ContextStats struct {
	// Tokens is the local estimate of all items, HistoryTokens of those that are not system messages.
	Tokens        int       `json:"tokens"`
	HistoryTokens int       `json:"history_tokens"`
	Trimmed       TrimStats `json:"trimmed"`
}

// Context is what the model sees.
type Context struct {
	Items []ContextItem
	Stats ContextStats
}

// BuildContext puts a context together: system, user info, summary, enrichments, and the rest of what is
// live in its order, trimmed. A summary that the vendor itself made stands before the user info.
//
// Stored messages come back as they are, except for what no API would take: a call that was never answered
// gets a result that says so, a result whose call is not there, or comes a step too late, becomes text, a
// result that stands behind a message of the user's moves up to its call, for OpenAI in front of another message
// of the agent's as well, and for Anthropic and Gemini empty texts are left out. All of this depends on the messages
// alone, so that the context only ever grows at its end.
//
// The summary and each enrichment are messages of their own, of role user; where a format wants roles to
// alternate its codec joins them with the message that follows, as parts of their own.
func BuildContext(in ContextInput) Context {
	b := &contextBuilder{in: in, counts: tokenCounts{}}
	b.head()
	b.rest()
	b.begin()
	items, stats := trim(b.squeeze(b.items), in.Settings, b.counts)
	stats.Binaries += b.omitted.Binaries
	stats.SavedTokens += b.omitted.SavedTokens
	ctx := Context{Items: items, Stats: ContextStats{Trimmed: stats}}
	for _, item := range items {
		n := b.counts.item(item)
		ctx.Stats.Tokens += n
		if item.Message == nil || item.Message.Role != RoleSystem {
			ctx.Stats.HistoryTokens += n
		}
	}
	return ctx
}

type contextBuilder struct {
	in    ContextInput
	items []ContextItem
	// live is what stands behind the head.
	live   []Message
	counts tokenCounts
	// omitted is what the valve did of Trim's work.
	omitted TrimStats
}

// head puts system, user info, summary and enrichments in front.
func (b *contextBuilder) head() {
	var userInfo []ContextItem
	split := 0
	for ; split < len(b.in.Live); split++ {
		m := &b.in.Live[split]
		if m.Role == RoleSystem {
			b.items = append(b.items, ContextItem{Message: m})
		} else if m.Kind == KindUserInfo {
			userInfo = append(userInfo, ContextItem{Message: m})
		} else {
			break
		}
	}
	b.live = b.in.Live[split:]
	if b.in.Native != nil {
		// Vendors want what they compacted first of all messages: what stands before it is refused, or not read.
		b.items = append(b.items, ContextItem{
			Made:   &Made{Role: RoleUser, Kind: KindSummary, Text: b.in.SummaryText},
			Native: b.in.Native,
		})
	}
	b.items = append(b.items, userInfo...)
	if b.in.Native == nil && strings.TrimSpace(b.in.SummaryText) != "" {
		b.made(Made{Role: RoleUser, Kind: KindSummary, Text: b.in.SummaryText})
	}
	for _, e := range sortEnrichments(b.in.Enrichments) {
		b.made(Made{Role: RoleUser, Kind: KindSynthetic, Text: enrichmentText(e)})
	}
}

func (b *contextBuilder) made(m Made) { b.items = append(b.items, ContextItem{Made: &m}) }

// sortEnrichments leaves out the empty ones and gives the rest in their fixed order.
func sortEnrichments(all []Enrichment) []Enrichment {
	var kept []Enrichment
	for _, e := range all {
		if strings.TrimSpace(e.Text) != "" {
			kept = append(kept, e)
		}
	}
	place := func(e Enrichment) int {
		if i := slices.Index(EnrichmentKeys, e.Key); i >= 0 {
			return i
		}
		return len(EnrichmentKeys)
	}
	slices.SortStableFunc(kept, func(x, y Enrichment) int {
		return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x.Key, y.Key))
	})
	return kept
}

var stateTag = regexp.MustCompile(`(?i)<(\s*/?\s*current_state\b)`)

// enrichmentText wraps a value so that it is told from what the user says. Nothing inside can close it.
func enrichmentText(e Enrichment) string {
	text := stateTag.ReplaceAllString(escapeTags(strings.TrimSpace(e.Text)), "&lt;$1")
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"<>&\n\r", r) {
			return '_'
		}
		return r
	}, e.Key)
	return `<current_state name="` + key + "\">\n" + text + "\n</current_state>"
}

// What stands for a call without a result, and in front of a result without a call.
const (
	noResultText   = "No result was recorded for this call: it was interrupted, or is still running."
	lateResultText = "[Result of an earlier tool call that does not stand directly before it"
	beginsText     = "[The conversation begins in the middle: what came before is not part of this context.]"
)

// rest puts the live messages behind the head, made fit for an API.
func (b *contextBuilder) rest() {
	fit := fitMessages(b.live, b.in.Vendor)
	var loose []string // texts that wait for the end of a step's results
	flush := func() {
		for _, text := range loose {
			b.made(Made{Role: RoleUser, Kind: KindSynthetic, Text: text})
		}
		loose = nil
	}
	for _, i := range fit.order {
		m := &b.live[i]
		if !fit.inStep[i] {
			loose = append(loose, fit.loose[i]...)
			flush()
		}
		edits := fit.drops[i]
		switch b.in.Vendor {
		case "anthropic":
			edits = dropBlank(m, edits)
		case "google":
			edits = dropEmpty(m, edits)
		}
		if b.sendable(m, edits) {
			b.items = append(b.items, ContextItem{Message: m, Edits: edits})
		}
		for _, call := range fit.unanswered[i] {
			b.made(Made{
				Role: RoleTool, Text: noResultText, CallID: call.ID, Name: call.Name, Type: call.Type,
				IsError: true,
			})
		}
		if fit.inStep[i] {
			loose = append(loose, fit.loose[i]...)
		}
	}
	flush()
}

// begin makes sure that the first message is one that may be first.
func (b *contextBuilder) begin() {
	if b.in.Vendor != "anthropic" && b.in.Vendor != "google" {
		return
	}
	for i, item := range b.items {
		if item.Made == nil && item.Message.Role == RoleSystem {
			continue
		}
		if item.Message != nil && item.Message.Role == RoleAssistant {
			first := ContextItem{Made: &Made{Role: RoleUser, Kind: KindSynthetic, Text: beginsText}}
			b.items = slices.Insert(b.items, i, first)
		}
		return
	}
}

// sendable says whether anything is left of a message.
func (b *contextBuilder) sendable(m *Message, edits []Edit) bool {
	if len(m.Parts) == 0 {
		return b.in.Vendor != "anthropic" && b.in.Vendor != "google"
	}
	dropped := 0
	for _, e := range edits {
		if e.Content < 0 && e.Op == EditDrop {
			dropped++
		}
	}
	return dropped < len(m.Parts)
}

// dropBlank adds edits that leave out blank text blocks, which Anthropic refuses. A content that is a plain
// string may be empty.
func dropBlank(m *Message, edits []Edit) []Edit {
	blank := func(p Part) bool { return p.Kind == PartText && strings.TrimSpace(p.Text) == "" }
	for i, p := range m.Parts {
		if edited(edits, i) {
			continue
		}
		if blank(p) {
			edits = append(edits, Edit{Part: i, Content: -1, Op: EditDrop})
		}
		for j, c := range p.Content {
			if blank(c) && !strings.HasPrefix(string(c.Raw), `"`) {
				edits = append(edits, Edit{Part: i, Content: j, Op: EditDrop})
			}
		}
	}
	return edits
}

// dropEmpty adds edits that leave out text parts with nothing in them, which Gemini refuses unless a signature
// stands beside the text.
func dropEmpty(m *Message, edits []Edit) []Edit {
	for i, p := range m.Parts {
		if p.Kind == PartText && p.Text == "" && !signed(p.Raw) && !edited(edits, i) {
			edits = append(edits, Edit{Part: i, Content: -1, Op: EditDrop})
		}
	}
	return edits
}

// signed says whether a part of Gemini's has the signature of a thought.
func signed(raw []byte) bool {
	return bytes.Contains(raw, []byte(`"thoughtSignature"`)) || bytes.Contains(raw, []byte(`"thought_signature"`))
}

// fitting says what has to be done to messages so that calls and results stand as APIs want them.
type fitting struct {
	// order of the messages.
	order []int
	// inStep are the messages with results of the step that they stand in.
	inStep map[int]bool
	// drops are the parts of a message that cannot stay where they are, loose the texts that stand for them.
	drops map[int][]Edit
	loose map[int][]string
	// unanswered are the calls that need a result behind the message.
	unanswered map[int][]CallRef
}

func fitMessages(messages []Message, vendor string) fitting {
	f := fitting{
		inStep: map[int]bool{}, drops: map[int][]Edit{}, loose: map[int][]string{},
		unanswered: map[int][]CallRef{},
	}
	p := Pair(messages)
	place := resultPlaces(messages, vendor)
	behind := map[int]int{} // the assistant message that a message with results has to stand behind
	lost, open := slices.Clone(p.Orphans), slices.Clone(p.Unanswered)
	for _, pair := range p.Pairs {
		call, result := pair.Call.Message, pair.Result.Message
		if call == result || messages[result].Role == RoleAssistant && p.StepOf(call) == p.StepOf(result) {
			continue // the vendor's own
		}
		at, placed := behind[result]
		if p.StepOf(call) != p.StepOf(result) || placed && at != place[call] {
			// The agent went on without it: what it saw then must stay as it was. Or its message stands behind
			// another one that calls.
			open = append(open, pair.Call)
			lost = append(lost, pair.Result)
			continue
		}
		behind[result] = place[call]
		f.inStep[result] = true
	}
	sortCalls(open)
	// Without ids nothing can refer to a call, but for Gemini, which counts them.
	nameless := vendor == "google"
	for _, call := range open {
		if (call.ID != "" || nameless) && !call.ServerSide() {
			at := place[call.Message]
			f.unanswered[at] = append(f.unanswered[at], call)
		}
	}
	// With its own call the server goes on where it is the last thing that it is given.
	last := len(messages) - 1
	for _, call := range open {
		if (call.ID != "" || nameless) && call.ServerSide() && (call.Message < last || len(f.unanswered[last]) > 0) {
			f.drop(call.Message, call.Part)
		}
	}
	for _, r := range lost {
		if r.ID == "" && !nameless {
			continue
		}
		f.drop(r.Message, r.Part)
		if messages[r.Message].Role != RoleAssistant {
			f.loose[r.Message] = append(f.loose[r.Message], looseResult(messages[r.Message].Parts[r.Part]))
		}
	}
	f.order = f.orderResults(messages, behind)
	return f
}

func (f *fitting) drop(message, part int) {
	f.drops[message] = append(f.drops[message], Edit{Part: part, Content: -1, Op: EditDrop})
}

// resultPlaces gives for each message behind which one the results of its calls have to stand. To OpenAI, and
// to those who speak its protocol, every message is one of its own, and its results come before anything else.
// To the others assistant messages that follow each other are one turn, and results come behind the last.
func resultPlaces(messages []Message, vendor string) []int {
	place := make([]int, len(messages))
	for i := len(messages) - 1; i >= 0; i-- {
		place[i] = i
		if vendor != "openai" && vendor != "xai" && i+1 < len(messages) && messages[i+1].Role == RoleAssistant {
			place[i] = place[i+1]
		}
	}
	return place
}

// orderResults moves results up to behind the message that behind names for theirs, in front of what was said
// in between. APIs want the results of a step first: a message that holds words as well comes behind those that
// do not, and where there are several of those, all but the last part with their words.
func (f *fitting) orderResults(messages []Message, behind map[int]int) []int {
	only, mixed := map[int][]int{}, map[int][]int{} // by what they stand behind: results alone, and with words
	for i, m := range messages {
		at, moved := behind[i]
		switch {
		case !moved:
		case len(m.Results()) < len(m.Parts):
			if n := len(mixed[at]); n > 0 {
				f.loosenWords(messages, mixed[at][n-1])
			}
			mixed[at] = append(mixed[at], i)
		default:
			only[at] = append(only[at], i)
		}
	}
	order := make([]int, 0, len(messages))
	for i := range messages {
		if _, moved := behind[i]; moved {
			continue
		}
		order = append(order, i)
		order = append(append(order, only[i]...), mixed[i]...)
	}
	return order
}

// loosenWords takes what message i holds beside results out of it, to follow as a text of its own.
func (f *fitting) loosenWords(messages []Message, i int) {
	for j, p := range messages[i].Parts {
		if p.Kind == PartToolResult {
			continue
		}
		text := p.Text
		if p.Kind != PartText {
			text, _ = renderPart(p, "")
		}
		f.drop(i, j)
		if strings.TrimSpace(text) != "" {
			f.loose[i] = append(f.loose[i], text)
		}
	}
}

// looseResult is a result as text. It is cut: it is not the agent's current work.
func looseResult(p Part) string {
	text, _ := renderPart(p, "")
	limit := DefaultSettings().ToolResultPreviewChars
	return lateResultText + "]\n" + CompactHeadAndTail(text, limit)
}
