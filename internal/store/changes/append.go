// Package changes makes the changes to a conversation that may start a compaction: appended messages, the end of a
// reply, another model or settings. Each checks the trigger within its own transaction.
package changes

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/internal/store/triggers"
)

// Store changes conversations.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// AppendOptions go with one append.
type AppendOptions struct {
	// IfSeq, if set, is the head that the caller expects: a different head is ErrStaleSequence.
	IfSeq *int64
	// Usage is the server's figure for the request whose answer is the last appended message, nil: none.
	Usage *UsageReport
	// LearnWindow is the window that a vendor's overflow error named, in tokens; 0: none.
	LearnWindow int
	// Check checks in the same transaction whether a compaction is due; nil: no check.
	Check triggers.Check
}

// AppendResult is the result of an append.
type AppendResult struct {
	// FirstSeq and LastSeq are the first and last new message, 0 if all existed already.
	FirstSeq, LastSeq int64
	// Seqs has the sequence number of every given message, including those that existed already.
	Seqs []int64
	// Duplicates counts the messages that existed already.
	Duplicates int
	// Conversation is the conversation after the append.
	Conversation conversations.Conversation
	// Trigger is the result of AppendOptions.Check.
	Trigger triggers.Result
}

// From this many messages on, COPY is faster than single inserts.
const copyFrom = 64

// Append appends all messages to a conversation, or none of them. Its cost does not depend on the length of the
// conversation. Appends to one conversation run one after the other, and sequence numbers have no gaps. A message whose
// client id the conversation already has is not appended again.
func (s *Store) Append(ctx context.Context, ref db.ConversationRef, messages []conversations.NewMessage,
	o AppendOptions,
) (AppendResult, error) {
	var res AppendResult
	for i, m := range messages {
		if err := m.Validate(); err != nil {
			return res, db.Failed("append", fmt.Errorf("message %d: %w", i, err))
		}
	}
	err := s.db.Write(ctx, "append", func(ctx context.Context, tx pgx.Tx) (err error) {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		res, err = appendLocked(ctx, tx, c, messages, o)
		if err != nil {
			return err
		}
		res.Trigger, err = triggers.CheckLocked(ctx, s.db, tx, &res.Conversation, o.Check)
		return err
	})
	return res, err
}

// appendLocked is Append for a conversation whose row the transaction has locked.
func appendLocked(ctx context.Context, tx pgx.Tx, c conversations.Conversation, messages []conversations.NewMessage,
	o AppendOptions,
) (AppendResult, error) {
	if !c.ContentDeleted.IsZero() {
		return AppendResult{}, db.ErrContentDeleted
	}
	if o.IfSeq != nil && *o.IfSeq != c.HeadSeq {
		return AppendResult{}, fmt.Errorf("the conversation's head is %d, not %d: %w", c.HeadSeq, *o.IfSeq,
			db.ErrStaleSequence)
	}
	known, err := knownClientIDs(ctx, tx, c.CID, messages)
	if err != nil {
		return AppendResult{}, err
	}
	res := AppendResult{Seqs: make([]int64, len(messages))}
	rows := make([][]any, 0, len(messages))
	before := c.HeadSeq
	for i, m := range messages {
		if seq, ok := known[m.ClientID]; ok && m.ClientID != "" {
			res.Seqs[i] = seq
			res.Duplicates++
			continue
		}
		c.HeadSeq++
		c.HeadChain = conversations.Chain(c.HeadChain, c.HeadSeq, m.Role, m.Kind, m.ClientID, m.Native)
		c.Sums.Tokens += int64(m.Tokens)
		c.Sums.Chars += int64(m.Chars)
		if m.Genuine {
			c.Sums.Turns++
		}
		var clientID *string
		if m.ClientID != "" {
			clientID = &m.ClientID
			known[m.ClientID] = c.HeadSeq
		}
		chain := c.HeadChain
		c.SyncChain = conversations.NextSyncChain(c.SyncChain, m.Fingerprint)
		record := conversations.Record{
			Chain: chain, Sums: c.Sums, Chars: int64(m.Chars), Tokens: int64(m.Tokens), Bytes: int64(len(m.Native)),
			Genuine: m.Genuine, Created: c.Now, SyncChain: c.SyncChain.Bytes(),
		}.Hash()
		rows = append(rows, []any{
			c.CID, c.HeadSeq, c.Sums.Tokens, c.Sums.Chars, c.Sums.Turns, m.Chars, m.Tokens,
			len(m.Native), m.Genuine, string(m.Role), string(m.Kind), clientID, chain[:], m.Native,
			c.SyncChain.Bytes(), c.Now, record[:],
		})
		res.Seqs[i] = c.HeadSeq
	}
	if len(rows) > 0 {
		res.FirstSeq, res.LastSeq = before+1, c.HeadSeq
	}
	usage, err := judgeUsage(ctx, tx, &c, o.Usage, res.Seqs)
	if err != nil {
		return AppendResult{}, err
	}
	takeUsage(&c, usage)
	learned := c.LearnedWindow
	if o.LearnWindow > 0 {
		c.LearnedWindow = min(o.LearnWindow, db.MaxInt4)
	}
	if len(rows) >= copyFrom {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"messages"}, messageInsertColumns,
			pgx.CopyFromRows(rows)); err != nil {
			return AppendResult{}, err
		}
		rows = nil
	}
	if err := saveAppend(ctx, tx, &c, rows); err != nil {
		return AppendResult{}, err
	}
	if c.LearnedWindow != learned {
		if err := seals.Write(ctx, tx, c.CID, seals.OfConversation()); err != nil {
			return AppendResult{}, err
		}
	}
	res.Conversation = c
	return res, nil
}

// knownClientIDs returns the sequence numbers of the messages that the conversation already has, by client id. The
// caller has locked the conversation's row, so that no message is appended meanwhile.
func knownClientIDs(ctx context.Context, tx pgx.Tx, cid int64,
	messages []conversations.NewMessage,
) (map[string]int64, error) {
	known := map[string]int64{}
	var ids []string
	for _, m := range messages {
		if m.ClientID != "" {
			ids = append(ids, m.ClientID)
		}
	}
	if len(ids) == 0 {
		return known, nil
	}
	rows, err := tx.Query(ctx, `SELECT client_id, seq FROM messages WHERE cid = $1 AND client_id = ANY($2)`, cid, ids)
	if err != nil {
		return nil, err
	}
	var id string
	var seq int64
	_, err = pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
		known[id] = seq
		return nil
	})
	return known, err
}

var messageInsertColumns = []string{
	"cid", "seq", "tokens_sum", "chars_sum", "turns_sum", "chars", "tokens", "bytes", "genuine", "role", "kind",
	"client_id", "chain", "native", "sync_chain", "created_at", "record",
}

// saveAppend writes the messages and the conversation's row in one round trip.
func saveAppend(ctx context.Context, tx pgx.Tx, c *conversations.Conversation, messages [][]any) error {
	batch := &pgx.Batch{}
	for _, row := range messages {
		batch.Queue(`INSERT INTO messages (cid, seq, tokens_sum, chars_sum, turns_sum, chars, tokens, bytes, genuine,
			role,
				kind, client_id, chain, native, sync_chain, created_at, record)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`, row...)
	}
	var tokens, covers, epoch, estimate *int64
	if c.Usage.Tokens > 0 {
		tokens, covers, estimate = new(int64(c.Usage.Tokens)), &c.Usage.CoversSeq, new(int64(c.Usage.Estimate))
		if !c.Usage.Stale {
			epoch = &c.Epoch
		}
	}
	batch.Queue(`UPDATE conversations SET head_seq = $2, head_chain = $3, tokens_sum = $4, chars_sum = $5,
		turns_sum = $6,
			server_tokens = $7, server_covers_seq = $8, server_estimate = $9, calibration = $10, updated_at = now(),
			server_epoch = CASE WHEN $7::bigint IS NOT NULL THEN coalesce($11, server_epoch) END,
			learned_window = $12, sync_chain = $13, sync_seq = CASE
			WHEN $13::bytea IS NOT NULL THEN $2 ELSE sync_seq END
		WHERE cid = $1 RETURNING auto_hold_turns >= turns_sum`,
		c.CID, c.HeadSeq, c.HeadChain[:], c.Sums.Tokens, c.Sums.Chars, c.Sums.Turns, tokens, covers, estimate,
		c.Usage.Calibration, epoch, c.LearnedWindow,
		c.SyncChain.Bytes()).QueryRow(func(row pgx.Row) error { return row.Scan(&c.AutoHeld) })
	return tx.SendBatch(ctx, batch).Close()
}
