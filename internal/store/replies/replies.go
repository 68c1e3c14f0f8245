// Package replies keeps the leases on generations by the agent's model. While one is open no marker is applied.
package replies

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// Store opens and closes replies.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Reply is one generation by the agent's model, held as a lease.
type Reply struct {
	ID string
	// Epoch and HeadSeq are what the reply reads.
	Epoch, HeadSeq          int64
	Opened, Expires, Closed time.Time
}

const replyColumns = `p.id, p.epoch, p.head_seq, p.opened_at, p.expires_at, p.ended_at`

func scanReply(row pgx.CollectableRow) (Reply, error) {
	var p Reply
	var ended *time.Time
	err := row.Scan(&p.ID, &p.Epoch, &p.HeadSeq, &p.Opened, &p.Expires, &ended)
	p.Closed = db.Or(ended, time.Time{})
	return p, err
}

// Open opens a reply: the agent's model starts to generate. Until the reply is closed, or ttl has passed by the
// database's clock, no marker is applied. It returns ErrReplyOpen if a reply is already open.
func (s *Store) Open(ctx context.Context, ref db.ConversationRef, ttl time.Duration) (Reply, error) {
	var p Reply
	err := s.db.Write(ctx, "open a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		p, err = Open(ctx, tx, c, ttl)
		return err
	})
	return p, err
}

// Open is Store.Open for a conversation whose row the transaction has locked.
func Open(ctx context.Context, tx pgx.Tx, c conversations.Conversation, ttl time.Duration) (Reply, error) {
	if ttl <= 0 {
		return Reply{}, db.Invalidf("the reply's time to live is %s: must be over 0", ttl)
	}
	if !c.ContentDeleted.IsZero() {
		return Reply{}, db.ErrContentDeleted
	}
	if err := NoneOpen(ctx, tx, c.CID); err != nil {
		return Reply{}, err
	}
	// Any reply that is still open has expired.
	if _, err := tx.Exec(ctx, `UPDATE replies SET ended_at = expires_at WHERE cid = $1 AND ended_at IS NULL`,
		c.CID); err != nil {
		return Reply{}, err
	}
	return db.One(ctx, tx, scanReply, `INSERT INTO replies AS p (id, cid, epoch, head_seq, opened_at, expires_at)
		VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + $5) RETURNING `+replyColumns,
		db.NewID(), c.CID, c.Epoch, c.HeadSeq, ttl)
}

// Close ends a reply and returns it. A reply that has ended or expired is returned unchanged.
func (s *Store) Close(ctx context.Context, ref db.ConversationRef, reply string) (Reply, error) {
	var p Reply
	err := s.db.Write(ctx, "close a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		p, err = Close(ctx, tx, c.CID, reply)
		return err
	})
	return p, err
}

// Close is Store.Close within a transaction.
func Close(ctx context.Context, tx pgx.Tx, cid int64, reply string) (Reply, error) {
	p, err := db.One(ctx, tx, scanReply, `UPDATE replies p SET ended_at = coalesce(ended_at, least(clock_timestamp(),
		expires_at))
		WHERE cid = $1 AND id = $2 RETURNING `+replyColumns, cid, db.CleanText(reply))
	if err != nil {
		return p, fmt.Errorf("reply %q: %w", reply, err)
	}
	return p, nil
}

// Active returns the open reply, ErrNotFound if there is none.
func Active(ctx context.Context, q db.Querier, cid int64) (Reply, error) {
	return db.One(ctx, q, scanReply, `SELECT `+replyColumns+` FROM replies p
		WHERE p.cid = $1 AND p.ended_at IS NULL AND p.expires_at > clock_timestamp()`, cid)
}

// NoneOpen returns ErrReplyOpen if a reply is open. The caller has locked the conversation's row, so that none is
// opened meanwhile. The query uses clock_timestamp(), since now() is the start of the transaction, which may have
// waited for the lock.
func NoneOpen(ctx context.Context, tx pgx.Tx, cid int64) error {
	open, err := db.One(ctx, tx, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM replies
		WHERE cid = $1 AND ended_at IS NULL AND expires_at > clock_timestamp())`, cid)
	if err != nil {
		return err
	}
	if open {
		return db.Conflictf(db.ConflictReplyOpen,
			"the agent's model is generating: wait for the end of its reply, or for the lease to expire")
	}
	return nil
}
