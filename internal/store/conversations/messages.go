package conversations

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// ChainAt returns the chain hash of a message.
func ChainAt(ctx context.Context, q db.Querier, cid, seq int64) (db.Hash, error) {
	raw, err := db.One(ctx, q, pgx.RowTo[[]byte], `SELECT chain FROM messages WHERE cid = $1 AND seq = $2`, cid, seq)
	if err != nil {
		return db.Hash{}, fmt.Errorf("message %d: %w", seq, err)
	}
	return db.Hash(raw), nil
}

// MessagesAfter returns the messages after a sequence number, up to upTo; 0: to the end.
func MessagesAfter(ctx context.Context, q db.Querier, cid, after, upTo int64) ([]Message, error) {
	return db.All(ctx, q, scanMessage, `SELECT `+messageColumns+` FROM messages m
		WHERE m.cid = $1 AND m.seq > $2 AND ($3::bigint = 0 OR m.seq <= $3) ORDER BY m.seq`, cid, after, upTo)
}

// SumsAt returns the sums up to and including a message.
func SumsAt(ctx context.Context, q db.Querier, cid, seq int64) (Sums, error) {
	if seq == 0 {
		return Sums{}, nil
	}
	return db.One(ctx, q, func(row pgx.CollectableRow) (s Sums, err error) {
		return s, row.Scan(&s.Tokens, &s.Chars, &s.Turns)
	}, `SELECT tokens_sum, chars_sum, turns_sum FROM messages WHERE cid = $1 AND seq = $2`, cid, seq)
}

const messageColumns = `m.seq, coalesce(m.client_id, ''), m.role, m.kind, m.genuine, m.chars, m.tokens, m.native,
	m.chain,
	m.tokens_sum, m.chars_sum, m.turns_sum, m.created_at, m.pruned_at`

func scanMessage(row pgx.CollectableRow) (Message, error) {
	var m Message
	var chain []byte
	var pruned *time.Time
	err := row.Scan(&m.Seq, &m.ClientID, &m.Role, &m.Kind, &m.Genuine, &m.Chars, &m.Tokens, (*[]byte)(&m.Native),
		&chain,
		&m.Sums.Tokens, &m.Sums.Chars, &m.Sums.Turns, &m.Created, &pruned)
	copy(m.Chain[:], chain)
	m.Pruned = db.Or(pruned, time.Time{})
	return m, err
}

// Limits of one page of Walk: whichever is reached first.
const (
	pageMessages = 500
	pageBytes    = 8 << 20
)

// Walk iterates over the messages from seq from to seq to, both included, in order. If to is 0, it ends at the head,
// including messages that are appended meanwhile. It holds no connection between pages, and at most a few megabytes, or
// one message, in memory. It stops after the first error.
func (s *Messages) Walk(ctx context.Context, ref db.ConversationRef, from, to int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for next := from; to == 0 || next <= to; {
			page, err := s.page(ctx, ref, next, to)
			if err != nil {
				yield(Message{}, err)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			next = page[len(page)-1].Seq + 1
		}
	}
}

func (s *Messages) page(ctx context.Context, ref db.ConversationRef, from, to int64) ([]Message, error) {
	var page []Message
	err := s.db.Read(ctx, "read messages", func(ctx context.Context, q db.Querier) error {
		cid, err := Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		// The sum uses the column bytes, so that the content of messages past the page is not read.
		page, err = db.All(ctx, q, scanMessage, `SELECT `+messageColumns+` FROM (
				SELECT *, sum(bytes) OVER (ORDER BY seq) - bytes AS bytes_before FROM (
					SELECT * FROM messages WHERE cid = $1 AND seq >= $2 AND ($3::bigint = 0 OR seq <= $3) ORDER BY seq
					LIMIT $4
				) p
			) m WHERE m.bytes_before < $5 ORDER BY m.seq`, cid, from, to, pageMessages, pageBytes)
		return err
	})
	return page, err
}

// At reads the messages with the given sequence numbers, in the order of the conversation. A number without a message
// is ErrNotFound.
func (s *Messages) At(ctx context.Context, ref db.ConversationRef, seqs []int64) ([]Message, error) {
	var list []Message
	err := s.db.Read(ctx, "read messages", func(ctx context.Context, q db.Querier) error {
		cid, err := Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = MessagesAt(ctx, q, cid, seqs)
		return err
	})
	return list, err
}

// MessagesAt is Messages.At within a transaction or snapshot.
func MessagesAt(ctx context.Context, q db.Querier, cid int64, seqs []int64) ([]Message, error) {
	wanted := make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		wanted[seq] = true
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	list, err := db.All(ctx, q, scanMessage,
		`SELECT `+messageColumns+` FROM messages m WHERE m.cid = $1 AND m.seq = ANY($2) ORDER BY m.seq`, cid, seqs)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		delete(wanted, m.Seq)
	}
	for seq := range wanted {
		return nil, db.NotFoundf("message %d", seq)
	}
	return list, nil
}
