package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

type lastStatementKey struct{}

type lastStatement func(context.Context, pgx.Tx) error

// WithLastStatement returns a context whose writing transactions call run as their last statement before the commit,
// after those that ctx has already.
func WithLastStatement(ctx context.Context, run func(context.Context, pgx.Tx) error) context.Context {
	earlier := lastStatementOf(ctx)
	return context.WithValue(ctx, lastStatementKey{}, lastStatement(func(ctx context.Context, tx pgx.Tx) error {
		if earlier != nil {
			if err := earlier(ctx, tx); err != nil {
				return err
			}
		}
		return run(ctx, tx)
	}))
}

// WithoutLastStatement returns a context without the effect of WithLastStatement.
func WithoutLastStatement(ctx context.Context) context.Context {
	return context.WithValue(ctx, lastStatementKey{}, lastStatement(nil))
}

func lastStatementOf(ctx context.Context) lastStatement {
	run, _ := ctx.Value(lastStatementKey{}).(lastStatement)
	return run
}

func runLastStatement(ctx context.Context, tx pgx.Tx) error {
	if run := lastStatementOf(ctx); run != nil {
		return run(ctx, tx)
	}
	return nil
}
