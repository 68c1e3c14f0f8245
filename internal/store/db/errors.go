package db

import (
	"errors"
	"fmt"
)

// The errors that callers distinguish with errors.Is. Any other error is a failure of the database or of the connection
// to it.
var (
	// ErrNotFound: the thing does not exist, or belongs to another tenant.
	ErrNotFound = errors.New("not found")
	// ErrContentDeleted: the conversation's content was deleted; its runs still exist. Is ErrNotFound.
	ErrContentDeleted = fmt.Errorf("the conversation's content was deleted: %w", ErrNotFound)
	// ErrDamaged: the content does not match its hash.
	ErrDamaged = errors.New("damaged")
	// ErrPruned: the content was pruned by age; its hash still exists. Is ErrNotFound.
	ErrPruned = fmt.Errorf("its content was pruned: %w", ErrNotFound)
	// ErrConflict: the request contradicts the stored state. A *ConflictError has the reason.
	ErrConflict = errors.New("conflict")
	// ErrStaleSequence: the conversation has changed since the caller read it. Is ErrConflict.
	ErrStaleSequence = fmt.Errorf("stale sequence: %w", ErrConflict)
	// ErrReplyOpen: a reply is being generated. Is ErrConflict.
	ErrReplyOpen = fmt.Errorf("a reply is being generated: %w", ErrConflict)
	// ErrNothingToUndo: no marker is active. Is ErrConflict.
	ErrNothingToUndo = fmt.Errorf("nothing to undo: %w", ErrConflict)
	// ErrRunActive: a run of the conversation has not ended. Is ErrConflict.
	ErrRunActive = fmt.Errorf("a run is not finished: %w", ErrConflict)
	// ErrRunEnded: the run has ended and its record is sealed, so that nothing else is written into it. Is ErrConflict.
	ErrRunEnded = fmt.Errorf("the run has ended, and its record is sealed: %w", ErrConflict)
	// ErrTampered: a row was changed since the store wrote it.
	ErrTampered = errors.New("changed since it was written")
	// ErrInvalid: the request is invalid whatever is stored.
	ErrInvalid = errors.New("invalid request")
)

// QuotaError is a change that would take a tenant over its quota.
type QuotaError struct {
	// Detail is one sentence: what the quota is, and what to do.
	Detail string
}

func (e *QuotaError) Error() string { return "quota exceeded: " + e.Detail }

// invalidError is an ErrInvalid whose text is what is wrong with the request.
type invalidError struct{ err error }

func (e *invalidError) Error() string { return e.err.Error() }

func (e *invalidError) Unwrap() []error { return []error{ErrInvalid, e.err} }

// Invalidf returns an ErrInvalid whose text is the formatted message alone.
func Invalidf(format string, args ...any) error { return &invalidError{fmt.Errorf(format, args...)} }

// NotFoundf returns an ErrNotFound that names what was not found.
func NotFoundf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNotFound)
}

// IsNotFound reports whether err is an ErrNotFound.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }
