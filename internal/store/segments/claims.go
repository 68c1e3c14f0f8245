package segments

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Claim is a claimed conversation whose memory files must be updated.
type Claim struct {
	Ref db.ConversationRef
	// claimed is the end of the claim. A later change of the memory sets another time.
	claimed time.Time
}

// Claim claims at most limit conversations whose memory is due, the longest due first. No other caller can claim them
// until the lease has passed.
func (s *Store) Claim(ctx context.Context, limit int, lease time.Duration) ([]Claim, error) {
	var list []Claim
	err := s.db.Write(ctx, "claim memory", func(ctx context.Context, tx pgx.Tx) (err error) {
		list, err = db.All(ctx, tx, func(row pgx.CollectableRow) (w Claim, err error) {
			return w, row.Scan(&w.Ref.Tenant, &w.Ref.ID, &w.claimed)
		}, `UPDATE conversations SET memory_due_at = clock_timestamp() + $2::interval WHERE cid IN (
				SELECT cid FROM conversations WHERE memory_due_at <= clock_timestamp() ORDER BY memory_due_at LIMIT $1
				FOR NO KEY UPDATE SKIP LOCKED
			) RETURNING tenant, id, memory_due_at`, limit, lease)
		return err
	})
	return list, err
}

// Done ends a claim. The conversation is due again after the given time if it was changed in the last day, otherwise
// when its memory changes. If its memory has changed since the claim, it stays due.
func (s *Store) Done(ctx context.Context, w Claim, again time.Duration) error {
	return s.db.Write(ctx, "end a claim of memory", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE conversations SET memory_due_at = CASE
			WHEN updated_at > now() - interval '1 day' THEN clock_timestamp() + $4::interval END
			WHERE tenant = $1 AND id = $2 AND memory_due_at = $3`, w.Ref.Tenant, w.Ref.ID, w.claimed, again)
		return err
	})
}

// Later ends a claim and makes the conversation due again after the given time. If its memory has changed since the
// claim, it stays due.
func (s *Store) Later(ctx context.Context, w Claim, wait time.Duration) error {
	return s.db.Write(ctx, "put off a claim of memory", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE conversations SET memory_due_at = clock_timestamp() + $4::interval
			WHERE tenant = $1 AND id = $2 AND memory_due_at = $3`, w.Ref.Tenant, w.Ref.ID, w.claimed, wait)
		return err
	})
}
