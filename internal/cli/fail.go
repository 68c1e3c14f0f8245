package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"go.temporal.io/api/serviceerror"

	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/store"
	"precis/pipeline"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
)

// usageError is the caller's: a wrong flag, an unreadable input.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// unreachableError says that the database, Temporal or a worker cannot be reached.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

func unreachablef(format string, args ...any) error {
	return unreachableError{fmt.Errorf(format, args...)}
}

// told ends the program with a code when everything has been said.
type told struct{ code int }

func (t told) Error() string { return fmt.Sprintf("exit code %d", t.code) }

// exitCode sorts an error.
func exitCode(err error) int {
	var done told
	var connect *pgconn.ConnectError
	var unavailable *serviceerror.Unavailable
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &done):
		return done.code
	case errors.As(err, new(usageError)), errors.As(err, new(*config.Error)),
		errors.As(err, new(*pgconn.ParseConfigError)):
		return exitUsage
	case errors.As(err, new(unreachableError)), errors.Is(err, devstack.ErrNotRunning), store.Unavailable(err),
		errors.As(err, &connect), errors.As(err, &unavailable):
		return exitUnreachable
	}
	return exitFailed
}

// report tells an error and gives the exit code.
func (a *app) report(err error) int {
	code := exitCode(err)
	if err != nil && !errors.As(err, new(told)) {
		a.say("precis: %s", explain(err))
	}
	return code
}

// explain is the error as one sentence for a person, or one a line where several things are wrong.
func explain(err error) string {
	var connect *pgconn.ConnectError
	var kind *pipeline.Error
	switch {
	case errors.Is(err, context.Canceled) && !errors.As(err, new(unreachableError)):
		return "interrupted"
	case errors.As(err, &connect):
		return "PostgreSQL is not reachable: " + connectReason(connect) +
			". Check database_url (PRECIS_DATABASE_URL), or leave it out to use a local stack (`precis up`)"
	case errors.Is(err, store.ErrContentDeleted):
		return "the content of this conversation was deleted after its run; `precis compact --keep` keeps it"
	case errors.As(err, &kind) && err == error(kind):
		return kind.Message
	}
	text := err.Error()
	text = strings.TrimPrefix(text, "store: ")
	return text
}

// connectReason is the innermost reason of a failed connection, without the client's frame around it.
func connectReason(err *pgconn.ConnectError) string {
	text := err.Error()
	if i := strings.LastIndex(text, "dial error: "); i >= 0 {
		return firstLine(text[i+len("dial error: "):])
	}
	if i := strings.LastIndex(text, "server error: "); i >= 0 {
		return firstLine(text[i+len("server error: "):])
	}
	return firstLine(text)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
