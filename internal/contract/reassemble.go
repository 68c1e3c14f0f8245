package contract

import (
	"precis"
	"precis/pipeline"
)

// ReassembleRequest asks for the new context to be built and applied.
type ReassembleRequest struct {
	Ref
	Plan string `json:"plan"`
	// Summary is the hash of the accepted summary, "" to shorten the tail alone.
	Summary    string              `json:"summary"`
	Summarizer pipeline.Summarizer `json:"summarizer"`
	// Native and NativeUse are those of SummarizeResult.
	Native    string `json:"native,omitempty"`
	NativeUse string `json:"native_use,omitempty"`
	// Omitted counts messages that the summarizer's input did not hold.
	Omitted int `json:"omitted,omitempty"`
	// Valve says how the tail is shortened.
	Valve pipeline.TailValve `json:"valve,omitempty"`
	// Manual: the run was asked for by hand.
	Manual bool `json:"manual,omitempty"`
	// Final accepts a context that is still above the limit, as long as it is smaller than before.
	Final bool `json:"final,omitempty"`
}

// ReassembleResult is how the run ended, or why it has not.
type ReassembleResult struct {
	// Outcome is applied, prepared, superseded or skipped; of a live replay that is only compared, replayed. It is ""
	// if Kind says what is in the way.
	Outcome precis.Outcome `json:"outcome,omitempty"`
	// Kind is no_shrink or conflict.
	Kind         pipeline.ErrorKind `json:"kind,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	Marker       string             `json:"marker,omitempty"`
	TokensBefore int                `json:"tokens_before"`
	TokensAfter  int                `json:"tokens_after"`
	Limit        int                `json:"limit"`
}
