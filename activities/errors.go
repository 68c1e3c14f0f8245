package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/temporal"

	"precis/internal/contract"
	"precis/internal/store"
	"precis/pipeline"
)

// maxTransientAttempts bounds how often one call waits for a vendor that is away: the next summarizer is
// usually sooner than the fifth attempt.
const maxTransientAttempts = 4

// maxInternalAttempts is how often a fault of ours is tried again, in case it was not one.
const maxInternalAttempts = contract.MaxTries

// typeUnavailable is the application error type for "Postgres is away": retried for as long as it takes.
const typeUnavailable = "unavailable"

// toTemporal turns an activity's error into the application error that decides about retries: its type is
// the error kind, its next delay honors Retry-After, and it carries no text of the conversation. Temporal
// cuts failures at 4 KiB, so the diagnostics are in run_attempts. attempt is Temporal's count, from 1.
func toTemporal(ctx context.Context, err error, attempt int32) error {
	return toTemporalAfter(ctx, err, attempt, int(attempt)-1)
}

// toTemporalAfter is toTemporal where it is known how many of the attempts before this one ended by a fault of ours.
func toTemporalAfter(ctx context.Context, err error, attempt int32, faults int) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.As(err, new(*pipeline.Error)) {
		return err // cancelled, or the worker is stopping: Temporal knows what to do
	}
	if errors.Is(err, store.ErrRunEnded) {
		// Whoever ended the run did not wait for this stage. Temporal takes a cancellation only from an activity that
		// it has cancelled, and would try this one again.
		return temporal.NewApplicationErrorWithOptions("the run has ended", string(pipeline.Cancelled),
			temporal.ApplicationErrorOptions{NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign})
	}
	if store.Unavailable(err) {
		return temporal.NewApplicationErrorWithOptions("the database is not reachable: waiting for it", typeUnavailable,
			temporal.ApplicationErrorOptions{Cause: err, Category: temporal.ApplicationErrorCategoryBenign})
	}
	if errors.Is(err, errBusy) {
		return temporal.NewApplicationErrorWithOptions(errBusy.Error(), typeUnavailable,
			temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	}
	if d := (*divergedError)(nil); errors.As(err, &d) {
		return temporal.NewApplicationErrorWithOptions(shorten(d.says), string(contract.KindDiverged),
			temporal.ApplicationErrorOptions{NonRetryable: true})
	}
	var e *pipeline.Error
	if !errors.As(err, &e) {
		e = &pipeline.Error{Kind: pipeline.Internal, Message: err.Error()}
	}
	options := temporal.ApplicationErrorOptions{}
	switch {
	case e.Kind == pipeline.Cancelled && !errors.As(err, new(*finalError)):
		return temporal.NewCanceledError()
	case e.Kind.Transient():
		options.Category = temporal.ApplicationErrorCategoryBenign
		options.NonRetryable = attempt >= maxTransientAttempts
		options.NextRetryDelay = retryDelay(e.RetryAfter, attempt)
	case e.Kind == pipeline.Internal:
		options.NonRetryable = faults+1 >= maxInternalAttempts
	default:
		options.NonRetryable = true
	}
	if errors.As(err, new(*finalError)) {
		options.NonRetryable, options.NextRetryDelay = true, 0
	}
	return temporal.NewApplicationErrorWithOptions(shorten(e.Message), string(e.Kind), options)
}

// retryDelay is the vendor's Retry-After when it gave one, else an exponential delay with full jitter over
// its upper half, so that a fleet does not come back in step.
func retryDelay(retryAfter time.Duration, attempt int32) time.Duration {
	if retryAfter > 0 {
		return retryAfter + time.Duration(rand.Int64N(int64(retryAfter)/10+1))
	}
	delay := time.Second << min(attempt-1, 5)
	return delay/2 + time.Duration(rand.Int64N(int64(delay)/2))
}

// shorten keeps a message within what a history should hold.
func shorten(s string) string {
	const most = 300
	return pipeline.Truncate(s, most)
}

// kindOfFailure returns the kind under which a failed attempt is recorded.
func kindOfFailure(ctx context.Context, err error) pipeline.ErrorKind {
	switch {
	case errors.Is(err, errBusy):
		return pipeline.Overloaded
	case errors.Is(err, store.ErrRunEnded):
		return pipeline.Cancelled // whoever ended the run did not wait for this stage
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.As(err, new(*pipeline.Error)):
		return pipeline.Internal // the stage took longer than any should
	case ctx.Err() != nil && !errors.As(err, new(*pipeline.Error)):
		return pipeline.Cancelled
	case store.Unavailable(err):
		return pipeline.Network
	}
	return pipeline.KindOf(err)
}

// messageOf returns the sentence of an error: the pipeline's own without its causes, else the whole text.
func messageOf(err error) string {
	if e := asError(err); e != nil {
		return e.Message
	}
	return err.Error()
}
