package pipeline

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind is the kind of a failure. The same string is the Temporal application error's type, the database column,
// the metric label and the API field, so that one word can be followed through all of them.
type ErrorKind string

// The error kinds. A new one needs a row in the ladder and a section in docs/errors.md.
const (
	InputTokensExceeded ErrorKind = "input_tokens_exceeded" // the request has more tokens than the model's window
	InputTooLarge       ErrorKind = "input_too_large"       // the request has more bytes than the endpoint takes
	// the answer was cut off at the output limit, or is over its cap
	OutputTooLong    ErrorKind = "output_too_long"
	NotSmaller       ErrorKind = "not_smaller"      // the summary is as large as what it replaces
	EmptyOutput      ErrorKind = "empty_output"     // no text: blank, or reasoning only
	MalformedOutput  ErrorKind = "malformed_output" // no summary, no finish reason, or broken JSON
	ToolCallOutput   ErrorKind = "tool_call_output" // a tool call instead of text
	Refused          ErrorKind = "refused"          // the model or a filter declined
	RateLimited      ErrorKind = "rate_limited"
	Overloaded       ErrorKind = "overloaded"
	ServerError      ErrorKind = "server_error"
	Network          ErrorKind = "network"
	Timeout          ErrorKind = "timeout"
	Auth             ErrorKind = "auth"
	Quota            ErrorKind = "quota" // no credit left, unlike too many requests at once
	ModelNotFound    ErrorKind = "model_not_found"
	BadRequest       ErrorKind = "bad_request"
	MalformedHistory ErrorKind = "malformed_history" // the vendor refuses the request's shape
	NoShrink         ErrorKind = "no_shrink"         // the new context is still above the trigger
	Conflict         ErrorKind = "conflict"          // the conversation changed meanwhile
	BudgetExceeded   ErrorKind = "budget_exceeded"   // the run's token or time budget is spent
	Cancelled        ErrorKind = "cancelled"
	Internal         ErrorKind = "internal" // a defect of precis
)

// ErrorKinds lists every kind, in the order of the ladder.
var ErrorKinds = []ErrorKind{
	InputTokensExceeded, InputTooLarge, OutputTooLong, NotSmaller, EmptyOutput, MalformedOutput, ToolCallOutput,
	Refused, RateLimited, Overloaded, ServerError, Network, Timeout, Auth, Quota, ModelNotFound, BadRequest,
	MalformedHistory, NoShrink, Conflict, BudgetExceeded, Cancelled, Internal,
}

// Transient reports whether the same request may succeed later, so that a retry is useful.
func (k ErrorKind) Transient() bool {
	switch k {
	case RateLimited, Overloaded, ServerError, Network, Timeout:
		return true
	}
	return false
}

// TripsBreaker reports whether one such failure opens the vendor's breaker at once, because only a person can correct
// it.
func (k ErrorKind) TripsBreaker() bool { return k == Auth || k == Quota }

// Error is a failure with its kind. errors.Is(err, &pipeline.Error{Kind: k}) holds for any error of kind k,
// also for one that was read back from the database or from Temporal.
type Error struct {
	Kind ErrorKind
	// Message is one sentence for a person, without text from the conversation.
	Message string
	// RetryAfter is how long the vendor asked to wait, 0 if it did not say.
	RetryAfter time.Duration
	// ActualTokens and LimitTokens are the figures that an overflow answer named, 0 if it named none.
	ActualTokens, LimitTokens int
	// Status is the HTTP status of the vendor's answer, 0 without one.
	Status int
	// Cause is the underlying error. Message includes its text.
	Cause error
}

func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an *Error of the same kind.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Kind == e.Kind
}

// Errorf returns an *Error of the kind; a %w in format becomes its cause.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// KindOf returns the kind of err: "" for nil, Internal for an error without one.
func KindOf(err error) ErrorKind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}
