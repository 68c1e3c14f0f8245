package segments

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Claim is a conversation whose memory's files are to be looked at.
type Claim struct {
	Ref db.ConversationRef
	// claimed is the end of the claim: a later change sets another time.
	claimed time.Time
}

// Claim takes conversations whose memory has changed, or is to be looked at again, at most limit of them, those
// that wait longest first. Nobody else gets them until the lease has passed.
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

// Done ends a claim. The conversation is looked at again after the time given if anything has happened in it in
// the last day, and else when its memory changes. What has changed since the claim stays due.
func (s *Store) Done(ctx context.Context, w Claim, again time.Duration) error {
	return s.db.Write(ctx, "end a claim of memory", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE conversations SET memory_due_at = CASE
			WHEN updated_at > now() - interval '1 day' THEN clock_timestamp() + $4::interval END
			WHERE tenant = $1 AND id = $2 AND memory_due_at = $3`, w.Ref.Tenant, w.Ref.ID, w.claimed, again)
		return err
	})
}

// Later puts a claim off: the conversation is due again after the time given. What has changed since the claim
// stays due.
func (s *Store) Later(ctx context.Context, w Claim, wait time.Duration) error {
	return s.db.Write(ctx, "put off a claim of memory", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE conversations SET memory_due_at = clock_timestamp() + $4::interval
			WHERE tenant = $1 AND id = $2 AND memory_due_at = $3`, w.Ref.Tenant, w.Ref.ID, w.claimed, wait)
		return err
	})
}
