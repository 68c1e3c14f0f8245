package conversations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// SyncState is what a client's whole list of messages is first compared with.
type SyncState struct {
	// Head is the conversation's last message, Chain its sync chain; nil: not known.
	Head  int64
	Chain *db.Hash
}

// SyncState returns the head of a conversation and its sync chain.
func (s *Messages) SyncState(ctx context.Context, ref db.ConversationRef) (SyncState, error) {
	c, err := Get(ctx, s.db, ref)
	if err == nil && !c.ContentDeleted.IsZero() {
		err = db.ErrContentDeleted
	}
	return SyncState{Head: c.HeadSeq, Chain: c.SyncChain}, err
}

// SyncChains returns the sync chains at the given messages, without those that are not known.
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

// KeepSyncChain stores the sync chain of a head of which it was not known, so that the next whole list can be compared
// by one hash. It does nothing if the head has moved since.
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
