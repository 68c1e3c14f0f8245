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
