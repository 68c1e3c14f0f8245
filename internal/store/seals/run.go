package seals

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// ChangeRun makes a change to the rows of a run in a transaction, which holds the lock of its conversation's row. All
// rows of a run that Tables lists are written through it, besides its request, its end and the changes of its marker.
//
// A run that has ended is sealed. After that a change may only complete what was open at the end, or add rows that
// record a late fact, such as the answer of a model that was asked before (see Table.Open and Table.Late): it is sealed
// as a late fact. Any other change is db.ErrRunEnded, and nothing is written.
func ChangeRun(ctx context.Context, d *db.DB, what string, ref db.RunRef,
	change func(ctx context.Context, tx Tx) error,
) error {
	return d.Write(ctx, what, func(ctx context.Context, tx pgx.Tx) error { return changeRun(ctx, tx, ref, change) })
}

// Tx is the transaction of ChangeRun.
type Tx struct {
	pgx.Tx
	// CID is the key of the run's conversation.
	CID int64
	// Ended reports that the run has ended.
	Ended bool
}

func changeRun(ctx context.Context, tx pgx.Tx, ref db.RunRef, change func(context.Context, Tx) error) error {
	cid, err := lockRun(ctx, tx, ref)
	if err != nil {
		return err
	}
	ended, err := db.One(ctx, tx, pgx.RowTo[bool], `SELECT outcome IS NOT NULL FROM runs WHERE id = $1`, ref.ID)
	if err != nil {
		return err
	}
	if !ended {
		return change(ctx, Tx{tx, cid, false})
	}
	before, err := ReadRows(ctx, tx, cid, OfRun(ref.ID))
	if err != nil {
		return err
	}
	if err := change(ctx, Tx{tx, cid, true}); err != nil {
		return err
	}
	after, err := ReadRows(ctx, tx, cid, OfRun(ref.ID))
	if err != nil {
		return err
	}
	changed, err := lateChange(before[0], after[0])
	if err != nil {
		return fmt.Errorf("run %q: %w", ref.ID, err)
	}
	if !changed {
		return nil
	}
	return Put(ctx, tx, cid, []Subject{OfRun(ref.ID)}, []Record{{Rows: after[0], Late: true}})
}

// lockRun locks the row of a run's conversation, and returns the conversation's key. Every change to the rows of a run
// locks it first, so that a concurrent seal of the run either has the change or is written after it.
func lockRun(ctx context.Context, tx pgx.Tx, ref db.RunRef) (int64, error) {
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

// lateChange reports whether the rows of an ended run were changed. It returns db.ErrRunEnded for a change that is not
// allowed after the end.
func lateChange(before, after []Row) (changed bool, err error) {
	is := make(map[string]Row, len(after))
	for _, row := range after {
		is[row.Table+" "+row.Key] = row
	}
	for _, row := range before {
		id := row.Table + " " + row.Key
		now, there := is[id]
		delete(is, id)
		t, _ := TableOf(Run, row.Table)
		switch {
		case there && row.same(now):
		case !there || t.Open == nil || !t.Open(row):
			return false, fmt.Errorf("%s %s: %w", row.Table, row.Key, db.ErrRunEnded)
		default:
			changed = true
		}
	}
	for _, row := range is {
		t, _ := TableOf(Run, row.Table)
		if t.Late == nil || !t.Late(row, before) {
			return false, fmt.Errorf("%s %s: %w", row.Table, row.Key, db.ErrRunEnded)
		}
		changed = true
	}
	return changed, nil
}

// same reports whether two rows have the same values.
func (r Row) same(other Row) bool {
	for column, value := range r.Values {
		now, there := other.Values[column]
		if !there || (value == nil) != (now == nil) || value != nil && *value != *now {
			return false
		}
	}
	return len(r.Values) == len(other.Values)
}

// retried reports whether an attempt follows one at the same call that had not ended: its worker was lost, and the
// retry of the stage records what became of it.
func retried(row Row, before []Row) bool {
	return slices.ContainsFunc(before, func(b Row) bool {
		return b.Table == row.Table && b.Value("stage") == row.Value("stage") && b.Value("call") == row.Value("call") &&
			b.Value("attempt") != row.Value("attempt") && b.Value("outcome") == "started"
	})
}
