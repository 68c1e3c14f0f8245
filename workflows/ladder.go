package workflows

import (
	"precis/internal/contract"
	"precis/pipeline"
)

// MaxModelCalls bounds the model calls of a run, whatever its list of summarizers; after it, the digest is used. Each
// call is at most two activities, 12 events: so the longest run has less than 200 events of history.
const MaxModelCalls = 10

// The words of the ladder.
const (
	slim       = contract.StageSlim
	summarize  = contract.StageSummarize
	reassemble = contract.StageReassemble
	anyStage   = contract.Stage("")

	native = pipeline.SummarizerNative
	self   = pipeline.SummarizerSelf
)

// The failures of the ladder.
var (
	tooLarge      = kinds{pipeline.InputTokensExceeded, pipeline.InputTooLarge}
	tooLong       = kinds{pipeline.OutputTooLong, pipeline.NotSmaller}
	unusable      = kinds{pipeline.EmptyOutput, pipeline.MalformedOutput, pipeline.ToolCallOutput}
	malformed     = kinds{pipeline.MalformedHistory}
	rejected      = kinds{pipeline.Refused, pipeline.Auth, pipeline.Quota}
	modelNotFound = kinds{pipeline.ModelNotFound}
	badRequest    = kinds{pipeline.BadRequest}
	unavailable   = kinds{
		pipeline.RateLimited, pipeline.Overloaded, pipeline.ServerError, pipeline.Network, pipeline.Timeout,
	}
	internalError  = kinds{pipeline.Internal}
	budgetSpent    = kinds{pipeline.BudgetExceeded}
	stillTooLarge  = kinds{pipeline.NoShrink}
	changedBetween = kinds{pipeline.Conflict}
)

// Ladder says what a run does after a failure. The first rule for the stage, the summarizer and the error kind counts;
// its fallbacks are taken in order, each as often as the rule says for one summarizer (of stage reassemble: for one
// run). A failure that no rule names ends the run as failed. A transient failure arrives here when the retries of the
// summarize activity are used up.
//
// A change of the ladder changes the commands of runs that are running: docs/versioning.md says how to make one.
var Ladder = []Rule{
	// The vendor's own compaction is tried once; after any failure a model is asked with a prompt.
	on(slim, tooLarge, badRequest, malformed).by(native).then(contract.NextSummarizer),
	on(summarize, tooLarge, tooLong, unusable, malformed, rejected, modelNotFound, badRequest, unavailable,
		internalError).by(native).then(contract.NextSummarizer),

	// The agent's own request cannot be made smaller.
	on(slim, tooLarge).by(self).then(contract.NextSummarizer),
	on(slim, tooLarge).then(contract.LargerWindow),
	on(slim, malformed, modelNotFound, badRequest, internalError).then(contract.NextSummarizer),

	on(summarize, tooLarge).by(self).then(contract.NextSummarizer),
	on(summarize, tooLong).by(self).once(contract.ShorterOutput).then(contract.NextSummarizer),
	on(summarize, malformed).by(self).then(contract.NextSummarizer),

	on(summarize, tooLarge).times(3, contract.SlimHarder).then(contract.LargerWindow),
	on(summarize, tooLong).once(contract.ShorterOutput).once(contract.HalfInput).then(contract.NextSummarizer),
	on(summarize, unusable).once(contract.OnceMore).then(contract.NextSummarizer),
	on(summarize, malformed).once(contract.PlainText).then(contract.NextSummarizer),
	on(summarize, rejected, modelNotFound, badRequest).then(contract.NextSummarizer),
	on(summarize, unavailable).then(contract.NextSummarizer),
	on(summarize, internalError).then(contract.NextSummarizer),

	on(anyStage, budgetSpent).once(contract.UseDigest).then(contract.Fail),

	on(reassemble, stillTooLarge).once(contract.SummarizeAll).once(contract.TailPreviews).
		once(contract.TailHeadAndTail).then(contract.TakeSmaller),
	on(reassemble, changedBetween).then(contract.Supersede),
}
