package pipeline

import (
	"bytes"
	"slices"
	"strings"
)

// dropBlank adds edits that leave out blank text blocks, which Anthropic refuses. Content that is a plain string may be
// empty.
func dropBlank(m *Message, edits []Edit) []Edit {
	changed := newEditIndex(edits)
	blank := func(p Part) bool { return p.Kind == PartText && strings.TrimSpace(p.Text) == "" }
	for i, p := range m.Parts {
		if changed.whole(i) {
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

// dropEmpty adds edits that leave out empty text parts, which Gemini refuses unless a signature is beside the text.
func dropEmpty(m *Message, edits []Edit) []Edit {
	changed := newEditIndex(edits)
	for i, p := range m.Parts {
		if p.Kind == PartText && p.Text == "" && !signed(p.Raw) && !changed.whole(i) {
			edits = append(edits, Edit{Part: i, Content: -1, Op: EditDrop})
		}
	}
	return edits
}

// signed reports whether a part of Gemini's has a thought signature.
func signed(raw []byte) bool {
	return bytes.Contains(raw, []byte(`"thoughtSignature"`)) || bytes.Contains(raw, []byte(`"thought_signature"`))
}

// fitting is what has to be done to messages so that calls and results are placed as APIs require.
type fitting struct {
	// order is the order of the messages.
	order []int
	// inStep are the messages with results of their own step.
	inStep map[int]bool
	// drops are the parts of a message that cannot stay where they are, loose the texts in their place.
	drops map[int][]Edit
	loose map[int][]string
	// unanswered are the calls that need a result behind the message.
	unanswered map[int][]CallRef
}

func fitMessages(w *work, messages []Message, vendor string) fitting {
	f := fitting{
		inStep: map[int]bool{}, drops: map[int][]Edit{}, loose: map[int][]string{},
		unanswered: map[int][]CallRef{},
	}
	p := pair(w, messages)
	place := resultPlaces(messages, vendor)
	behind := map[int]int{} // the assistant message that a message with results must follow
	lost, open := slices.Clone(p.Orphans), slices.Clone(p.Unanswered)
	for _, pair := range p.Pairs {
		w.spend(0)
		call, result := pair.Call.Message, pair.Result.Message
		if call == result || messages[result].Role == RoleAssistant && p.StepOf(call) == p.StepOf(result) {
			continue // the vendor's own
		}
		if pair.Call.ServerSide() && messages[result].Role == RoleAssistant && !userBetween(messages, call, result) {
			continue // the vendor's own, which waited for results of the client
		}
		at, placed := behind[result]
		if p.StepOf(call) != p.StepOf(result) || placed && at != place[call] {
			// The agent continued without the result: what it saw then must not change. Or its message is behind
			// another one with calls.
			open = append(open, pair.Call)
			lost = append(lost, pair.Result)
			continue
		}
		behind[result] = place[call]
		f.inStep[result] = true
	}
	sortCalls(open)
	// Without ids nothing can refer to a call, except for Gemini, which counts them.
	nameless := vendor == "google"
	for _, call := range open {
		if (call.ID != "" || nameless) && !call.ServerSide() {
			at := place[call.Message]
			f.unanswered[at] = append(f.unanswered[at], call)
		}
	}
	// The server continues from its own call if that is the last part of the request, or if it waits for results of
	// the client.
	last := len(messages) - 1
	for _, call := range open {
		if (call.ID != "" || nameless) && call.ServerSide() && (call.Message < last || len(f.unanswered[last]) > 0) &&
			(len(f.unanswered[place[call.Message]]) > 0 || !waitsForClient(messages, call)) {
			f.drop(call.Message, call.Part)
		}
	}
	for _, r := range lost {
		w.spend(partBytes(messages[r.Message].Parts[r.Part]))
		if r.ID == "" && !nameless {
			continue
		}
		f.drop(r.Message, r.Part)
		if messages[r.Message].Role != RoleAssistant {
			f.loose[r.Message] = append(f.loose[r.Message], looseResult(messages[r.Message].Parts[r.Part]))
		}
	}
	f.order = f.orderResults(w, messages, behind)
	return f
}

// userBetween reports whether the user spoke between two messages.
func userBetween(messages []Message, from, to int) bool {
	return slices.ContainsFunc(messages[from+1:to], func(m Message) bool { return m.Role == RoleUser })
}

// waitsForClient reports whether a tool of the vendor that was not answered yet has called a tool of the client, and
// the user has not spoken since.
func waitsForClient(messages []Message, call CallRef) bool {
	return !userBetween(messages, call.Message, len(messages)) &&
		slices.ContainsFunc(messages[call.Message].Parts[call.Part+1:], func(p Part) bool {
			return p.Kind == PartToolCall && !CallRef{Type: p.Type}.ServerSide()
		})
}

func (f *fitting) drop(message, part int) {
	f.drops[message] = append(f.drops[message], Edit{Part: part, Content: -1, Op: EditDrop})
}

// resultPlaces returns for each message the one that the results of its calls have to follow. For OpenAI and compatible
// APIs every message is separate, and its results come before anything else. For the others consecutive assistant
// messages are one turn, and results come behind the last.
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

// orderResults moves results up to behind the message that behind names for them, in front of messages in between. APIs
// require the results of a step first: a message that also has words comes behind those that do not, and if there are
// several of those, all but the last lose their words to a separate text.
func (f *fitting) orderResults(w *work, messages []Message, behind map[int]int) []int {
	only, mixed := map[int][]int{}, map[int][]int{} // by the message that they follow: results alone, and with words
	for i, m := range messages {
		w.spend(0)
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

// loosenWords removes from message i what it has beside results, to follow as a separate text.
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

// looseResult returns a result as text. It is cut, since it is not the agent's current work.
func looseResult(p Part) string {
	text, _ := renderPart(p, "")
	limit := DefaultSettings().ToolResultPreviewChars
	return lateResultText + "]\n" + CompactHeadAndTail(text, limit)
}
