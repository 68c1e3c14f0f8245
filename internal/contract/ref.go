package contract

import "precis/pipeline"

// Ref names the run that an activity works for. It is enough to find the run's data; with Call it is the key under
// which the activity's result is stored.
type Ref struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Run          string `json:"run"`
	// Call counts the activities of the run, from 1. A retry of an activity has the same number.
	Call int `json:"call"`
	// Tries counts the activities that were scheduled for the call before this one, and timed out.
	Tries int `json:"tries,omitempty"`
	// Rung is the fallback that led to this attempt, RungFirst if none did.
	Rung Fallback `json:"rung,omitempty"`
	// FailedStage, FailedCall and FailedKind are the attempt whose failure led to Rung, on the first call after it.
	// They complete the record of an attempt whose worker died.
	FailedStage Stage              `json:"failed_stage,omitempty"`
	FailedCall  int                `json:"failed_call,omitempty"`
	FailedKind  pipeline.ErrorKind `json:"failed_kind,omitempty"`
}

// CountTry notes that the activity timed out and is scheduled again.
func (r *Ref) CountTry() { r.Tries++ }
