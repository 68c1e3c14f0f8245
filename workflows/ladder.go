package workflows

import (
	"fmt"
	"strings"

	"precis/activities"
	"precis/pipeline"
)

// Step is what a run does after something went wrong.
type Step string

// The steps of the ladder.
const (
	// StepNextSummarizer goes on to the next summarizer of the list; after the last one the run ends failed.
	StepNextSummarizer Step = "next_summarizer"
	// StepLargerWindow goes on to the next summarizer whose window is larger, else to the end of the list.
	StepLargerWindow Step = "larger_window"
	// StepSlimHarder halves the input budget and asks again.
	StepSlimHarder Step = "slim_harder"
	// StepShorterOutput asks once more with an addition that asks for less.
	StepShorterOutput Step = "shorter_output"
	// StepHalfInput halves the input budget and keeps asking for less.
	StepHalfInput Step = "half_input"
	// StepOnceMore asks again, with a request that differs.
	StepOnceMore Step = "once_more"
	// StepPlainText asks again with everything in one plain text.
	StepPlainText Step = "plain_text"
	// StepDigest takes the digest at once, where the list has it.
	StepDigest Step = "digest"
	// StepFull partitions anew so that everything is summarized.
	StepFull Step = "full"
	// StepPreviews cuts old tool results of the tail to previews.
	StepPreviews Step = "tail_previews"
	// StepHeadAndTail cuts the middle out of oversized parts of the tail.
	StepHeadAndTail Step = "tail_head_and_tail"
	// StepTakeSmaller takes a context that is above the trigger, if it is smaller than before.
	StepTakeSmaller Step = "take_smaller"
	// StepSupersede ends the run: the conversation moved on.
	StepSupersede Step = "supersede"
	// StepFail ends the run as failed.
	StepFail Step = "fail"
)

// Allowance is one step and how often it may be taken with one summarizer (of a run, for steps of the tail).
type Allowance struct {
	Step  Step
	Times int
}

// unbounded is for steps that end what they are counted for.
const unbounded = 1 << 30

// Rule is one row of the ladder: where, with what kind of summarizer, on which kinds of error, and the
// steps to take in that order, each as often as allowed.
type Rule struct {
	Stage      activities.Stage
	Summarizer pipeline.SummarizerKind // "" for any
	Kinds      []pipeline.ErrorKind
	Steps      []Allowance
}

// MaxModelCalls bounds the model calls of one run, whatever the list of summarizers: after it the digest
// stands in. Each costs at most a slim and a summarize activity, 12 events; with it the longest run stays
// under 200 events of history.
const MaxModelCalls = 10

// Ladder is the whole of "degrade, don't fail" (SPEC section 7). Waiting and asking again on a transient
// error is the summarize activity's retry policy; a transient kind arrives here when that is exhausted.
var Ladder = []Rule{
	// The vendor's own compaction is tried once: whatever goes wrong with it, the models are asked with a prompt.
	{
		activities.StageSlim, pipeline.SummarizerNative,
		kinds(pipeline.InputTokensExceeded, pipeline.InputTooLarge, pipeline.BadRequest, pipeline.MalformedHistory),
		steps(Allowance{StepNextSummarizer, unbounded}),
	},
	{activities.StageSummarize, pipeline.SummarizerNative, kinds(
		pipeline.InputTokensExceeded, pipeline.InputTooLarge, pipeline.OutputTooLong, pipeline.NotSmaller,
		pipeline.EmptyOutput, pipeline.MalformedOutput, pipeline.ToolCallOutput, pipeline.MalformedHistory,
		pipeline.Refused, pipeline.Auth, pipeline.Quota, pipeline.ModelNotFound, pipeline.BadRequest,
		pipeline.RateLimited, pipeline.Overloaded, pipeline.ServerError, pipeline.Network, pipeline.Timeout,
		pipeline.Internal,
	), steps(Allowance{StepNextSummarizer, unbounded})},

	{
		activities.StageSlim, pipeline.SummarizerSelf, kinds(pipeline.InputTokensExceeded, pipeline.InputTooLarge),
		steps(Allowance{StepNextSummarizer, unbounded}),
	},
	{
		activities.StageSlim, "", kinds(pipeline.InputTokensExceeded, pipeline.InputTooLarge),
		steps(Allowance{StepLargerWindow, unbounded}),
	},
	{activities.StageSlim, "", kinds(pipeline.MalformedHistory, pipeline.ModelNotFound, pipeline.BadRequest,
		pipeline.Internal), steps(Allowance{StepNextSummarizer, unbounded})},

	{
		activities.StageSummarize, pipeline.SummarizerSelf, kinds(pipeline.InputTokensExceeded, pipeline.InputTooLarge),
		steps(Allowance{StepNextSummarizer, unbounded}),
	},
	{
		activities.StageSummarize, pipeline.SummarizerSelf, kinds(pipeline.OutputTooLong, pipeline.NotSmaller),
		steps(Allowance{StepShorterOutput, 1}, Allowance{StepNextSummarizer, unbounded}),
	},
	{
		activities.StageSummarize, pipeline.SummarizerSelf, kinds(pipeline.MalformedHistory),
		steps(Allowance{StepNextSummarizer, unbounded}),
	},

	{
		activities.StageSummarize, "", kinds(pipeline.InputTokensExceeded, pipeline.InputTooLarge),
		steps(Allowance{StepSlimHarder, 3}, Allowance{StepLargerWindow, unbounded}),
	},
	{
		activities.StageSummarize, "", kinds(pipeline.OutputTooLong, pipeline.NotSmaller),
		steps(Allowance{StepShorterOutput, 1}, Allowance{StepHalfInput, 1}, Allowance{StepNextSummarizer, unbounded}),
	},
	{
		activities.StageSummarize, "", kinds(pipeline.EmptyOutput, pipeline.MalformedOutput, pipeline.ToolCallOutput),
		steps(Allowance{StepOnceMore, 1}, Allowance{StepNextSummarizer, unbounded}),
	},
	{
		activities.StageSummarize, "", kinds(pipeline.MalformedHistory),
		steps(Allowance{StepPlainText, 1}, Allowance{StepNextSummarizer, unbounded}),
	},
	{
		activities.StageSummarize, "",
		kinds(pipeline.Refused, pipeline.Auth, pipeline.Quota, pipeline.ModelNotFound, pipeline.BadRequest),
		steps(Allowance{StepNextSummarizer, unbounded}),
	},
	{
		activities.StageSummarize, "",
		kinds(pipeline.RateLimited, pipeline.Overloaded, pipeline.ServerError, pipeline.Network, pipeline.Timeout),
		steps(Allowance{StepNextSummarizer, unbounded}),
	},
	{activities.StageSummarize, "", kinds(pipeline.Internal), steps(Allowance{StepNextSummarizer, unbounded})},
	{"", "", kinds(pipeline.BudgetExceeded), steps(Allowance{StepDigest, 1}, Allowance{StepFail, unbounded})},

	{
		activities.StageReassemble, "", kinds(pipeline.NoShrink),
		steps(Allowance{StepFull, 1}, Allowance{StepPreviews, 1}, Allowance{StepHeadAndTail, 1},
			Allowance{StepTakeSmaller, unbounded}),
	},
	{activities.StageReassemble, "", kinds(pipeline.Conflict), steps(Allowance{StepSupersede, unbounded})},
}

func kinds(k ...pipeline.ErrorKind) []pipeline.ErrorKind { return k }
func steps(a ...Allowance) []Allowance                   { return a }

// matches says whether the rule is about this failure.
func (r Rule) matches(stage activities.Stage, s pipeline.SummarizerKind, kind pipeline.ErrorKind) bool {
	if r.Stage != "" && r.Stage != stage || r.Summarizer != "" && r.Summarizer != s {
		return false
	}
	for _, k := range r.Kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// taken counts the steps that were taken.
type taken map[Step]int

// next gives the step for a failure, and counts it: the first step of the first matching rule that is not
// used up. A failure that no rule names ends the run as failed.
func (t taken) next(stage activities.Stage, s pipeline.SummarizerKind, kind pipeline.ErrorKind) Step {
	for _, r := range Ladder {
		if !r.matches(stage, s, kind) {
			continue
		}
		for _, a := range r.Steps {
			if t[a.Step] < a.Times {
				t[a.Step]++
				return a.Step
			}
		}
	}
	return StepFail
}

// LadderText prints the table, for docs and for people.
func LadderText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| stage | summarizer | error kinds | steps, in order |\n| --- | --- | --- | --- |\n")
	for _, r := range Ladder {
		var ks, ss []string
		for _, k := range r.Kinds {
			ks = append(ks, string(k))
		}
		for _, a := range r.Steps {
			s := string(a.Step)
			if a.Times != unbounded {
				s += fmt.Sprintf(" ×%d", a.Times)
			}
			ss = append(ss, s)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", or(string(r.Stage), "any"), or(string(r.Summarizer), "any"),
			strings.Join(ks, ", "), strings.Join(ss, " → "))
	}
	return b.String()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
