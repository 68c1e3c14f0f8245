package store

import "precis/internal/store/db"

// The types that all rooms share, for callers that import no room.
type (
	// Options configure a Store.
	Options = db.Options
	// ConversationRef identifies a conversation of a tenant.
	ConversationRef = db.ConversationRef
	// RunRef names a run of a tenant.
	RunRef = db.RunRef
	// BatchRef names a batch of replays of a tenant.
	BatchRef = db.BatchRef
	// Hash is a SHA-256.
	Hash = db.Hash
	// ConflictError is an ErrConflict with its reason.
	ConflictError = db.ConflictError
	// ConflictReason is the reason why a change was refused.
	ConflictReason = db.ConflictReason
	// QuotaError is the error of a change that would take a tenant over its quota.
	QuotaError = db.QuotaError
)

// DefaultTenant owns everything while no API keys are configured.
const DefaultTenant = db.DefaultTenant

// The errors that callers distinguish with errors.Is, see package db.
var (
	ErrNotFound       = db.ErrNotFound
	ErrContentDeleted = db.ErrContentDeleted
	ErrDamaged        = db.ErrDamaged
	ErrPruned         = db.ErrPruned
	ErrConflict       = db.ErrConflict
	ErrStaleSequence  = db.ErrStaleSequence
	ErrReplyOpen      = db.ErrReplyOpen
	ErrNothingToUndo  = db.ErrNothingToUndo
	ErrRunActive      = db.ErrRunActive
	ErrRunEnded       = db.ErrRunEnded
	ErrTampered       = db.ErrTampered
	ErrInvalid        = db.ErrInvalid
)

// The reasons of a ConflictError, see package db.
const (
	ConflictReplyOpen      = db.ConflictReplyOpen
	ConflictBaseChanged    = db.ConflictBaseChanged
	ConflictCoveredChanged = db.ConflictCoveredChanged
	ConflictRunFinished    = db.ConflictRunFinished
	ConflictNotPrepared    = db.ConflictNotPrepared
	ConflictReplyEnded     = db.ConflictReplyEnded
	ConflictDifferent      = db.ConflictDifferent
)

// Invalidf returns an ErrInvalid whose text is the formatted message alone.
func Invalidf(format string, args ...any) error { return db.Invalidf(format, args...) }

// IDProblem returns why s cannot be the id of something new, "" if it can, see package db.
func IDProblem(s string, max int) string { return db.IDProblem(s, max) }

// ConflictReasonOf returns the reason of a ConflictError, "" for any other error.
func ConflictReasonOf(err error) ConflictReason { return db.ConflictReasonOf(err) }

// Unavailable reports whether err means that the database could not be reached or accepts no work at the moment. The
// same call may succeed later.
func Unavailable(err error) bool { return db.Unavailable(err) }
