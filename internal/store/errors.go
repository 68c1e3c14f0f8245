package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"precis/pipeline"
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

func conflictf(reason ConflictReason, format string, args ...any) error {
	return &ConflictError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// ConflictReasonOf gives the reason of a ConflictError, "" for any other error.
func ConflictReasonOf(err error) ConflictReason {
	var c *ConflictError
	if errors.As(err, &c) {
		return c.Reason
	}
	return ""
}

// Unavailable says whether err means that the database could not be reached or is not taking work just now:
// the same call may succeed later, and nothing is wrong with it. A caller's own cancelled context is not that.
func Unavailable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	// An error that has a kind is somebody else's, such as a vendor's connection that broke.
	if errors.As(err, new(*pipeline.Error)) {
		return false
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return !refusedForGood(err)
	}
	// A file that cannot be written and an address that is taken are net.Errors too.
	var op *net.OpError
	if errors.As(err, new(*fs.PathError)) || errors.As(err, &op) && op.Op == "listen" {
		return false
	}
	return brokenConnection(err) || busyServer(err)
}

// refusedForGood says that the server answered and will never let this configuration in: a wrong password,
// no such database or role.
func refusedForGood(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "28") || pg.Code == "3D000")
}

// brokenConnection says that the connection went away under the operation.
func brokenConnection(err error) bool {
	var netErr net.Error
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		// 08: connection exceptions. 57P01..57P02: the server is being stopped, the session is closed.
		return strings.HasPrefix(pg.Code, "08") || pg.Code == "57P01" || pg.Code == "57P02"
	case errors.Is(err, context.DeadlineExceeded):
		return false // the caller's own patience; it is a net.Error too
	}
	// SafeToRetry: nothing was sent, since the connection was gone before.
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &netErr) || pgconn.SafeToRetry(err)
}

// busyServer says that the server is there and takes no new session or work just now.
func busyServer(err error) bool {
	var pg *pgconn.PgError
	// 57P03: starting up or shutting down. 53300: too many connections.
	return errors.As(err, &pg) && (pg.Code == "57P03" || pg.Code == "53300")
}

// violates says whether err is a violation of the named constraint or unique index.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}

func notFoundf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNotFound)
}

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }
