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

// ServerSide says that the vendor runs the call itself, so that its result is a block of the vendor's as
// well: "server_tool_use", "mcp_tool_use" and their like.
func (c CallRef) ServerSide() bool {
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

// Pairing says which result answers which call. It is the one place that knows: everything that must not
// tear a call from its result asks it.
//
// A result answers the nearest call before it that has its id and no result yet, whatever the block types
// are called; ids repeat in real transcripts, and a later step that uses an id again takes it over. Ids are
// compared whole.
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
func Pair(messages []Message) Pairing {
	p := Pairing{step: make([]int, len(messages)), open: make([]int, len(messages))}
	waiting := map[string][]CallRef{}
	step := 0
	for i, m := range messages {
		if m.Role == RoleAssistant && (i == 0 || messages[i-1].Role != RoleAssistant) {
			step++
		}
		p.step[i] = step
		for j, part := range m.Parts {
			switch part.Kind {
			case PartToolCall:
				earlier := waiting[part.CallID]
				if len(earlier) > 0 && p.step[earlier[0].Message] != step {
					p.Unanswered = append(p.Unanswered, earlier...)
					earlier = nil
				}
				waiting[part.CallID] = append(earlier, CallRef{Message: i, Part: j, ID: part.CallID, Name: part.Name, Type: part.Type})
			case PartToolResult:
				result := ResultRef{Message: i, Part: j, ID: part.CallID, Type: part.Type}
				calls := waiting[part.CallID]
				if len(calls) == 0 {
					p.Orphans = append(p.Orphans, result)
					continue
				}
				// Several calls of one step with the same id: the results come in their order.
				call := calls[0]
				waiting[part.CallID] = calls[1:]
				p.Pairs = append(p.Pairs, Paired{Call: call, Result: result})
			}
		}
	}
	p.leave(waiting)
	p.count(len(messages))
	return p
}

// leave turns what still waits into unanswered calls, in order of position.
func (p *Pairing) leave(waiting map[string][]CallRef) {
	for _, calls := range waiting {
		p.Unanswered = append(p.Unanswered, calls...)
	}
	sortCalls(p.Unanswered)
}

// count fills open from the pairs and the calls that may still be answered.
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

// OpenAfter says whether a call is open after message i: it was made by then, and its result comes later or
// may still come. A boundary there would tear the two apart.
func (p Pairing) OpenAfter(i int) bool {
	return i >= 0 && i < len(p.open) && p.open[i] > 0
}

// Dead says that an unanswered call will never be answered: the agent has taken another step since.
func (p Pairing) Dead(call CallRef) bool {
	return len(p.step) > 0 && p.step[len(p.step)-1] > p.step[call.Message]
}

// StepOf numbers the steps: a step begins with each run of assistant messages and holds what follows them.
// Messages before the first step have 0.
func (p Pairing) StepOf(i int) int { return p.step[i] }

func sortCalls(calls []CallRef) {
	slices.SortFunc(calls, func(a, b CallRef) int {
		return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Part, b.Part))
	})
}
