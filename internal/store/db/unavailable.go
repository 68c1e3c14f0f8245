package db

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"precis/pipeline"
)

// Unavailable reports whether err means that the database could not be reached or accepts no work at the moment. The
// same call may succeed later. It is false if the caller's context was cancelled.
func Unavailable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	// An error with a kind is not from the database, for example a vendor's broken connection.
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

// refusedForGood reports whether the server refused the connection for a reason that a retry does not change: a wrong
// password, no such database or role.
func refusedForGood(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "28") || pg.Code == "3D000")
}

// brokenConnection reports whether the connection was lost during the operation.
func brokenConnection(err error) bool {
	var netErr net.Error
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		// 08: connection exceptions. 57P01..57P02: the server is being stopped, the session is closed.
		return strings.HasPrefix(pg.Code, "08") || pg.Code == "57P01" || pg.Code == "57P02"
	case errors.Is(err, context.DeadlineExceeded):
		return false // the caller's own deadline; it is a net.Error too
	}
	// SafeToRetry: the connection was closed before anything was sent.
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &netErr) || pgconn.SafeToRetry(err)
}

// busyServer reports whether the server is running and accepts no new session or work at the moment.
func busyServer(err error) bool {
	var pg *pgconn.PgError
	// 57P03: starting up or shutting down. 53300: too many connections.
	return errors.As(err, &pg) && (pg.Code == "57P03" || pg.Code == "53300")
}

// Violates reports whether err is a violation of the named constraint or unique index.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}
