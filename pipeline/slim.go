package pipeline

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

// size is what the result takes with everything whole.
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
