package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// SyncState is what a client's whole list is compared with first.
type SyncState struct {
	// Head is the conversation's last message, Chain its sync chain; nil: not known.
	Head  int64
	Chain *Hash
}

// GetSyncState reads it.
func (s *Store) GetSyncState(ctx context.Context, ref ConversationRef) (SyncState, error) {
	c, err := s.GetConversation(ctx, ref)
	if err == nil && !c.ContentDeleted.IsZero() {
		err = ErrContentDeleted
	}
	return SyncState{Head: c.HeadSeq, Chain: c.syncChain}, err
}

// SyncChains reads the sync chains at some messages; those that are not known are left out.
func (s *Store) SyncChains(ctx context.Context, ref ConversationRef, seqs []int64) (map[int64]Hash, error) {
	chains := map[int64]Hash{}
	err := s.read(ctx, "read sync chains", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
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
			chains[seq] = Hash(chain)
			return nil
		})
		return err
	})
	return chains, err
}

// KeepSyncChain notes the sync chain of a head that was not known, so that the next whole list is compared in one look.
// Where the head has moved meanwhile it does nothing.
func (s *Store) KeepSyncChain(ctx context.Context, ref ConversationRef, head int64, chain Hash) error {
	return s.write(ctx, "keep a sync chain", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil || c.HeadSeq != head {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE conversations SET sync_seq = $2, sync_chain = $3 WHERE cid = $1`, c.cid, head,
			chain[:])
		return err
	})
}
