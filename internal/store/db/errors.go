package db

import (
	"errors"
	"fmt"
)

// The errors that callers tell apart with errors.Is. Whatever else comes back is a failure of the database
// or of the way to it.
var (
	// ErrNotFound: there is no such thing, or it is another tenant's.
	ErrNotFound = errors.New("not found")
	// ErrContentDeleted: the conversation's content was removed; its runs are still there. Is ErrNotFound.
	ErrContentDeleted = fmt.Errorf("the conversation's content was deleted: %w", ErrNotFound)
	// ErrDamaged: the content is not what its hash says.
	ErrDamaged = errors.New("damaged")
	// ErrPruned: the content was pruned by age, its hash is still there. Is ErrNotFound.
	ErrPruned = fmt.Errorf("its content was pruned: %w", ErrNotFound)
	// ErrConflict: what is there contradicts what was asked. A *ConflictError says in which way.
	ErrConflict = errors.New("conflict")
	// ErrStaleSequence: the caller's picture of the conversation is old. Is ErrConflict.
	ErrStaleSequence = fmt.Errorf("stale sequence: %w", ErrConflict)
	// ErrReplyOpen: a reply is being generated. Is ErrConflict.
	ErrReplyOpen = fmt.Errorf("a reply is being generated: %w", ErrConflict)
	// ErrNothingToUndo: no marker is active. Is ErrConflict.
	ErrNothingToUndo = fmt.Errorf("nothing to undo: %w", ErrConflict)
	// ErrRunActive: a run of the conversation has not ended. Is ErrConflict.
	ErrRunActive = fmt.Errorf("a run is not finished: %w", ErrConflict)
	// ErrTampered: what is stored is not what was written.
	ErrTampered = errors.New("changed since it was written")
	// ErrInvalid: the request cannot be right, whatever the state.
	ErrInvalid = errors.New("invalid request")
)

// invalidError is an ErrInvalid that says what is wrong.
type invalidError struct{ err error }

func (e *invalidError) Error() string { return e.err.Error() }

func (e *invalidError) Unwrap() []error { return []error{ErrInvalid, e.err} }

// Invalidf gives an ErrInvalid whose message is what is wrong with the request, and nothing else.
func Invalidf(format string, args ...any) error { return &invalidError{fmt.Errorf(format, args...)} }

// NotFoundf returns an ErrNotFound that names what was not found.
func NotFoundf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNotFound)
}

func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }
