package searchindex

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"precis/internal/memory/search"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/pipeline"
)

// Hit is a message or a note that matches a query.
type Hit struct {
	// Seq, Role and Kind are the message's; 0 and "" for a note, whose name is Note.
	Seq  int64
	Role pipeline.Role
	Kind pipeline.Kind
	Note string
	// Body is the piece of the text that matches best, Start its offset in bytes.
	Start int
	Body  string
	// Rank is PostgreSQL's ts_rank of the piece, 0 for hits of SearchInside.
	Rank float64
}

// Place is the end of a page of hits.
type Place struct {
	Rank float64
	Seq  int64
	Note string
}

const hitOrder = `(rank, seq, note) < ($4::float8, $5::bigint, $6::text)`

// Search finds messages and notes by whole words, by rank and then newest first. after is the end of the page before,
// nil for the first page.
func (s *Store) Search(ctx context.Context, ref db.ConversationRef, query search.Query, after *Place,
	limit int,
) ([]Hit, error) {
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
			SELECT * FROM hits WHERE $4::float8 IS NULL OR ` + hitOrder + ` ORDER BY rank DESC, seq DESC, note DESC
				LIMIT $7
		)
		SELECT p.seq, coalesce(m.role, ''), coalesce(m.kind, ''), p.note, t.start, t.body, p.rank
		FROM page p JOIN search_texts t ON t.cid = $1 AND t.seq = p.seq AND t.note = p.note AND t.part = p.part
			LEFT JOIN messages m ON m.cid = $1 AND m.seq = p.seq
		ORDER BY p.rank DESC, p.seq DESC, p.note DESC`
	var list []Hit
	err := s.db.Read(ctx, "search", func(ctx context.Context, q db.Querier) error {
		cid, err := conversations.Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		args[0] = cid
		list, err = db.All(ctx, q, scanHit, sql, args...)
		return err
	})
	return list, err
}

func scanHit(row pgx.CollectableRow) (h Hit, err error) {
	return h, row.Scan(&h.Seq, &h.Role, &h.Kind, &h.Note, &h.Start, &h.Body, &h.Rank)
}

// SearchInside finds messages and notes that contain the terms of a query literally, also within words, newest first.
// It reads the conversation's texts piece by piece until it has enough hits.
func (s *Store) SearchInside(ctx context.Context, ref db.ConversationRef, query search.Query, after *Place,
	limit int,
) ([]Hit, error) {
	seq, note := int64(-1), ""
	if after != nil {
		seq, note = after.Seq, after.Note
	}
	var list []Hit
	err := s.db.Read(ctx, "search inside of words", func(ctx context.Context, q db.Querier) error {
		list = nil
		cid, err := conversations.Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		rows, err := q.Query(ctx, `SELECT t.seq, coalesce(m.role, ''), coalesce(m.kind, ''), t.note, t.start, t.body,
			0::float8
			FROM search_texts t LEFT JOIN messages m ON m.cid = t.cid AND m.seq = t.seq
			WHERE t.cid = $1 AND ($2 < 0 OR (t.seq, t.note) < ($2, $3))
			ORDER BY t.seq DESC, t.note DESC, t.part`, cid, seq, note)
		if err != nil {
			return err
		}
		defer rows.Close()
		var best *Hit
		matcher := query.Matcher()
		end := func() {
			if best != nil && matcher.Matches() {
				list = append(list, *best)
			}
			best, matcher = nil, query.Matcher()
		}
		at := Hit{Seq: -1}
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
