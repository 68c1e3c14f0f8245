package pipeline

import (
	"cmp"
	"slices"
	"strings"
)

// CallRef points at a tool call.
type CallRef struct {
	// Message and Part are indexes into the paired messages and that message's Parts.
	Message, Part int
	// ID, Name and Type are the call's own: Type is the block's name on the wire.
	ID, Name, Type string
}

// ServerSide reports whether the vendor runs the call, so that its result is also a block of the vendor's:
// "server_tool_use", "mcp_tool_use" and similar, and Gemini's "executableCode" and "toolCall".
func (c CallRef) ServerSide() bool {
	if c.Type == "executableCode" || c.Type == "toolCall" {
		return true
	}
	return c.Type != "tool_use" && strings.HasSuffix(c.Type, "_tool_use")
}

// ResultRef points at a tool result.
type ResultRef struct {
	Message, Part int
	ID, Type      string
}

// Paired is a call with its result.
type Paired struct {
	Call   CallRef
	Result ResultRef
}

// Pairing records which result answers which call. All code that must not separate a call from its result uses it.
//
// A result answers the nearest call before it that has its id and no result yet, whatever the block types are called.
// Ids repeat in real transcripts: a later step that uses an id again takes it over. Ids are compared whole. A call or a
// result without an id (common with Gemini) is matched within its step, by the tool's name and in order.
type Pairing struct {
	// Pairs in the order of the results.
	Pairs []Paired
	// Unanswered calls, in order.
	Unanswered []CallRef
	// Orphans are results without a call, in order.
	Orphans []ResultRef
	// step is, for each message, the number of the run of assistant messages it belongs to or follows.
	step []int
	// open is, for each message, the number of calls that are open after it.
	open []int
}

// Pair matches the calls and results of messages. The cost is linear.
func Pair(messages []Message) Pairing { return pair(nil, messages) }

func pair(w *work, messages []Message) Pairing {
	p := Pairing{step: make([]int, len(messages)), open: make([]int, len(messages))}
	waiting := waitingCalls{byID: map[string][]CallRef{}, answered: map[CallRef]bool{}}
	step := 0
	for i, m := range messages {
		if m.Role == RoleAssistant && (i == 0 || messages[i-1].Role != RoleAssistant) {
			step++
			p.Unanswered = append(p.Unanswered, waiting.endStep()...)
		}
		p.step[i] = step
		w.spend(0)
		for j, part := range m.Parts {
			w.spend(0)
			switch part.Kind {
			case PartToolCall:
				call := CallRef{Message: i, Part: j, ID: part.CallID, Name: part.Name, Type: part.Type}
				if earlier := waiting.openWith(call.ID); len(earlier) > 0 && p.step[earlier[0].Message] != step {
					p.Unanswered = append(p.Unanswered, waiting.open(earlier)...)
					delete(waiting.byID, call.ID)
				}
				waiting.add(call)
			case PartToolResult:
				result := ResultRef{Message: i, Part: j, ID: part.CallID, Type: part.Type}
				if call, ok := waiting.answer(result.ID, part.Name); ok {
					p.Pairs = append(p.Pairs, Paired{Call: call, Result: result})
				} else {
					p.Orphans = append(p.Orphans, result)
				}
			}
		}
	}
	p.Unanswered = append(p.Unanswered, waiting.endStep()...)
	for _, calls := range waiting.byID {
		p.Unanswered = append(p.Unanswered, waiting.open(calls)...)
	}
	sortCalls(p.Unanswered)
	p.count(len(messages))
	return p
}

// waitingCalls are the calls that can still be answered.
type waitingCalls struct {
	// byID are the calls with an id, in order, including answered ones.
	byID     map[string][]CallRef
	answered map[CallRef]bool
	// inStep are the calls of the current step, for results that cannot be matched by id.
	inStep map[stepKey][]CallRef
}

// stepKey names a queue of calls: those of one tool or of all, and only those without an id or all.
type stepKey struct {
	name string
	any  bool
	noID bool
}

func (w *waitingCalls) add(c CallRef) {
	if c.ID != "" {
		w.byID[c.ID] = append(w.byID[c.ID], c)
	}
	if w.inStep == nil {
		w.inStep = map[stepKey][]CallRef{}
	}
	keys := []stepKey{{name: c.Name}, {any: true}}
	if c.ID == "" {
		keys = append(keys, stepKey{name: c.Name, noID: true}, stepKey{any: true, noID: true})
	}
	for _, k := range keys {
		w.inStep[k] = append(w.inStep[k], c)
	}
}

// open returns those of the calls that have no result.
func (w *waitingCalls) open(calls []CallRef) []CallRef {
	return slices.DeleteFunc(slices.Clone(calls), func(c CallRef) bool { return w.answered[c] })
}

// openWith returns the calls with an id from the first one that has no result, nil if all have one.
func (w *waitingCalls) openWith(id string) []CallRef { return unanswered(w, w.byID, id) }

// unanswered drops the answered calls from the front of a queue, so that no later search passes them again.
func unanswered[K comparable](w *waitingCalls, queues map[K][]CallRef, key K) []CallRef {
	calls := queues[key]
	if len(calls) == 0 || !w.answered[calls[0]] {
		return calls
	}
	for len(calls) > 0 && w.answered[calls[0]] {
		calls = calls[1:]
	}
	queues[key] = calls
	return calls
}

// answer returns the call that a result answers. Several calls with the same id in one step are answered in order.
// Without an id on both sides it is the first open call of the step with the tool's name, or the first open call if
// either side has no name.
func (w *waitingCalls) answer(id, name string) (CallRef, bool) {
	if calls := w.openWith(id); len(calls) > 0 {
		w.answered[calls[0]] = true
		return calls[0], true
	}
	keys := []stepKey{{name: name, noID: id != ""}, {name: "", noID: id != ""}}
	if name == "" {
		keys = []stepKey{{any: true, noID: id != ""}}
	}
	for _, k := range keys {
		if calls := unanswered(w, w.inStep, k); len(calls) > 0 {
			w.answered[calls[0]] = true
			return calls[0], true
		}
	}
	return CallRef{}, false
}

// endStep clears the step and returns its calls without an id that have no result.
func (w *waitingCalls) endStep() []CallRef {
	open := w.open(w.inStep[stepKey{any: true, noID: true}])
	w.inStep = nil
	return open
}

// count fills open from the pairs and the calls that can still be answered.
func (p *Pairing) count(n int) {
	change := make([]int, n+1)
	for _, pair := range p.Pairs {
		change[pair.Call.Message]++
		change[pair.Result.Message]--
	}
	for _, call := range p.Unanswered {
		if !p.Dead(call) {
			change[call.Message]++
		}
	}
	open := 0
	for i := range p.open {
		open += change[i]
		p.open[i] = open
	}
}

// OpenAfter reports whether a call is open after message i: it was made by then, and its result comes later or may
// still come. A boundary there would separate the two.
func (p Pairing) OpenAfter(i int) bool {
	return i >= 0 && i < len(p.open) && p.open[i] > 0
}

// Dead reports whether an unanswered call will never be answered: the agent has taken another step since.
func (p Pairing) Dead(call CallRef) bool {
	return len(p.step) > 0 && p.step[len(p.step)-1] > p.step[call.Message]
}

// StepOf returns the number of the step of message i. A step begins with each run of assistant messages and includes
// what follows them. Messages before the first step have 0.
func (p Pairing) StepOf(i int) int { return p.step[i] }

func sortCalls(calls []CallRef) {
	slices.SortFunc(calls, func(a, b CallRef) int {
		return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Part, b.Part))
	})
}
