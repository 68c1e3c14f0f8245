package workflows

import (
	"precis/internal/contract"
	"precis/pipeline"
)

// take changes the run as a fallback of the stages slim and summarize says. It reports false if the fallback ends the
// run, or no summarizer is left.
func (r *run) take(fallback contract.Fallback, stage contract.Stage, kind pipeline.ErrorKind) bool {
	r.rung = fallback
	switch fallback {
	case contract.ShorterOutput:
		r.variation.Shorter = true
	case contract.HalfInput:
		r.variation.Shorter = true
		r.factor *= 0.5
	case contract.SlimHarder:
		r.factor *= 0.5
	case contract.OnceMore:
		r.variation.Again++
	case contract.PlainText:
		r.variation.Plain = true
	case contract.NextSummarizer:
		return r.nextSummarizer(stage, kind)
	case contract.LargerWindow:
		return r.largerWindow()
	case contract.UseDigest:
		return r.useDigest(stage)
	default:
		return false
	}
	return true
}

// nextSummarizer switches to the next summarizer that does not fail for the same reason.
func (r *run) nextSummarizer(stage contract.Stage, kind pipeline.ErrorKind) bool {
	next := r.current + 1
	for next < len(r.summarizers) && r.failsAlike(r.summarizers[next], kind) {
		next++
	}
	factor := 1.0
	if stage == contract.StageSummarize && r.needsLessInput(next, kind) {
		factor = 0.5
	}
	if !r.switchTo(next) {
		return false
	}
	r.factor = factor
	return true
}

// largerWindow switches to the next summarizer with a larger window than the current one, or to the digest.
func (r *run) largerWindow() bool {
	next := r.current + 1
	for next < len(r.summarizers) && r.summarizers[next].Kind != pipeline.SummarizerDigest &&
		r.summarizers[next].Window <= r.summarizers[r.current].Window {
		next++
	}
	return r.switchTo(next)
}

// useDigest switches to the digest. If the list has none, a run whose token budget is spent may add it: stage slim and
// the booking of a call are where that budget is checked.
func (r *run) useDigest(stage contract.Stage) bool {
	for i := range r.summarizers {
		if r.summarizers[i].Kind == pipeline.SummarizerDigest {
			return r.switchTo(i)
		}
	}
	if !r.digestForBudget || stage != contract.StageSlim && !r.overBudget {
		return false
	}
	r.summarizers = append(r.summarizers, pipeline.Summarizer{Kind: pipeline.SummarizerDigest})
	return r.switchTo(len(r.summarizers) - 1)
}

// switchTo makes summarizer i the current one and clears the counters of the previous one. It reports false if i is
// past the end of the list.
func (r *run) switchTo(i int) bool {
	if i >= len(r.summarizers) {
		return false
	}
	r.current, r.used, r.factor, r.variation = i, taken{}, 1, pipeline.Variation{}
	return true
}

// failsAlike reports whether next would fail for the same reason as the current summarizer: same vendor account, or
// same model asked in another way.
func (r *run) failsAlike(next pipeline.Summarizer, kind pipeline.ErrorKind) bool {
	if current := r.summarizers[r.current]; current.Kind == pipeline.SummarizerNative {
		// The vendor's own compaction may fail where the model works; the account is the same.
		account := kind == pipeline.Auth || kind == pipeline.Quota || kind == pipeline.RateLimited
		return account && next.Vendor == current.Vendor && next.Model == current.Model
	}
	return next.Fallback && failureOfModel(kind)
}

// needsLessInput reports whether summarizer i asks the model that has just refused an input of so many tokens. Bytes
// are different: what the other way of asking sends has no images.
func (r *run) needsLessInput(i int, kind pipeline.ErrorKind) bool {
	if i >= len(r.summarizers) || kind != pipeline.InputTokensExceeded {
		return false
	}
	current, next := r.summarizers[r.current], r.summarizers[i]
	return next.Kind == pipeline.SummarizerExternal && next.Vendor == current.Vendor && next.Model == current.Model
}

// failureOfModel reports whether a failure is the model's or its vendor's, so that asking the same model in another way
// fails as well.
func failureOfModel(kind pipeline.ErrorKind) bool {
	switch kind {
	case pipeline.Auth, pipeline.Quota, pipeline.ModelNotFound, pipeline.Refused:
		return true
	}
	return kind.Transient()
}
