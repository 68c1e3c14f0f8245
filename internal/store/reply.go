package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

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
	p.Closed = or(ended, time.Time{})
	return p, err
}

// OpenReply says that the agent's model starts to generate. Until the reply is closed, or ttl has passed by the
// database's clock, no marker is applied. With one open already: ErrReplyOpen.
func (s *Store) OpenReply(ctx context.Context, ref ConversationRef, ttl time.Duration) (Reply, error) {
	var p Reply
	if ttl <= 0 {
		return p, fmt.Errorf("store: open a reply: %w", invalidf("its time to live is over 0"))
	}
	id := newID()
	err := s.write(ctx, "open a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		if err := noReplyOpen(ctx, tx, c.cid); err != nil {
			return err
		}
		// What is left is expired.
		if _, err := tx.Exec(ctx, `UPDATE replies SET ended_at = expires_at WHERE cid = $1 AND ended_at IS NULL`, c.cid); err != nil {
			return err
		}
		p, err = one(ctx, tx, scanReply, `INSERT INTO replies AS p (id, cid, epoch, head_seq, opened_at, expires_at)
			VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + $5) RETURNING `+replyColumns, id, c.cid, c.Epoch, c.HeadSeq, ttl)
		return err
	})
	return p, err
}

// CloseReply ends a reply. One that has ended or expired is left as it is, and given.
func (s *Store) CloseReply(ctx context.Context, ref ConversationRef, reply string) (Reply, error) {
	var p Reply
	err := s.write(ctx, "close a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		p, err = one(ctx, tx, scanReply, `UPDATE replies p SET ended_at = coalesce(ended_at, least(clock_timestamp(), expires_at))
			WHERE cid = $1 AND id = $2 RETURNING `+replyColumns, c.cid, cleanText(reply))
		return err
	})
	return p, err
}

// noReplyOpen says ErrReplyOpen while a lease holds. The caller has the conversation's row, so that none can be
// opened meanwhile. The clock is read now: now() would be the start of a transaction that may have waited.
func noReplyOpen(ctx context.Context, tx pgx.Tx, cid int64) error {
	open, err := one(ctx, tx, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM replies
		WHERE cid = $1 AND ended_at IS NULL AND expires_at > clock_timestamp())`, cid)
	if err != nil {
		return err
	}
	if open {
		return conflictf(ConflictReplyOpen, "the agent's model is generating: wait for the end of its reply, or for the lease to expire")
	}
	return nil
}
