package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// MaxInt4 is the largest value of an integer column.
const MaxInt4 = 1<<31 - 1

// Or returns *p, or otherwise if p is nil.
func Or[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}

// TimeOrNil returns t for a column that is NULL for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Querier is implemented by a pool, a connection and a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// One runs a query that returns at most one row. No row is ErrNotFound.
func One[T any](ctx context.Context, q Querier, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, ErrNotFound
	}
	return v, err
}

// All runs a query and collects its rows.
func All[T any](ctx context.Context, q Querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
