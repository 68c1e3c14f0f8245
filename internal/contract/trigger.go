package contract

import (
	"time"

	"precis/pipeline"
)

// TriggerRequest asks whether a compaction is due.
type TriggerRequest struct {
	Ref
}

// TriggerResult is the decision, with every number that was compared.
type TriggerResult struct {
	// Skip is the reason why the run ends here, "" if it does not.
	Skip     string                   `json:"skip,omitempty"`
	Decision pipeline.TriggerDecision `json:"decision"`
	// Head is the last sequence number of the messages that the whole run works on.
	Head int64 `json:"head"`
	// Base is the marker that is active, "" without one.
	Base string `json:"base,omitempty"`
	// Manual and Full are what the run was asked for with.
	Manual bool `json:"manual,omitempty"`
	Full   bool `json:"full,omitempty"`
	// Budget is the maximum duration of the run.
	Budget time.Duration `json:"budget"`
	// TokenBudget bounds what the run's model calls send and receive, 0 for no bound.
	TokenBudget int `json:"token_budget,omitempty"`
	// SpentAt is, of a recorded replay, the call before which the original run had used up its time, 0 if it had not.
	SpentAt int `json:"spent_at,omitempty"`
	// ModelQueue is the task queue of the workers that call models.
	ModelQueue string `json:"model_queue"`
}
