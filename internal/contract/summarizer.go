package contract

import "precis/pipeline"

// SummarizerRequest asks for the list of summarizers.
type SummarizerRequest struct {
	Ref
	Head int64 `json:"head"`
	// AtOrOverLimit: the trigger's limit is reached, and a digest may be used.
	AtOrOverLimit bool `json:"at_or_over_limit,omitempty"`
}

// SummarizerResult is the list, best first.
type SummarizerResult struct {
	Ladder []pipeline.Summarizer `json:"ladder"`
	// SelfReason says why the agent's own model is not used, "" if it is.
	SelfReason string `json:"self_reason,omitempty"`
	// DigestForBudget: a digest may be used once a token budget is spent, also if the list has none.
	DigestForBudget bool `json:"digest_for_budget,omitempty"`
}
