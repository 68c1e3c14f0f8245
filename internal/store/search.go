package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"precis/internal/memory/search"
	"precis/pipeline"
)

// SearchText is the text of a message, or of a note, as a search finds it.
type SearchText struct {
	// Seq is the message's number, 0 for a note; then Note is its name.
	Seq  int64
	Note string
	Text string
}

// SearchIndex says how far a conversation's messages can be found, and how far it goes.
func (s *Store) SearchIndex(ctx context.Context, ref ConversationRef) (indexed, head int64, err error) {
	err = s.read(ctx, "look at the search index", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
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

// AddSearchTexts makes messages findable: texts of those behind what is indexed, up to message upTo. Adding what is
// there changes nothing.
func (s *Store) AddSearchTexts(ctx context.Context, ref ConversationRef, texts []SearchText, upTo int64) error {
	return s.write(ctx, "index messages", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := readable(ctx, tx, ref)
		if err != nil {
			return err
		}
		if err := insertSearchTexts(ctx, tx, cid, texts); err != nil {
			return err
		}
		// Last, since it holds up appends.
		tag, err := tx.Exec(ctx, `UPDATE conversations SET search_seq = greatest(search_seq, $2) WHERE cid = $1 `+
			`AND content_deleted_at IS NULL`, cid, upTo)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrContentDeleted // since readable looked
		}
		if err != nil {
			return err
		}
		// What was pruned since the caller read it is not to be found.
		seqs := make([]int64, len(texts))
		for i, t := range texts {
			seqs[i] = t.Seq
		}
		_, err = tx.Exec(ctx, `DELETE FROM search_texts s USING messages m WHERE s.cid = $1 AND s.seq = ANY($2)
			AND m.cid = s.cid AND m.seq = s.seq AND m.pruned_at IS NOT NULL`, cid, seqs)
		return err
	})
}

func insertSearchTexts(ctx context.Context, tx pgx.Tx, cid int64, texts []SearchText) error {
	var seqs []int64
	var parts, starts []int
	var notes, bodies, vectors []string
	for _, t := range texts {
		for i, p := range search.Pieces(cleanText(t.Text)) {
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
		FROM unnest($2::bigint[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::text[]) AS t (seq, part, start, note, body, words)
		ON CONFLICT DO NOTHING`, cid, seqs, parts, starts, notes, bodies, vectors)
	return err
}

// SearchHit is a message or a note in which something was found.
type SearchHit struct {
	// Seq, Role and Kind are the message's; 0 and "" for a note, whose name is Note.
	Seq  int64
	Role pipeline.Role
	Kind pipeline.Kind
	Note string
	// Start is the byte of the text where Body begins: the piece that fits best.
	Start int
	Body  string
	// Rank is PostgreSQL's ts_rank of the piece, 0 for what was found inside of words.
	Rank float64
}

// SearchPlace is where a page of hits ended.
type SearchPlace struct {
	Rank float64
	Seq  int64
	Note string
}

const hitOrder = `(rank, seq, note) < ($4::float8, $5::bigint, $6::text)`

// Search finds messages and notes by whole words, best first, and the newer of two that are as good. after is where the
// page before ended, nil for the first.
func (s *Store) Search(ctx context.Context, ref ConversationRef, query search.Query, after *SearchPlace,
	limit int,
) ([]SearchHit, error) {
	args := []any{int64(0), query.Any(false), query.Any(true), nil, nil, nil, limit}
	if after != nil {
		args[3], args[4], args[5] = after.Rank, after.Seq, after.Note
	}
	var groups []string
	for _, group := range query.Groups {
		var terms []string
		for _, t := range group {
			args = append(args, t.TSQuery())
			not := ""
			if t.Not {
				not = "NOT "
			}
			terms = append(terms, fmt.Sprintf("%sbool_or(words @@ $%d::text::tsquery)", not, len(args)))
		}
		groups = append(groups, "("+strings.Join(terms, " AND ")+")")
	}
	sql := `WITH hits AS (
			SELECT seq, note, max(rank) AS rank, (array_agg(part ORDER BY rank DESC, part))[1] AS part FROM (
				SELECT seq, note, part, words, ts_rank(words, $2::text::tsquery, 1)::float8 AS rank FROM search_texts
				WHERE cid = $1 AND words @@ $3::text::tsquery
			) found GROUP BY seq, note HAVING ` + strings.Join(groups, " OR ") + `
		), page AS (
			SELECT * FROM hits WHERE $4::float8 IS NULL OR ` + hitOrder + ` ORDER BY rank DESC, seq DESC, note DESC LIMIT $7
		)
		SELECT p.seq, coalesce(m.role, ''), coalesce(m.kind, ''), p.note, t.start, t.body, p.rank
		FROM page p JOIN search_texts t ON t.cid = $1 AND t.seq = p.seq AND t.note = p.note AND t.part = p.part
			LEFT JOIN messages m ON m.cid = $1 AND m.seq = p.seq
		ORDER BY p.rank DESC, p.seq DESC, p.note DESC`
	var list []SearchHit
	err := s.read(ctx, "search", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		args[0] = cid
		list, err = all(ctx, q, scanHit, sql, args...)
		return err
	})
	return list, err
}

func scanHit(row pgx.CollectableRow) (h SearchHit, err error) {
	return h, row.Scan(&h.Seq, &h.Role, &h.Kind, &h.Note, &h.Start, &h.Body, &h.Rank)
}

// SearchInside finds messages and notes that hold what a query looks for as it was typed, also inside of words, the
// newest first. It reads what the conversation holds, piece by piece, until there are enough.
func (s *Store) SearchInside(ctx context.Context, ref ConversationRef, query search.Query, after *SearchPlace,
	limit int,
) ([]SearchHit, error) {
	seq, note := int64(-1), ""
	if after != nil {
		seq, note = after.Seq, after.Note
	}
	var list []SearchHit
	err := s.read(ctx, "search inside of words", func(ctx context.Context, q querier) error {
		list = nil
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		rows, err := q.Query(ctx, `SELECT t.seq, coalesce(m.role, ''), coalesce(m.kind, ''), t.note, t.start, t.body, 0::float8
			FROM search_texts t LEFT JOIN messages m ON m.cid = t.cid AND m.seq = t.seq
			WHERE t.cid = $1 AND ($2 < 0 OR (t.seq, t.note) < ($2, $3)) ORDER BY t.seq DESC, t.note DESC, t.part`, cid, seq, note)
		if err != nil {
			return err
		}
		defer rows.Close()
		var best *SearchHit
		matcher := query.Matcher()
		end := func() {
			if best != nil && matcher.Matches() {
				list = append(list, *best)
			}
			best, matcher = nil, query.Matcher()
		}
		at := SearchHit{Seq: -1}
		for len(list) < limit && rows.Next() {
			h, err := scanHit(rows)
			if err != nil {
				return err
			}
			if h.Seq != at.Seq || h.Note != at.Note {
				end()
				if len(list) == limit {
					break
				}
				at = h
			}
			if matcher.Add(h.Body) && best == nil {
				best = &h
			}
		}
		if len(list) < limit {
			end()
		}
		rows.Close()
		return rows.Err()
	})
	return list, err
}
