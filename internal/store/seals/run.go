package seals

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// LockRun takes the row of a run's conversation, as whatever changes the rows of a run does: a seal of it that is
// written meanwhile either has the change or comes after it. It gives the conversation's key.
func LockRun(ctx context.Context, tx pgx.Tx, ref db.RunRef) (int64, error) {
	if !db.GoodID(ref.ID, 64) || !db.GoodID(ref.Tenant, 64) {
		return 0, db.NotFoundf("run %q", ref.ID)
	}
	cid, err := db.One(ctx, tx, pgx.RowTo[int64], `SELECT c.cid FROM conversations c JOIN runs r ON r.cid = c.cid
		WHERE r.tenant = $1 AND r.id = $2 FOR NO KEY UPDATE OF c`, ref.Tenant, ref.ID)
	if err != nil {
		return 0, fmt.Errorf("run %q: %w", ref.ID, err)
	}
	return cid, nil
}

// WriteEnded seals a run anew when something came after its end: the record of its last step, an answer that was late.
// The transaction has called lockRun.
func WriteEnded(ctx context.Context, tx pgx.Tx, cid int64, run string) error {
	ended, err := db.One(ctx, tx, pgx.RowTo[bool], `SELECT outcome IS NOT NULL FROM runs WHERE id = $1`, run)
	if err != nil || !ended {
		return err
	}
	return Write(ctx, tx, cid, OfRun(run))
}
