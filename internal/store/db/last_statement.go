package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

type lastStatementKey struct{}

type lastStatement func(context.Context, pgx.Tx) error

// WithLastStatement returns a context whose writing transactions call run as their last statement before the commit.
func WithLastStatement(ctx context.Context, run func(context.Context, pgx.Tx) error) context.Context {
	return context.WithValue(ctx, lastStatementKey{}, lastStatement(run))
}

// WithoutLastStatement returns a context without the effect of WithLastStatement.
func WithoutLastStatement(ctx context.Context) context.Context {
	return context.WithValue(ctx, lastStatementKey{}, lastStatement(nil))
}

func runLastStatement(ctx context.Context, tx pgx.Tx) error {
	if run, _ := ctx.Value(lastStatementKey{}).(lastStatement); run != nil {
		return run(ctx, tx)
	}
	return nil
}
