package db

import (
	"errors"
	"fmt"

	"precis/pipeline"
)

// ConflictReason is the reason why a change was refused.
type ConflictReason string

// The reasons.
const (
	// ConflictReplyOpen: a reply is being generated; try again when it has ended or its lease has expired.
	ConflictReplyOpen ConflictReason = "reply_open"
	// ConflictBaseChanged: the active marker is no longer the one that the summary was written on.
	ConflictBaseChanged ConflictReason = "base_changed"
	// ConflictCoveredChanged: the covered messages are not the ones that were summarized.
	ConflictCoveredChanged ConflictReason = "covered_changed"
	// ConflictRunFinished: the run has already ended with another outcome, for example cancelled.
	ConflictRunFinished ConflictReason = "run_finished"
	// ConflictNotPrepared: the marker is not prepared; it was applied, discarded or undone.
	ConflictNotPrepared ConflictReason = "not_prepared"
	// ConflictReplyEnded: the reply has already ended.
	ConflictReplyEnded ConflictReason = "reply_ended"
	// ConflictDifferent: the id is already used for something else.
	ConflictDifferent ConflictReason = "different"
)

// ConflictError is an ErrConflict with its reason. pipeline.KindOf returns pipeline.Conflict for it.
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

// Conflictf returns a *ConflictError with the reason and a formatted detail.
func Conflictf(reason ConflictReason, format string, args ...any) error {
	return &ConflictError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// ConflictReasonOf returns the reason of a ConflictError, "" for any other error.
func ConflictReasonOf(err error) ConflictReason {
	var c *ConflictError
	if errors.As(err, &c) {
		return c.Reason
	}
	return ""
}
