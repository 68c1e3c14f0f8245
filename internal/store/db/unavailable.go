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

// Violates says whether err is a violation of the named constraint or unique index.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}
