// Package fail has the errors of the command line: their exit codes, and one sentence for each.
package fail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"go.temporal.io/api/serviceerror"

	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/service"
	"precis/pipeline"
)

// The exit codes.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnreachable = 3
)

// usageError is a mistake of the caller, such as a wrong flag or an unreadable input.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks an error as one of usage: exit code 2.
func Usage(err error) error { return usageError{err} }

// Usagef returns an error of usage: exit code 2.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// unreachableError reports that the database, Temporal or a worker cannot be reached.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

// IsUnreachable reports whether an error means that the database, Temporal or a worker cannot be reached.
func IsUnreachable(err error) bool { return errors.As(err, new(unreachableError)) }

// Unreachablef returns an error for something that cannot be reached: exit code 3.
func Unreachablef(format string, args ...any) error {
	return unreachableError{fmt.Errorf(format, args...)}
}

// exit is an error that ends the program with a code and no further message.
type exit struct{ code int }

func (e exit) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// Silent returns an error that ends the program with a code and no further message: everything was printed already.
func Silent(code int) error { return exit{code} }

// IsSilent reports whether an error was made by Silent.
func IsSilent(err error) bool { return errors.As(err, new(exit)) }

// Code returns the exit code of an error.
func Code(err error) int {
	var done exit
	var connect *pgconn.ConnectError
	var unavailable *serviceerror.Unavailable
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &done):
		return done.code
	case errors.As(err, new(usageError)), errors.As(err, new(*config.Error)),
		errors.As(err, new(*pgconn.ParseConfigError)):
		return ExitUsage
	case IsUnreachable(err), errors.Is(err, devstack.ErrNotRunning), service.CodeOf(err) == service.CodeUnavailable,
		errors.As(err, &connect), errors.As(err, &unavailable):
		return ExitUnreachable
	}
	return ExitFailed
}

// Stack marks a failure to start a stack as unreachable, unless a file is the cause.
func Stack(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, new(*fs.PathError)) {
		return err
	}
	return unreachableError{err}
}

// Written returns the error of a result that could not be written. If the reader has closed the pipe, as in
// `precis runs | head`, the error is silent.
func Written(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EPIPE) {
		return Silent(ExitFailed)
	}
	return fmt.Errorf("the result cannot be written: %w", err)
}

// Explain returns an error as one sentence for a person, or one per line if several things are wrong.
func Explain(err error) string {
	var connect *pgconn.ConnectError
	var kind *pipeline.Error
	var refusal *service.Error
	switch {
	case errors.Is(err, context.Canceled) && !IsUnreachable(err):
		return "interrupted"
	case errors.As(err, &connect):
		return "PostgreSQL is not reachable: " + connectReason(connect) +
			". Check database_url (PRECIS_DATABASE_URL), or leave it out to use a local stack (`precis up`)"
	case service.ContentDeleted(err):
		return "the content of this conversation was deleted after its run; `precis compact --keep` keeps it"
	case errors.As(err, &refusal) && err.Error() == refusal.Error():
		if refusal.Cause != nil {
			return Explain(refusal.Cause)
		}
		return refusal.Detail
	case errors.As(err, &kind) && err == error(kind):
		return kind.Message
	}
	return err.Error()
}

// connectReason returns the innermost reason of a failed connection: the answer of the server, or why there was no
// connection.
func connectReason(err *pgconn.ConnectError) string {
	var server *pgconn.PgError
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &server):
		return firstLine(server.Error())
	case errors.As(err, &network):
		return firstLine(network.Error())
	case errors.As(err, &name):
		return firstLine(name.Error())
	}
	return firstLine(err.Error())
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
