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
	p, _, err := s.openReply(ctx, ref, ttl, false)
	return p, err
}

// BeginReply is OpenReply, and gives what the model reads, of the same moment.
func (s *Store) BeginReply(ctx context.Context, ref ConversationRef, ttl time.Duration) (Reply, LiveView, error) {
	return s.openReply(ctx, ref, ttl, true)
}

func (s *Store) openReply(ctx context.Context, ref ConversationRef, ttl time.Duration,
	read bool,
) (Reply, LiveView, error) {
	var p Reply
	var v LiveView
	var packed []byte
	if ttl <= 0 {
		return p, v, fmt.Errorf("store: open a reply: %w", invalidf("its time to live is over 0"))
	}
	id := newID()
	err := s.write(ctx, "open a reply", func(ctx context.Context, tx pgx.Tx) error {
		v = LiveView{}
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
		if _, err := tx.Exec(ctx, `UPDATE replies SET ended_at = expires_at WHERE cid = $1 AND ended_at IS NULL`,
			c.cid); err != nil {
			return err
		}
		p, err = one(ctx, tx, scanReply, `INSERT INTO replies AS p (id, cid, epoch, head_seq, opened_at, expires_at)
			VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + $5) RETURNING `+replyColumns, id, c.cid, c.Epoch, c.HeadSeq, ttl)
		if err != nil || !read {
			return err
		}
		v, packed, err = liveView(ctx, tx, c, LiveOptions{})
		return err
	})
	if err != nil || !read {
		return p, v, err
	}
	v, err = s.unpackSummary(v, packed)
	return p, v, err
}

// CloseReply ends a reply. One that has ended or expired is left as it is, and given.
func (s *Store) CloseReply(ctx context.Context, ref ConversationRef, reply string) (Reply, error) {
	var p Reply
	err := s.write(ctx, "close a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		p, err = closeReply(ctx, tx, c.cid, reply)
		return err
	})
	return p, err
}

func closeReply(ctx context.Context, tx pgx.Tx, cid int64, reply string) (Reply, error) {
	p, err := one(ctx, tx, scanReply, `UPDATE replies p SET ended_at = coalesce(ended_at, least(clock_timestamp(), expires_at))
		WHERE cid = $1 AND id = $2 RETURNING `+replyColumns, cid, cleanText(reply))
	if err != nil {
		return p, fmt.Errorf("reply %q: %w", reply, err)
	}
	return p, nil
}

// ReplyEnd is what comes with the end of a reply.
type ReplyEnd struct {
	Messages []NewMessage
	// Usage is the server's figure for the reply's request, nil: none. What it covers and its epoch are the reply's.
	Usage *UsageReport
	// Input is the part of Usage.Tokens that the request was, without its answer; 0: not known.
	Input int
	// LearnWindow and Watch are those of AppendOptions.
	LearnWindow int
	Watch       Watch
}

// EndReply ends a reply, appends what came of it and looks at the conversation, in one transaction. What an expired
// reply brings is taken all the same; one that has been ended before brings its messages a second time, and is
// ConflictReplyEnded unless it brings nothing.
func (s *Store) EndReply(ctx context.Context, ref ConversationRef, reply string,
	end ReplyEnd,
) (Reply, AppendResult, error) {
	var p Reply
	var res AppendResult
	for i, m := range end.Messages {
		if err := m.validate(); err != nil {
			return p, res, fmt.Errorf("store: end a reply: message %d: %w", i, err)
		}
	}
	err := s.write(ctx, "end a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		ended, err := one(ctx, tx, pgx.RowTo[bool],
			`SELECT coalesce(ended_at < expires_at, false) FROM replies WHERE cid = $1 AND id = $2`, c.cid,
			cleanText(reply))
		if err != nil {
			return fmt.Errorf("reply %q: %w", reply, err)
		}
		if ended && (len(end.Messages) > 0 || end.Usage != nil || end.LearnWindow > 0) {
			return conflictf(ConflictReplyEnded, "reply %s has been ended before", reply)
		}
		if p, err = closeReply(ctx, tx, c.cid, reply); err != nil {
			return err
		}
		o := AppendOptions{Usage: p.usage(end, c.HeadSeq), LearnWindow: end.LearnWindow}
		if res, err = appendLocked(ctx, tx, c, end.Messages, o); err != nil {
			return err
		}
		watch := end.Watch
		if watch != nil {
			watch = func(ctx context.Context, m Moment) (Verdict, error) {
				m.Ended = &p
				return end.Watch(ctx, m)
			}
		}
		res.Watched, err = s.watchLocked(ctx, tx, &res.Conversation, watch)
		return err
	})
	return p, res, err
}

// usage ties a reply's figure to what the reply has read. head is the conversation's before the reply's own messages:
// what somebody else said meanwhile is not in the figure.
func (p Reply) usage(end ReplyEnd, head int64) *UsageReport {
	if end.Usage == nil {
		return nil
	}
	u := *end.Usage
	u.Epoch = &p.Epoch
	if p.HeadSeq > 0 && (head > p.HeadSeq || u.Covers == nil) {
		u.CoversSeq, u.Covers = p.HeadSeq, nil
		if end.Input > 0 {
			u.Tokens = end.Input // the answer stands behind what is not covered, or is still to come, and is estimated
		}
	}
	return &u
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
		return conflictf(ConflictReplyOpen,
			"the agent's model is generating: wait for the end of its reply, or for the lease to expire")
	}
	return nil
}
