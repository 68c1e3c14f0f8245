package conversations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// SyncState is what a client's whole list is compared with first.
type SyncState struct {
	// Head is the conversation's last message, Chain its sync chain; nil: not known.
	Head  int64
	Chain *db.Hash
}

// SyncState reads it.
func (s *Messages) SyncState(ctx context.Context, ref db.ConversationRef) (SyncState, error) {
	c, err := Get(ctx, s.db, ref)
	if err == nil && !c.ContentDeleted.IsZero() {
		err = db.ErrContentDeleted
	}
	return SyncState{Head: c.HeadSeq, Chain: c.SyncChain}, err
}

// SyncChains reads the sync chains at some messages; those that are not known are left out.
func (s *Messages) SyncChains(ctx context.Context, ref db.ConversationRef, seqs []int64) (map[int64]db.Hash, error) {
	chains := map[int64]db.Hash{}
	err := s.db.Read(ctx, "read sync chains", func(ctx context.Context, q db.Querier) error {
		cid, err := Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		rows, err := q.Query(
			ctx, `SELECT seq, sync_chain FROM messages WHERE cid = $1 AND seq = ANY($2) AND sync_chain IS NOT NULL`,
			cid, seqs)
		if err != nil {
			return err
		}
		var seq int64
		var chain []byte
		_, err = pgx.ForEachRow(rows, []any{&seq, &chain}, func() error {
			chains[seq] = db.Hash(chain)
			return nil
		})
		return err
	})
	return chains, err
}

// KeepSyncChain notes the sync chain of a head that was not known, so that the next whole list is compared in one look.
// Where the head has moved meanwhile it does nothing.
func (s *Messages) KeepSyncChain(ctx context.Context, ref db.ConversationRef, head int64, chain db.Hash) error {
	return s.db.Write(ctx, "keep a sync chain", func(ctx context.Context, tx pgx.Tx) error {
		c, err := Lock(ctx, tx, ref)
		if err != nil || c.HeadSeq != head {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE conversations SET sync_seq = $2, sync_chain = $3 WHERE cid = $1`, c.CID, head,
			chain[:])
		return err
	})
}
