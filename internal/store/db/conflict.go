package db

import (
	"errors"
	"fmt"

	"precis/pipeline"
)

// ConflictReason says what stands in the way of a marker.
type ConflictReason string

// The reasons.
const (
	// ConflictReplyOpen: a reply is being generated; try again when it has ended or its lease has expired.
	ConflictReplyOpen ConflictReason = "reply_open"
	// ConflictBaseChanged: the active marker is no longer the one that the summary was written on.
	ConflictBaseChanged ConflictReason = "base_changed"
	// ConflictCoveredChanged: the covered messages are not the ones that were summarized.
	ConflictCoveredChanged ConflictReason = "covered_changed"
	// ConflictRunFinished: the run has ended another way, for example cancelled.
	ConflictRunFinished ConflictReason = "run_finished"
	// ConflictNotPrepared: the marker is not waiting to be applied: it was applied, discarded or undone.
	ConflictNotPrepared ConflictReason = "not_prepared"
	// ConflictReplyEnded: the reply has been ended before.
	ConflictReplyEnded ConflictReason = "reply_ended"
	// ConflictDifferent: the id is taken by something else.
	ConflictDifferent ConflictReason = "different"
)

// ConflictError is an ErrConflict with its reason. pipeline.KindOf gives pipeline.Conflict for it.
type ConflictError struct {
	Reason ConflictReason
	// Detail is one sentence for a person, without text of the conversation.
	Detail string
}

func (e *ConflictError) Error() string { return string(e.Reason) + ": " + e.Detail }

// Unwrap makes the error an ErrConflict, an ErrReplyOpen where that is the reason, and a pipeline.Error of
// kind conflict.
func (e *ConflictError) Unwrap() []error {
	kind := &pipeline.Error{Kind: pipeline.Conflict, Message: e.Error()}
	if e.Reason == ConflictReplyOpen {
		return []error{ErrReplyOpen, kind}
	}
	return []error{ErrConflict, kind}
}

func Conflictf(reason ConflictReason, format string, args ...any) error {
	return &ConflictError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// ConflictReasonOf gives the reason of a ConflictError, "" for any other error.
func ConflictReasonOf(err error) ConflictReason {
	var c *ConflictError
	if errors.As(err, &c) {
		return c.Reason
	}
	return ""
}
