package precis

// Outcome is how a run ended.
type Outcome string

// The outcomes of a run; "" while it has not ended.
const (
	// OutcomeApplied: the conversation's context is the compacted one.
	OutcomeApplied Outcome = "applied"
	// OutcomePrepared: a summary computed in the background is ready to be applied when the context is full.
	OutcomePrepared Outcome = "prepared"
	// OutcomeSkipped: there was nothing to do; the reason says why.
	OutcomeSkipped Outcome = "skipped"
	// OutcomeSuperseded: the conversation changed meanwhile, so that the summary no longer fits.
	OutcomeSuperseded Outcome = "superseded"
	// OutcomeCancelled: the run was cancelled before its summary was applied.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeFailed: every fallback was used up; the error kind and the reason say why.
	OutcomeFailed Outcome = "failed"
	// OutcomeReplayed: a replay ran to its end. It changes nothing in the conversation.
	OutcomeReplayed Outcome = "replayed"
)

// Outcomes lists every outcome.
var Outcomes = []Outcome{
	OutcomeApplied, OutcomePrepared, OutcomeSkipped, OutcomeSuperseded, OutcomeCancelled, OutcomeFailed,
	OutcomeReplayed,
}
