package contract

import (
	"encoding/json"
	"slices"

	"precis/pipeline"
)

// The numbers of an attempt are what its stage found out, kept as one JSON object in its row of run_attempts: the
// stage's result and beside it the notes below. They hold no text of a conversation.

// TriggerNotes is what the first stage notes beside its result.
type TriggerNotes struct {
	// Input is what the decision rests on.
	Input *pipeline.TriggerInput `json:"input,omitempty"`
	Given Given                  `json:"given,omitzero"`
}

// SummarizerNotes is what the second stage notes beside its result.
type SummarizerNotes struct {
	// Skipped are the summarizers that were left off the list, with the reason of each.
	Skipped []pipeline.SkippedSummarizer `json:"skipped,omitempty"`
	// NotNative are the models in mode beta that are asked with a prompt, with the reason of each.
	NotNative []pipeline.SkippedSummarizer `json:"not_native,omitempty"`
	// TenantBudget is the tenant's budget where it is spent.
	TenantBudget *TenantBudget `json:"tenant_budget,omitempty"`
	Given        Given         `json:"given,omitzero"`
}

// PartitionNotes is what the third stage notes beside its result: nothing.
type PartitionNotes struct{}

// SlimNotes is what the fourth stage notes beside its result.
type SlimNotes struct {
	// BudgetChars is the room that the input was slimmed to, in chars.
	BudgetChars int `json:"budget_chars,omitempty"`
	// Valves names the valves that had to open, in order.
	Valves []string `json:"valves,omitempty"`
	// Binaries counts the binary pieces that were replaced.
	Binaries int `json:"binaries,omitempty"`
}

// SummarizeNotes is what the fifth stage notes beside its result.
type SummarizeNotes struct {
	// CachedInputTokens is how many of the input tokens came from the vendor's cache.
	CachedInputTokens int `json:"cached_input_tokens,omitempty"`
	// ModelMS is how long the model call took, in milliseconds.
	ModelMS int64 `json:"model_ms,omitempty"`
	// AnswerReused says that an earlier attempt had received the answer, and that no model was called.
	AnswerReused bool `json:"answer_reused,omitempty"`
	// NativeForm and NativeTokens are the form and the size of the vendor's own compaction.
	NativeForm   string `json:"native_form,omitempty"`
	NativeTokens int    `json:"native_tokens,omitempty"`
}

// RunNumbers are the numbers of a run, kept as one JSON object in its row of runs.
type RunNumbers struct {
	// Trigger is the decision of the first stage.
	Trigger *pipeline.TriggerDecision `json:"trigger,omitempty"`
	// LookAhead is that of ReassembleNotes for a prepared summary that took effect later.
	LookAhead *int `json:"look_ahead,omitempty"`
}

// ReassembleNotes is what the sixth stage notes beside its result.
type ReassembleNotes struct {
	// LookAhead counts the lines that were added to the summary for messages which came while it was written; nil:
	// none came.
	LookAhead *int `json:"look_ahead,omitempty"`
}

// FinishNotes is what closing a run notes beside its result: nothing.
type FinishNotes struct{}

// Given is what a stage learned from outside of the conversation: of the configuration, the clock, the state of vendors
// and budgets. A replay from the record takes it from there; nil fields were not asked for.
type Given struct {
	AgentModel   *ModelLimits         `json:"agent_model,omitempty"`
	Self         *Permission          `json:"self,omitempty"`
	Breakers     *OpenBreakers        `json:"breakers,omitempty"`
	Summarizers  *ResolvedSummarizers `json:"summarizers,omitempty"`
	TenantBudget *TenantBudget        `json:"tenant_budget,omitempty"`
	// Native says of each model that was looked at whether its vendor compacts for it.
	Native []NativeAbility `json:"native,omitempty"`
}

// ModelLimits is what is known of a model, in tokens; 0: unknown.
type ModelLimits struct {
	Window    int `json:"window,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
}

// Permission says whether the agent's own model may be asked, or why not.
type Permission struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`
}

// OpenBreakers says of each model, as VENDOR/MODEL, whether its breaker is open. Earlier builds had breakers of
// vendors.
type OpenBreakers map[string]bool

// ResolvedSummarizer is what is known of a listed summarizer, or why it cannot be asked.
type ResolvedSummarizer struct {
	Spec       pipeline.SummarizerSpec `json:"spec"`
	Summarizer pipeline.Summarizer     `json:"summarizer"`
	Why        string                  `json:"why,omitempty"`
}

// ResolvedSummarizers are the listed summarizers, the agent's own model first.
type ResolvedSummarizers []ResolvedSummarizer

// Find returns what is known of a listed summarizer; false: it is not listed.
func (r ResolvedSummarizers) Find(spec pipeline.SummarizerSpec) (ResolvedSummarizer, bool) {
	for _, known := range r {
		if known.Spec == spec {
			return known, true
		}
	}
	return ResolvedSummarizer{}, false
}

// NativeAbility is the form in which a vendor compacts for a model by itself, or why it does not.
type NativeAbility struct {
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Form   string `json:"form,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Numbers is what an attempt found out: its stage's result, and what the stage noted beside it. Its JSON is one object
// with the fields of both.
type Numbers[Result, Notes any] struct {
	Result Result
	Notes  Notes
}

// MarshalJSON writes one object with the fields of both. An attempt that failed has the zero result of its stage.
func (n Numbers[Result, Notes]) MarshalJSON() ([]byte, error) {
	result, err := json.Marshal(n.Result)
	if err != nil {
		return nil, err
	}
	notes, err := json.Marshal(n.Notes)
	if err != nil {
		return nil, err
	}
	if len(notes) == len("{}") {
		return result, nil
	}
	if len(result) == len("{}") {
		return notes, nil
	}
	return slices.Concat(result[:len(result)-1], []byte(","), notes[1:]), nil
}

// UnmarshalJSON reads both out of one object.
func (n *Numbers[Result, Notes]) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &n.Result); err != nil {
		return err
	}
	return json.Unmarshal(data, &n.Notes)
}

// The numbers of the stages' attempts.
type (
	TriggerNumbers    = Numbers[TriggerResult, TriggerNotes]
	SummarizerNumbers = Numbers[SummarizerResult, SummarizerNotes]
	PartitionNumbers  = Numbers[PartitionResult, PartitionNotes]
	SlimNumbers       = Numbers[SlimResult, SlimNotes]
	SummarizeNumbers  = Numbers[SummarizeResult, SummarizeNotes]
	ReassembleNumbers = Numbers[ReassembleResult, ReassembleNotes]
)
