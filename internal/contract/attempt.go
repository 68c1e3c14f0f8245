package contract

// AttemptOutcome is how an attempt at a stage ended.
type AttemptOutcome string

// The outcomes of an attempt.
const (
	// AttemptStarted is written when the attempt begins. It stays if the worker dies in it.
	AttemptStarted AttemptOutcome = "started"
	AttemptOK      AttemptOutcome = "ok"
	AttemptFailed  AttemptOutcome = "failed"
	// AttemptReused: an earlier attempt had stored its result, and no work was done.
	AttemptReused AttemptOutcome = "reused"
)

// MaxTries is how often a stage is tried that fails by a fault of precis: it panics, takes too long, or takes its
// worker down. Then the run ends with kind internal.
const MaxTries = 3

// Waited is noted with every attempt, beside what its stage notes.
type Waited struct {
	// WaitedMS is how long the attempt waited until its tenant's turn came to compute, in milliseconds.
	WaitedMS int64 `json:"waited_ms,omitempty"`
}
