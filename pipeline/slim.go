package pipeline

import "context"

// SlimInput is what is to be rendered for a summarizer.
type SlimInput struct {
	// Messages in order, a prior summary (KindSummary) first if there is one.
	Messages []Message
	// BudgetChars bounds the result, in chars, including its notes and tags.
	BudgetChars int
	// ToolDropThreshold is the share of tool messages from which they are dropped first; over 1 they never are. Default
	// ToolMessageDropThreshold.
	ToolDropThreshold float64
	// MinUsefulChars is the least that a cut message keeps. Default DefaultMinUsefulChars.
	MinUsefulChars int
	// TranscriptHint is where the full transcript is, "" if nowhere. Its first 500 chars are used.
	TranscriptHint string
	// Nonce is in the names of the elements and in the end mark of the request: letters and digits that no author of a
	// message can have known, such as a part of a hash of the run's random id. "": the names are without one.
	Nonce string
	// OldRules escapes as builds did that compared the case of tags alone, for the replay of what they recorded.
	OldRules bool
	// Redact removes secrets from a text; nil removes none. It gets every text whole, before anything is cut.
	Redact func(string) string
}

// Share returns the input for a summarizer that may get no more than a share, up to 1, of the budget, or of the size of
// the messages if that is less, so that what was refused as too large is not sent again. The error is that of the
// context, if it is done first.
func (in SlimInput) Share(ctx context.Context, share float64) (SlimInput, error) {
	if share < 1 {
		whole, err := Slim(ctx, in)
		if err != nil {
			return SlimInput{}, err
		}
		in.BudgetChars = int(float64(min(in.BudgetChars, whole.Chars)) * share)
	}
	return in, nil
}

// The valves of slimming, in the order in which they open.
const (
	ValveBinaries  = "binaries"   // binary content replaced; the only one that also opens within budget
	ValveTools     = "tools"      // tool calls and results dropped
	ValveFairShare = "fair_share" // the rest cut to fair shares
	ValveRuns      = "runs"       // not even the placeholders fit: adjacent ones are merged
)

// Slimmed is a transcript that fits its budget.
type Slimmed struct {
	// Nonce is that of the input.
	Nonce string
	// Text has one element per message, in order, on separate lines, with the nonce in their names if there is one:
	//
	//	<message-4f1c seq="12" role="assistant">
	//	...
	//	</message-4f1c>
	//
	// The roles are system, user, assistant, tool, and environment, reminder or automatic for messages with the user
	// role that no person wrote. A prior summary is a <conversation_summary> element. No text can open or close an
	// element: see escapeTags. Placeholders and the note at the head are lines in square brackets outside of the
	// elements.
	Text string
	// Chars is the size of Text, never over the budget.
	Chars int
	// Messages is the number of messages in the input. Each is counted once below, unless it is empty: Whole unchanged,
	// Cut in part, Placeholders by its size only, DroppedTools without its tool calls and results.
	Messages, Whole, Cut, Placeholders, DroppedTools int
	// Binaries is the number of binary pieces that were replaced.
	Binaries int
	// Valves are the valves that opened, in order.
	Valves []string
	// Omitted lists the messages that are not whole, in order.
	Omitted []Omission
}

// Slim renders messages for a summarizer, always within the budget. Binary content is always replaced. If that is not
// enough, tool calls are dropped with their results, provided that tool messages are at least ToolDropThreshold of all
// and something else is left to read; what an assistant wrote beside its calls stays, and the note at the head names
// the files that the calls touched. If that is not enough either, the rest is cut by max-min fair shares: a prior
// summary stays whole, the user's words are reserved first, and a message whose share would be under MinUsefulChars
// becomes "[omitted assistant message, 48213 chars]". If even those lines do not fit, runs of them become one. The cost
// is linear, except for sorting the sizes. The error is that of the context, if it is done first.
func Slim(ctx context.Context, in SlimInput) (Slimmed, error) {
	return interruptible(ctx, "slimming", func(w *work) Slimmed { return slim(w, in) })
}

func slim(w *work, in SlimInput) Slimmed {
	s := newSlimmer(w, in)
	s.render()
	if s.size() > in.BudgetChars {
		s.squeeze()
	}
	return s.result()
}

type slimmer struct {
	*work
	in       SlimInput
	out      Slimmed
	escape   func(string) string
	elements []element
	// note is the line at the head, "" for none. It is first written with the largest possible numbers, to know its
	// size.
	note    string
	noting  bool
	hint    string
	touched string
	runs    bool
	bare    bool
	dropped []bool // messages that lost tool parts
	chars   []int  // of each message, rendered
}

func newSlimmer(w *work, in SlimInput) *slimmer {
	return &slimmer{
		work:    w,
		in:      in,
		out:     Slimmed{Messages: len(in.Messages), Nonce: in.Nonce},
		escape:  escaper(in.OldRules, reservedTags),
		dropped: make([]bool, len(in.Messages)),
		chars:   make([]int, len(in.Messages)),
	}
}

// render makes the elements.
func (s *slimmer) render() {
	names := map[string]string{} // of the tools, by call id
	messageTag, summaryTag := withNonce(messageTag, s.in.Nonce), withNonce(summaryTag, s.in.Nonce)
	for i, m := range s.in.Messages {
		s.spend(0)
		role := renderRole(m)
		main := element{
			message: i, role: m.Role, open: openTag(messageTag, m.Seq, role),
			close: "</" + messageTag + ">", genuine: m.Genuine(),
		}
		// What tools returned inside a user's message was not written by the user.
		results := main
		results.open, results.genuine = openTag(messageTag, m.Seq, string(RoleTool)), false
		if m.Kind == KindSummary {
			main.open, main.close, main.summary = "<"+summaryTag+">", "</"+summaryTag+">", true
		}
		for _, p := range m.Parts {
			if p.Kind == PartToolCall {
				names[p.CallID] = p.Name
			}
			s.spend(partBytes(p))
			text, binaries := renderPart(p, names[p.CallID])
			s.out.Binaries += binaries
			if main.summary {
				text = summaryBody(text)
			}
			if s.in.Redact != nil && text != "" {
				text = s.in.Redact(text)
			}
			if text = s.escape(text); text == "" {
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

// size returns the size of the result with everything whole.
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
