package wire

import (
	"encoding/json"

	"precis"
	"precis/pipeline"
)

// RunComparison is how a replay compares with its original. It is also the form in which a comparison is stored.
type RunComparison struct {
	_ struct{} `doc:"How a replay compares with its original: a recorded replay says whether everything came out the same, a live one shows the two summaries side by side."`

	Live         bool                `json:"live" doc:"The models were called again."`
	Identical    bool                `json:"identical" doc:"Recorded replays only: every stage and the context came out byte for byte the same."`
	Steps        int                 `json:"steps,omitempty" doc:"How many stages were executed again."`
	Answers      int                 `json:"answers,omitempty" doc:"How many answers were read from the record."`
	Context      *RunComparedContext `json:"context,omitempty" doc:"The new context. Left out when the run had none."`
	First        *RunDifference      `json:"first,omitempty" doc:"The first difference. Left out when there is none."`
	Differences  int                 `json:"differences,omitempty" doc:"How many differences there are, including those that follow from the first."`
	Changes      *RunChanges         `json:"changes,omitempty" doc:"Live replays only: what was requested differently."`
	Original     *RunSide            `json:"original,omitempty" doc:"Live replays only: the original."`
	Replay       *RunSide            `json:"replay,omitempty" doc:"Live replays only: the replay."`
	OnlyOriginal []RunFact           `json:"only_original,omitempty" doc:"Facts of the summarized messages that only the original's summary has."`
	OnlyReplay   []RunFact           `json:"only_replay,omitempty" doc:"Facts of the summarized messages that only the replay's summary has."`
	Both         int                 `json:"facts_in_both,omitempty" doc:"How many facts both summaries have."`
}

// RunFact is a fact of the summarized messages.
type RunFact struct {
	_ struct{} `doc:"Something that the summarized messages say: a limit that the user set, a path, a name, a number."`

	Kind    pipeline.MentionKind `json:"kind"`
	Text    string               `json:"text"`
	Message int64                `json:"message" doc:"Number of the first message that says it."`
}

// RunComparedContext compares the context of a replay with the recorded one.
type RunComparedContext struct {
	_ struct{} `doc:"The context that the replay made, compared with the recorded one."`

	Identical bool   `json:"identical" doc:"It is byte for byte the same."`
	SHA256    string `json:"sha256" doc:"SHA-256 of the replay's context."`
	Bytes     int    `json:"bytes" doc:"Size of the replay's context."`
}

// RunDifference is a difference between a replay and the record.
type RunDifference struct {
	_ struct{} `doc:"A difference between the replay and the record."`

	Stage      string `json:"stage"`
	Call       int    `json:"call" doc:"The call of the step."`
	Rung       string `json:"rung,omitempty" doc:"The rung of the step."`
	Summarizer string `json:"summarizer,omitempty" doc:"The summarizer of the step."`
	What       string `json:"what" doc:"What differs: a figure of the stage's result such as decision.limit, a text (plan, input, answer, summary, context…), error, outcome, or step where the two took different steps."`
	At         int    `json:"at,omitempty" doc:"The byte at which two texts differ."`
	Message    int    `json:"message,omitempty" doc:"The line of a context at which two texts differ, from 1."`
	Recorded   string `json:"recorded" doc:"The recorded value, or the text around the difference."`
	Replayed   string `json:"replayed" doc:"The replay's value, or the text around the difference."`
}

// RunChanges is what a live replay was asked to do differently.
type RunChanges struct {
	_ struct{} `doc:"What a live replay was asked to do differently. Fields that are left out are unchanged."`

	Summarizer string `json:"summarizer,omitempty" doc:"The summarizers to try, in order, such as self,openai/NAME."`
	Prompt     string `json:"prompt,omitempty"`
	MaxChars   int    `json:"max_chars,omitempty" doc:"Maximum size of the summarizer's input in chars."`
	Focus      string `json:"focus,omitempty"`
}

// RunSide is one of two compared runs.
type RunSide struct {
	_ struct{} `doc:"One of two compared runs. Sizes are in tokens."`

	Run           string             `json:"run"`
	Outcome       precis.Outcome     `json:"outcome"`
	ErrorKind     pipeline.ErrorKind `json:"error_kind"`
	Reason        string             `json:"reason,omitempty"`
	Summarizer    string             `json:"summarizer"`
	Prompt        RunPrompt          `json:"prompt"`
	Digest        bool               `json:"digest"`
	Covers        RunCovers          `json:"covers"`
	TokensBefore  int                `json:"tokens_before" doc:"Size of the whole context before."`
	TokensAfter   int                `json:"tokens_after" doc:"Size of the whole context after."`
	SummaryTokens int                `json:"summary_tokens" doc:"Size of the summary."`
	Usage         RunUsage           `json:"usage"`
	Models        []RunModelUsage    `json:"models" doc:"The same model calls, by model."`
	Cost          *RunCost           `json:"cost" doc:"What the model calls cost at the prices that are configured now, or null: none is configured."`
	Verification  json.RawMessage    `json:"verification"`
	MS            int64              `json:"ms" doc:"How long the run's steps took, in milliseconds."`
	Sections      []Section          `json:"sections,omitempty" doc:"The sections of the summary, in order."`
}

// Section is a section of a summary. It has the fields of pipeline.Section, to be converted from it.
type Section struct {
	Title string `json:"title" doc:"The heading. Empty for the text before the first heading."`
	Text  string `json:"text" doc:"The text under the heading."`
	Chars int    `json:"chars" doc:"Size of the text in chars."`
}
