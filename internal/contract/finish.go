package contract

import (
	"precis"
	"precis/pipeline"
)

// FinishRequest closes a run that applied nothing, and compares a replay with its original.
type FinishRequest struct {
	Ref
	Outcome    precis.Outcome     `json:"outcome"`
	Kind       pipeline.ErrorKind `json:"kind,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	Summarizer string             `json:"summarizer,omitempty"`
}

// FinishResult is what the run's row says. An activity that closed the run earlier wins.
type FinishResult struct {
	Outcome precis.Outcome     `json:"outcome"`
	Kind    pipeline.ErrorKind `json:"kind,omitempty"`
	Reason  string             `json:"reason,omitempty"`
}
