package seals

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// LockRun locks the row of a run's conversation, and returns the conversation's key. Every change to the rows of a run
// locks it first, so that a concurrent seal of the run either has the change or is written after it.
func LockRun(ctx context.Context, tx pgx.Tx, ref db.RunRef) (int64, error) {
	if !db.PossibleID(ref.ID, 64) || !db.PossibleID(ref.Tenant, 64) {
		return 0, db.NotFoundf("run %q", ref.ID)
	}
	cid, err := db.One(ctx, tx, pgx.RowTo[int64], `SELECT c.cid FROM conversations c JOIN runs r ON r.cid = c.cid
		WHERE r.tenant = $1 AND r.id = $2 FOR NO KEY UPDATE OF c`, ref.Tenant, ref.ID)
	if err != nil {
		return 0, fmt.Errorf("run %q: %w", ref.ID, err)
	}
	return cid, nil
}

// WriteEnded seals a run again if it has ended, for what is added after the end: the record of its last attempt, a late
// answer. The transaction has called LockRun.
func WriteEnded(ctx context.Context, tx pgx.Tx, cid int64, run string) error {
	ended, err := db.One(ctx, tx, pgx.RowTo[bool], `SELECT outcome IS NOT NULL FROM runs WHERE id = $1`, run)
	if err != nil || !ended {
		return err
	}
	return Write(ctx, tx, cid, OfRun(run))
}
