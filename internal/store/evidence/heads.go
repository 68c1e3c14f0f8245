package evidence

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/seals"
)

// ConversationHead is the head of a conversation's seals, with what it counts.
type ConversationHead struct {
	// Key orders the conversations of a store, see Audited.
	Key  int64
	Ref  db.ConversationRef
	Head seals.Head
	// Messages is the number of messages, also after the content was deleted at the time Deleted; zero: it was not.
	Messages int64
	Deleted  time.Time
}

// Heads returns the heads of at most limit (1 to 1000) conversations that a filter picks, of all tenants, in the order
// of their creation, starting after the key. A conversation without seals is left out.
func (s *Store) Heads(ctx context.Context, f Filter, key int64, limit int) ([]ConversationHead, error) {
	var list []ConversationHead
	err := s.db.Read(ctx, "read the heads of seals", func(ctx context.Context, q db.Querier) (err error) {
		list, err = db.All(ctx, q, func(row pgx.CollectableRow) (h ConversationHead, err error) {
			var chain []byte
			var deleted *time.Time
			err = row.Scan(&h.Key, &h.Ref.Tenant, &h.Ref.ID, &h.Head.Seals, &chain, &h.Messages, &deleted)
			h.Head.Chain = db.ToHash(chain)
			if deleted != nil {
				h.Deleted = *deleted
			}
			return h, err
		}, `SELECT cid, tenant, id, seal_seq, seal_chain, head_seq, content_deleted_at FROM conversations
			WHERE cid > $1 AND ($2 = '' OR tenant = $2) AND ($3 = '' OR id = $3) AND seal_seq > 0
			ORDER BY cid LIMIT $4`, key, db.CleanText(f.Tenant), db.CleanText(f.Conversation), db.ClampLimit(limit))
		return err
	})
	return list, err
}

// SignHead signs the last seal of a conversation with the key of the store, unless it is signed already. Without a key
// it does nothing.
func (s *Store) SignHead(ctx context.Context, ref db.ConversationRef) error {
	return s.db.Write(ctx, "sign the head of the seals", func(ctx context.Context, tx pgx.Tx) error {
		key := db.SigningKey(ctx)
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil || key == nil {
			return err
		}
		var head seals.Head
		var chain []byte
		if err := tx.QueryRow(ctx, `SELECT seal_seq, seal_chain FROM conversations WHERE cid = $1`, c.CID).
			Scan(&head.Seals, &chain); err != nil || head.Seals == 0 {
			return err
		}
		head.Chain = db.ToHash(chain)
		_, err = tx.Exec(ctx, `INSERT INTO seal_signatures (cid, n, signature) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`, c.CID, head.Seals, head.Sign(key))
		return err
	})
}

// Extends compares a conversation with a head that was published earlier. ok is true if the seals up to the head are
// still those that the head commits to; else the finding says what differs. The records under the chain are compared by
// Seals. The error is db.ErrNotFound if there is no such conversation.
func (s *Store) Extends(ctx context.Context, ref db.ConversationRef, h seals.Head) (f Finding, ok bool, err error) {
	f = Finding{State: Missing, Table: "seals", Key: ref.ID}
	var last int64
	var chain []byte
	err = s.db.Read(ctx, "read a seal", func(ctx context.Context, q db.Querier) error {
		return q.QueryRow(ctx, `SELECT seal_seq, (SELECT s.chain FROM seals s WHERE s.cid = c.cid AND s.n = $3)
			FROM conversations c WHERE tenant = $1 AND id = $2`, db.CleanText(ref.Tenant), db.CleanText(ref.ID),
			h.Seals).Scan(&last, &chain)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return f, false, db.NotFoundf("conversation %q", ref.ID)
	case err != nil:
		return f, false, err
	case chain == nil:
		f.Detail = "seals that were there when the head was published are missing"
		return f, false, nil
	case db.ToHash(chain) != h.Chain:
		f.State, f.Column = Tampered, "chain"
		f.Detail = "the seals are not those of the published head: records were rewritten with all their hashes"
		return f, false, nil
	}
	return Finding{}, true, nil
}
