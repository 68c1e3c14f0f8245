// Package searchindex is the full-text index of messages and notes.
package searchindex

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/memory/search"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// Store indexes and searches texts.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Text is the searchable text of a message or a note.
type Text struct {
	// Seq is the message's number, 0 for a note; then Note is its name.
	Seq  int64
	Note string
	Text string
}

// Progress returns the last message that is indexed, and the head of the conversation.
func (s *Store) Progress(ctx context.Context, ref db.ConversationRef) (indexed, head int64, err error) {
	err = s.db.Read(ctx, "look at the search index", func(ctx context.Context, q db.Querier) error {
		cid, err := conversations.Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		rows, err := q.Query(ctx, `SELECT search_seq, head_seq FROM conversations WHERE cid = $1`, cid)
		if err != nil {
			return err
		}
		_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&indexed, &head)
		})
		return err
	})
	return indexed, head, err
}

// Add indexes the texts of messages after the last indexed one, up to message upTo. Adding an indexed message again
// changes nothing.
func (s *Store) Add(ctx context.Context, ref db.ConversationRef, texts []Text, upTo int64) error {
	return s.db.Write(ctx, "index messages", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := conversations.Readable(ctx, tx, ref)
		if err != nil {
			return err
		}
		if err := Insert(ctx, tx, cid, texts); err != nil {
			return err
		}
		// Lock the conversation last, since the lock delays appends.
		tag, err := tx.Exec(ctx, `UPDATE conversations SET search_seq = greatest(search_seq, $2) WHERE cid = $1 `+
			`AND content_deleted_at IS NULL`, cid, upTo)
		if err == nil && tag.RowsAffected() == 0 {
			err = db.ErrContentDeleted // since readable looked
		}
		if err != nil {
			return err
		}
		// Messages that were pruned since the caller read them must not be found.
		seqs := make([]int64, len(texts))
		for i, t := range texts {
			seqs[i] = t.Seq
		}
		_, err = tx.Exec(ctx, `DELETE FROM search_texts s USING messages m WHERE s.cid = $1 AND s.seq = ANY($2)
			AND m.cid = s.cid AND m.seq = s.seq AND m.pruned_at IS NOT NULL`, cid, seqs)
		return err
	})
}

// Insert writes the pieces of texts to the index.
func Insert(ctx context.Context, tx pgx.Tx, cid int64, texts []Text) error {
	var seqs []int64
	var parts, starts []int
	var notes, bodies, vectors []string
	for _, t := range texts {
		for i, p := range search.Pieces(db.CleanText(t.Text)) {
			seqs, parts, starts = append(seqs, t.Seq), append(parts, i), append(starts, p.Start)
			notes, bodies, vectors = append(notes, t.Note), append(bodies, p.Text),
				append(vectors, search.Vector(p.Text))
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO search_texts (cid, seq, part, start, note, body, words)
		SELECT $1, seq, part, start, note, body, words::tsvector
		FROM unnest($2::bigint[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::text[]) AS t (seq, part,
		start, note, body, words)
		ON CONFLICT DO NOTHING`, cid, seqs, parts, starts, notes, bodies, vectors)
	return err
}
