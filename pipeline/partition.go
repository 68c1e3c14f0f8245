package pipeline

import "context"

// PartitionInput is what is to be partitioned.
type PartitionInput struct {
	// Messages are the live messages: the summary of the active marker first, if there is one, with Seq 0 and
	// KindSummary, then the messages that the marker kept and those since. System messages and the environment message
	// may be before or after the summary.
	Messages []Message
	Settings Settings
	// Full requests that everything is summarized.
	Full bool
	// Window is the model's context window in tokens, 0 if unknown: the tail has no budget then.
	Window int
	// Calibration is the trigger's, for the sizes of messages; 0 means none.
	Calibration float64
	// SeenSeq is the newest message when the active marker was applied, 0 without a marker.
	SeenSeq int64
	// Again reports that a new focus, model or prompt was given, so that the same messages may be summarized once more.
	Again bool
}

// The reasons why there is nothing to summarize.
const (
	NothingEmpty            = "empty"             // no message has any content
	NothingAllProtected     = "all_protected"     // everything has to stay verbatim
	NothingAlreadyCompacted = "already_compacted" // only the last summary and the messages that it left
)

// ShapeWarning reports a tail that had to be changed.
type ShapeWarning struct {
	Code string `json:"code"`
	// CallIDs are the ids of the calls and results that caused the warning, in order.
	CallIDs []string `json:"call_ids"`
	// Detail is one sentence on what was wrong and what was done.
	Detail string `json:"detail"`
}

// tailShapeInvalid is the code of the only warning.
const tailShapeInvalid = "tail_shape_invalid"

// Partition divides messages into those that stay in front, those that are summarized and those that stay verbatim
// behind the summary. All its lists are ascending indexes into the messages, except that ToSummarize ends with the last
// user message under preserveLastUser. System, UserInfo, ToSummarize and Tail together contain every message once;
// messages in Carried, and that last user message, are in two of the lists.
type Partition struct {
	System, UserInfo []int
	// ToSummarize begins with the prior summary, if there is one.
	ToSummarize []int
	// Tail stays as it is, byte for byte.
	Tail []int
	// Carried is summarized and also stays verbatim, in front of the tail: the user message of the turn that is
	// split, or the last user message if the tail would have none.
	Carried []int
	// Split is the index of the first message of the tail, or the number of messages if the tail is empty.
	Split int
	// CoversFrom and CoversTo are the first and last Seq that are summarized, 0 if there is none.
	CoversFrom, CoversTo int64
	// Skills are the skill blocks found in what is summarized, each once.
	Skills   []string
	Warnings []ShapeWarning
	// Nothing is the reason why there is nothing to summarize, empty if there is something. A context over its limit
	// with nothing to summarize can still be made smaller by a TailValve.
	Nothing string
}

// PartitionMessages partitions the live messages.
//
// The tail begins at the last genuine user message, or at the first that has no answer. If the split is at or before
// the first message (the guard; system messages and environment do not count), or with Full, everything is summarized.
// Work in progress stays in the tail even then: user messages without an answer, and a step with results that the model
// has not read or that are still to come.
//
// A tail over its budget loses its older steps: the split moves forward to a step boundary, and the user message of the
// turn is carried. The same boundaries serve a conversation without any user message.
//
// No split separates a call from its results (see Pairing). A call that will never be answered does not hold the split
// back. A result without a call moves the split behind it, unless it is part of the step that the model has still to
// read.
//
// The cost is linear. The error is that of the context, if it is done first.
func PartitionMessages(ctx context.Context, in PartitionInput) (Partition, error) {
	return interruptible(ctx, "the partition", func(w *work) Partition { return partition(w, in) })
}

func partition(w *work, in PartitionInput) Partition {
	d := newDivision(w, in)
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

// UnderWay reports whether the agent is in the middle of something: the last entry is a message to it, or a call whose
// result it has not read. Messages that the runtime injects do not count.
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

// nothing returns a partition that leaves everything where it is, with the reason.
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
		d.spend(0)
		if m.Seq <= 0 {
			continue
		}
		if p.CoversFrom == 0 {
			p.CoversFrom = m.Seq
		}
		p.CoversTo = max(p.CoversTo, m.Seq)
	}
	p.Skills = skillBlocks(d.work, d.conv[:split])
	if d.in.Settings.PreserveLastUser && !d.in.Full && d.lastUser >= split {
		p.ToSummarize = append(p.ToSummarize, d.index[d.lastUser])
	}
	return p
}
