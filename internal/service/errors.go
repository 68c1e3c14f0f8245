package service

import (
	"context"
	"errors"
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/pipeline"
)

// The codes of the errors of a Service, as in the HTTP API's problem documents.
const (
	// CodeNotFound: the resource does not exist, or belongs to another tenant.
	CodeNotFound wire.Code = "not_found"
	// CodeInvalid: the request is not valid, whatever the state of the conversation.
	CodeInvalid wire.Code = "invalid_request"
	// CodeForbidden: the key may not do this.
	CodeForbidden wire.Code = "forbidden"
	// CodeReplyOpen: a reply is open, the agent's model is generating.
	CodeReplyOpen wire.Code = "reply_open"
	// CodeReplyEnded: the reply was ended before, and its messages would be stored twice.
	CodeReplyEnded wire.Code = "reply_ended"
	// CodeRunActive: a compaction of the conversation has not ended.
	CodeRunActive wire.Code = "run_active"
	// CodeStale: the conversation is not in the state that the caller expects.
	CodeStale wire.Code = "stale_sequence"
	// CodeNothingToUndo: no compaction is active.
	CodeNothingToUndo wire.Code = "nothing_to_undo"
	// CodeConflict: the request conflicts with the state in another way.
	CodeConflict wire.Code = "conflict"
	// CodeTooLarge: a message or note is larger than allowed.
	CodeTooLarge wire.Code = "too_large"
	// CodeQuota: the tenant would have more stored than its quota allows.
	CodeQuota wire.Code = "quota_exceeded"
	// CodeUnavailable: the database or Temporal cannot be reached; the same call may succeed later.
	CodeUnavailable wire.Code = "unavailable"
	// CodeInternal: a bug in precis.
	CodeInternal wire.Code = "internal"
)

// Error is an error with its code. Every error of a Service is one, except that of a context that ended.
type Error struct {
	Code wire.Code
	// Detail is one or two sentences: what is wrong and what to do.
	Detail string
	// Field is the path of the field that is not valid, as in the HTTP API: "messages[2]", "settings.trigger.fraction".
	// It is "" if the error is not about a field.
	Field string
	// Cause is the underlying error, nil if there is none.
	Cause error
}

func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: %s: %s", e.Code, e.Field, e.Detail)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func invalid(field, format string, args ...any) error {
	return &Error{Code: CodeInvalid, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of any error, "" for nil and for the error of a context that ended. An error that is not of a
// Service has the code that a Service would give it.
func CodeOf(err error) wire.Code {
	var e *Error
	if errors.As(refused(err), &e) {
		return e.Code
	}
	return ""
}

// ContentDeleted reports whether an error with CodeNotFound is about a conversation whose content was deleted.
func ContentDeleted(err error) bool { return errors.Is(err, store.ErrContentDeleted) }

// ErrorOf returns any error as the *Error that a Service would return for it. It returns nil, or the error of a context
// that ended, unchanged.
func ErrorOf(err error) error { return refused(err) }

// refused returns err as an *Error with its code. It returns the error of a context that ended unchanged.
func refused(err error) error {
	var ours *Error
	var p *pipeline.Error
	var setting *pipeline.SettingError
	var field *launch.FieldError
	var quota *store.QuotaError
	switch {
	case errors.As(err, &ours):
		return ours // without what the store added to the text
	case errors.Is(err, launch.ErrTemporalAway):
		return &Error{Code: CodeUnavailable, Detail: "Temporal is not reachable: try again", Cause: err}
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrNotFound):
		return &Error{Code: CodeNotFound, Detail: err.Error(), Cause: err}
	case errors.As(err, &quota):
		return &Error{Code: CodeQuota, Detail: quota.Detail, Cause: err}
	case errors.As(err, &setting):
		return &Error{Code: CodeInvalid, Field: "settings." + setting.Key, Detail: setting.Problem, Cause: err}
	case errors.As(err, &field):
		return &Error{Code: CodeInvalid, Field: field.Field, Detail: field.Problem, Cause: err}
	case errors.Is(err, store.ErrInvalid):
		return &Error{Code: CodeInvalid, Detail: err.Error(), Cause: err}
	case errors.Is(err, store.ErrReplyOpen):
		return &Error{
			Code:   CodeReplyOpen,
			Detail: "the agent's model is generating: end the reply, or wait for its lease to expire", Cause: err,
		}
	case errors.Is(err, store.ErrNothingToUndo):
		return &Error{
			Code: CodeNothingToUndo, Detail: "no compaction counts: the context is the full history already",
			Cause: err,
		}
	case errors.Is(err, store.ErrStaleSequence):
		return &Error{Code: CodeStale, Detail: err.Error(), Cause: err}
	case errors.Is(err, store.ErrRunActive):
		return &Error{Code: CodeRunActive, Detail: err.Error(), Cause: err}
	case errors.Is(err, store.ErrConflict):
		return &Error{Code: CodeConflict, Detail: err.Error(), Cause: err}
	case store.Unavailable(err):
		return &Error{Code: CodeUnavailable, Detail: "the database is not reachable: try again", Cause: err}
	case launch.Away(err):
		return &Error{Code: CodeUnavailable, Detail: "Temporal is not reachable: try again", Cause: err}
	case errors.As(err, &p) && p.Kind == pipeline.Conflict:
		return &Error{Code: CodeConflict, Detail: p.Message, Cause: err}
	case errors.As(err, &p) && p.Kind == pipeline.BadRequest:
		return &Error{Code: CodeInvalid, Detail: p.Message, Cause: err}
	}
	return &Error{Code: CodeInternal, Detail: "a fault of precis: " + err.Error(), Cause: err}
}

// plain returns the message of an error without its kind.
func plain(err error) string {
	var e *pipeline.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
