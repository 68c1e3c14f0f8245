// Package triggers checks whether a compaction is due after a change, and requests its run in the transaction of the
// change.
package triggers

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/breakers"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/markers"
	"precis/internal/store/replies"
	"precis/internal/store/runs"
)

// Store checks triggers, with or without a change.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// State is a conversation after a change and before its commit.
type State struct {
	Conversation conversations.Conversation
	Live         contexts.Sizes
	// Marker is the active marker, nil: the full history.
	Marker *markers.Marker
	// SinceFigure is the local estimate, in tokens, of the messages after the server's figure, SinceMeasured of those
	// after Conversation.Measured; 0 without one.
	SinceFigure, SinceMeasured int64
	// Active is the unfinished run, nil: none.
	Active *runs.Brief
	// Prepared is the prepared marker and PreparedBy its run; nil: none.
	Prepared   *markers.Marker
	PreparedBy *runs.Brief
	// ReplyOpen is set if the agent's model is generating a reply.
	ReplyOpen bool
	// Ended is the reply that the change has ended, nil: it is another change.
	Ended *replies.Reply

	db *db.DB
	tx pgx.Tx
}

// Context reads the source of the conversation's context.
func (m State) Context(ctx context.Context) (contexts.Source, error) {
	v, packed, err := contexts.ReadLocked(ctx, m.tx, m.Conversation, contexts.Options{})
	if err != nil {
		return v, err
	}
	return contexts.Unpack(m.db, v, packed)
}

// LastRun returns the newest finished run, nil if there is none.
func (m State) LastRun(ctx context.Context) (*runs.Brief, error) {
	return runs.Last(ctx, m.tx, m.Conversation.CID)
}

// Since returns the sums over the messages after seq.
func (m State) Since(ctx context.Context, seq int64) (conversations.Sums, error) {
	if seq >= m.Conversation.HeadSeq {
		return conversations.Sums{}, nil
	}
	if seq <= 0 {
		return m.Conversation.Sums, nil
	}
	then, err := conversations.SumsAt(ctx, m.tx, m.Conversation.CID, seq)
	return m.Conversation.Sums.Minus(then), err
}

// Breaker is breakers.Store.Get for the conversation's breaker.
func (m State) Breaker(ctx context.Context, cooldown time.Duration) (breakers.Breaker, error) {
	return breakers.Get(ctx, m.tx, breakers.OfConversation(m.Conversation.Ref), cooldown)
}

// PassBreaker is breakers.Store.Pass for the conversation's breaker, within the transaction.
func (m State) PassBreaker(ctx context.Context, cooldown time.Duration) (bool, error) {
	return breakers.Pass(ctx, m.tx, breakers.OfConversation(m.Conversation.Ref), cooldown)
}

// readState reads everything that a trigger compares, in constant time.
func readState(ctx context.Context, q pgx.Tx, c conversations.Conversation) (State, error) {
	m := State{Conversation: c, tx: q}
	var err error
	if m.Live, m.Marker, err = contexts.SizesOf(ctx, q, c); err != nil {
		return m, err
	}
	type around struct {
		figure, measured     int64
		activeID, preparedID *string
		reply                bool
	}
	var measuredSeq int64
	if c.Measured != nil {
		measuredSeq = c.Measured.Seq
	}
	a, err := db.One(ctx, q, func(row pgx.CollectableRow) (a around, err error) {
		return a, row.Scan(&a.figure, &a.measured, &a.activeID, &a.preparedID, &a.reply)
	}, `SELECT coalesce((SELECT tokens_sum FROM messages WHERE cid = $1 AND seq = $2), 0),
			coalesce((SELECT tokens_sum FROM messages WHERE cid = $1 AND seq = $3), 0),
			(SELECT id FROM runs WHERE cid = $1 AND outcome IS NULL AND replay_of IS NULL),
			(SELECT id FROM markers WHERE cid = $1 AND status = 'prepared'),
			EXISTS (SELECT FROM replies WHERE cid = $1 AND ended_at IS NULL AND expires_at > clock_timestamp())`,
		c.CID, c.Usage.CoversSeq, measuredSeq)
	if err != nil {
		return m, err
	}
	if c.Usage.Tokens > 0 {
		m.SinceFigure = c.Sums.Tokens - a.figure
	}
	if c.Measured != nil {
		m.SinceMeasured = c.Sums.Tokens - a.measured
	}
	m.ReplyOpen = a.reply
	if a.activeID != nil {
		if m.Active, err = runs.FindBrief(ctx, q, *a.activeID); err != nil {
			return m, err
		}
	}
	if a.preparedID != nil {
		prepared, err := markers.Find(ctx, q, c.CID, *a.preparedID)
		if err != nil {
			return m, err
		}
		m.Prepared = &prepared
		if m.PreparedBy, err = runs.FindBrief(ctx, q, prepared.Run); err != nil {
			return m, err
		}
	}
	return m, nil
}
