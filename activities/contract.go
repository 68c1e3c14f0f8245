package activities

import (
	"time"

	"precis/pipeline"
)

// Stage names one stage of a run, the same in run_steps, metrics, the ladder and the Temporal UI.
type Stage string

// The six stages in order, and the step that closes a run which applied nothing.
const (
	StageTrigger    Stage = "trigger"
	StageSummarizer Stage = "summarizer"
	StagePartition  Stage = "partition"
	StageSlim       Stage = "slim"
	StageSummarize  Stage = "summarise"
	StageReassemble Stage = "reassemble"
	StageFinish     Stage = "finish"
)

// Stages lists the stages in the order in which a run walks them.
var Stages = []Stage{
	StageTrigger, StageSummarizer, StagePartition, StageSlim, StageSummarize, StageReassemble,
	StageFinish,
}

// Ref names the run that an activity works for. It is all that any activity needs to find its data, and
// with Call it is the key under which its result is kept.
type Ref struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Run          string `json:"run"`
	// Call counts the activity calls of the run, from 1: a retry of an activity has the same call.
	Call int `json:"call"`
	// Rung says in one word why this call is made: "first", or the step of the ladder that led here.
	Rung string `json:"rung,omitempty"`
	// FailedStage and FailedCall name the call whose failure led to Rung, on the first call after it, and FailedKind
	// what it failed with: of a worker that died in it nobody else can tell.
	FailedStage Stage              `json:"failed_stage,omitempty"`
	FailedCall  int                `json:"failed_call,omitempty"`
	FailedKind  pipeline.ErrorKind `json:"failed_kind,omitempty"`
}

// Reference gives the Ref of any request that embeds it.
func (r Ref) Reference() Ref { return r }

// TriggerRequest asks for the first stage.
type TriggerRequest struct {
	Ref
}

// TriggerResult is the decision, with every number that it compared.
type TriggerResult struct {
	// Skip is the reason why the run ends here, "" to go on.
	Skip     string                   `json:"skip,omitempty"`
	Decision pipeline.TriggerDecision `json:"decision"`
	// Head is the last sequence number of the snapshot that the whole run works on.
	Head int64 `json:"head"`
	// Base is the marker that was active then, "" without one.
	Base string `json:"base,omitempty"`
	// Manual and Full are what the request asked for.
	Manual bool `json:"manual,omitempty"`
	Full   bool `json:"full,omitempty"`
	// Budget is how long the run may take from its start.
	Budget time.Duration `json:"budget"`
	// TokenBudget bounds what the run's model calls send and receive, 0 for no bound.
	TokenBudget int `json:"token_budget,omitempty"`
	// SpentAt is, of a replay from the record, the call before which the original's time was spent; 0: it was not.
	SpentAt int `json:"spent_at,omitempty"`
	// ModelQueue is the task queue of the workers that call models.
	ModelQueue string `json:"model_queue"`
}

// SummarizerRequest asks for the ordered list of summarizers.
type SummarizerRequest struct {
	Ref
	Head int64 `json:"head"`
	// AtOrOverLimit says that the trigger's limit is reached: the digest may then stand in.
	AtOrOverLimit bool `json:"at_or_over_limit,omitempty"`
}

// SummarizerResult is the list, best first.
type SummarizerResult struct {
	Ladder []pipeline.Summarizer `json:"ladder"`
	// SelfReason says why the agent's own model is not used, "" when it is.
	SelfReason string `json:"self_reason,omitempty"`
	// DigestForBudget says that the digest may stand in once a token budget is spent, also where the list has none.
	DigestForBudget bool `json:"digest_for_budget,omitempty"`
}

// PartitionRequest asks which messages are summarized and which stay.
type PartitionRequest struct {
	Ref
	Head int64 `json:"head"`
	Full bool  `json:"full,omitempty"`
	// ModelAsked says that a model is on the list: an active digest is then replaced by its summary.
	ModelAsked bool `json:"model_asked,omitempty"`
	// Again takes the same messages once more: what was done with them before did not help.
	Again bool `json:"again,omitempty"`
}

// PartitionResult refers to the plan, which is kept as an artifact.
type PartitionResult struct {
	// Nothing is "empty", "all_protected" or "already_compacted" when there is nothing to do, else "".
	Nothing string `json:"nothing,omitempty"`
	// Plan is the hash of the plan artifact. With Nothing to summarize it is for squeezing the tail alone.
	Plan string `json:"plan,omitempty"`
	// Summarize and Tail count messages.
	Summarize  int   `json:"summarise"`
	Tail       int   `json:"tail"`
	CoversFrom int64 `json:"covers_from"`
	CoversTo   int64 `json:"covers_to"`
	Warnings   int   `json:"warnings,omitempty"`
}

// SlimRequest asks for the summarizer's input, within what it takes.
type SlimRequest struct {
	Ref
	Plan       string              `json:"plan"`
	Summarizer pipeline.Summarizer `json:"summarizer"`
	// Factor scales the input, see pipeline.SlimInput.Share: 1, then 0.5, 0.25 as the ladder slims harder.
	Factor    float64            `json:"factor"`
	Variation pipeline.Variation `json:"variation"`
}

func (r SlimRequest) summarizer() string { return r.Summarizer.String() }

// SlimResult refers to the prepared input.
type SlimResult struct {
	// Input is the hash of the input artifact.
	Input string `json:"input"`
	// Chars and Tokens are the input's size, tokens by the local estimate.
	Chars  int `json:"chars"`
	Tokens int `json:"tokens"`
	// MaxOutput is the output limit to ask for, in tokens.
	MaxOutput int `json:"max_output,omitempty"`
	// Omitted, Cut and DroppedTools count messages that are not there whole.
	Omitted      int `json:"omitted,omitempty"`
	Cut          int `json:"cut,omitempty"`
	DroppedTools int `json:"dropped_tools,omitempty"`
}

// SummarizeRequest asks one summarizer once.
type SummarizeRequest struct {
	Ref
	Plan       string              `json:"plan"`
	Input      string              `json:"input"`
	MaxOutput  int                 `json:"max_output,omitempty"`
	Summarizer pipeline.Summarizer `json:"summarizer"`
}

func (r SummarizeRequest) summarizer() string { return r.Summarizer.String() }

// SummarizeResult refers to an accepted, verified summary.
type SummarizeResult struct {
	// Summary is the hash of the summary artifact.
	Summary string `json:"summary"`
	Tokens  int    `json:"tokens"`
	// InputTokens and OutputTokens are what the model call was billed for, 0 for the digest.
	InputTokens  int `json:"input_tokens,omitempty"`
	OutputTokens int `json:"output_tokens,omitempty"`
	// Native is the hash of the artifact with what the vendor's own compaction gave, "": none was asked for, and
	// NativeUse that of what it may be used for. Where nobody but the vendor can read it there is no Summary: another
	// summarizer is to write one beside it.
	Native    string `json:"native,omitempty"`
	NativeUse string `json:"native_use,omitempty"`
	// ConstraintsMissing, UnsupportedIdentifiers and Misattributed are the verification's figures.
	ConstraintsMissing     int `json:"constraints_missing,omitempty"`
	UnsupportedIdentifiers int `json:"unsupported_identifiers,omitempty"`
	Misattributed          int `json:"misattributed,omitempty"`
}

// ReassembleRequest asks for the new context to be built and made the conversation's own.
type ReassembleRequest struct {
	Ref
	Plan string `json:"plan"`
	// Summary is the hash of the accepted summary, "" to squeeze the tail behind what is there.
	Summary    string              `json:"summary"`
	Summarizer pipeline.Summarizer `json:"summarizer"`
	// Native and NativeUse are those of SummarizeResult.
	Native    string `json:"native,omitempty"`
	NativeUse string `json:"native_use,omitempty"`
	// Omitted is the number of messages that the summarizer was not shown.
	Omitted int `json:"omitted,omitempty"`
	// Valve says how far the tail is squeezed.
	Valve pipeline.TailValve `json:"valve,omitempty"`
	// Manual: asked for by hand.
	Manual bool `json:"manual,omitempty"`
	// Final takes a context that is still above the trigger, as long as it is smaller than before.
	Final bool `json:"final,omitempty"`
}

func (r ReassembleRequest) summarizer() string { return r.Summarizer.String() }

// ReassembleResult is how the run ended, or why it did not yet.
type ReassembleResult struct {
	// Outcome is "applied", "prepared", "superseded" or "skipped", of a live replay that is only compared "replayed";
	// "" when Kind says what is in the way.
	Outcome string `json:"outcome,omitempty"`
	// Kind is no_shrink or conflict.
	Kind         pipeline.ErrorKind `json:"kind,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	Marker       string             `json:"marker,omitempty"`
	TokensBefore int                `json:"tokens_before"`
	TokensAfter  int                `json:"tokens_after"`
	Limit        int                `json:"limit"`
}

// FinishRequest closes a run that applied nothing, and compares a replay with its original.
type FinishRequest struct {
	Ref
	Outcome    string             `json:"outcome"`
	Kind       pipeline.ErrorKind `json:"kind,omitempty"`
	Stage      Stage              `json:"stage,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	Summarizer string             `json:"summarizer,omitempty"`
}

// FinishResult is what the run's row says, whoever closed it first.
type FinishResult struct {
	Outcome string             `json:"outcome"`
	Kind    pipeline.ErrorKind `json:"kind,omitempty"`
	Reason  string             `json:"reason,omitempty"`
}
