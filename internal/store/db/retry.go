package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sethvargo/go-retry"
)

// This file alone retries. An operation is repeated only if it is known to have had no effect: a statement that was
// never sent, a transaction that the server has rolled back, a read. A commit whose answer was lost is not repeated:
// the caller repeats it with the idempotency key that every write has.

// retry runs fn until it succeeds, fails for good, or the budget of local retries is spent. fn must be safe to repeat
// whenever Repeatable reports true for its error.
func (d *DB) retry(ctx context.Context, what string, fn func(context.Context) error) error {
	if d.retryFor < 0 {
		return Failed(what, fn(ctx))
	}
	// 20 ms, 40 ms… each halved at random: after a restart of the database, its clients must not all retry at once.
	backoff := retry.WithMaxDuration(d.retryFor, retry.WithCappedDuration(500*time.Millisecond,
		retry.WithJitterPercent(50, retry.NewExponential(20*time.Millisecond))))
	return Failed(what, retry.Do(ctx, backoff, func(ctx context.Context) error {
		err := fn(ctx)
		if Repeatable(err) {
			return retry.RetryableError(err)
		}
		return err
	}))
}

// commitError marks a failed commit, of which it is unknown whether it took effect.
type commitError struct{ err error }

func (e *commitError) Error() string { return "commit: " + e.err.Error() }

func (e *commitError) Unwrap() error { return e.err }

// Repeatable reports whether an operation that failed with err had no effect and may succeed when repeated at once.
func Repeatable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", "40P01": // serialization failure, deadlock: rolled back, even at commit
			return true
		case "0A000": // the cached plan's result type changed under us: pgx has forgotten it by now
			return pg.Message == "cached plan must not change result type"
		}
	}
	var commit *commitError
	if errors.As(err, &commit) {
		return false
	}
	if refusedForGood(err) {
		return false
	}
	var connect *pgconn.ConnectError
	return pgconn.SafeToRetry(err) || errors.As(err, &connect) || brokenConnection(err) || busyServer(err)
}

// Write runs fn in a READ COMMITTED transaction and retries it when that is safe. fn may run more than once, so it must
// set its results and not add to them.
func (d *DB) Write(ctx context.Context, what string, fn func(context.Context, pgx.Tx) error) error {
	return d.inTx(ctx, what, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		if err := fn(d.withSigningKey(ctx), tx); err != nil {
			return err
		}
		return runLastStatement(ctx, tx)
	})
}

// Snapshot runs fn in a read-only transaction that sees one state of the database throughout.
func (d *DB) Snapshot(ctx context.Context, what string, fn func(context.Context, pgx.Tx) error) error {
	return d.inTx(ctx, what, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
}

// Read runs fn, a single query, on the pool.
func (d *DB) Read(ctx context.Context, what string, fn func(context.Context, Querier) error) error {
	return d.retry(ctx, what, func(ctx context.Context) error { return fn(ctx, d.pool) })
}

func (d *DB) inTx(ctx context.Context, what string, o pgx.TxOptions, fn func(context.Context, pgx.Tx) error) error {
	return d.retry(ctx, what, func(ctx context.Context) error {
		tx, err := d.pool.BeginTx(ctx, o)
		if err != nil {
			return err
		}
		// After a commit this does nothing. It must also roll back when the caller's context is cancelled.
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if err := fn(ctx, tx); err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return &commitError{err}
		}
		return nil
	})
}
