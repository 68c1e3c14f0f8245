package store

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
)

// Segment is one file of a conversation's out-of-band memory.
type Segment struct {
	Name string
	// CoversFrom and CoversTo are the messages that it renders, 0: an agent's own note.
	CoversFrom, CoversTo int64
	// Marker is the one that it was written for, "": none.
	Marker  string
	Content []byte
	// Size of the content in bytes, set also where Content is left out.
	Size    int64
	Created time.Time
}

var segmentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// PutSegment writes a segment. One of the same name is replaced: the memory is made from the messages, which stay.
func (s *Store) PutSegment(ctx context.Context, ref ConversationRef, g Segment) error {
	if !segmentName.MatchString(g.Name) {
		return fmt.Errorf("store: write a segment: %w", invalidf("name %q: letters, digits, dot, _ and -, at most 128", g.Name))
	}
	if g.Content == nil {
		g.Content = []byte{}
	}
	return s.write(ctx, "write a segment", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := readable(ctx, tx, ref)
		if err != nil {
			return err
		}
		if g.Marker != "" {
			if _, err := marker(ctx, tx, cid, g.Marker); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO segments (cid, name, covers_from, covers_to, marker, content) VALUES ($1, $2, $3, $4, nullif($5, ''), $6)
			ON CONFLICT (cid, name) DO UPDATE SET covers_from = excluded.covers_from, covers_to = excluded.covers_to,
				marker = excluded.marker, content = excluded.content, created_at = now()`,
			cid, g.Name, g.CoversFrom, g.CoversTo, g.Marker, g.Content)
		return err
	})
}

// GetSegment reads a segment.
func (s *Store) GetSegment(ctx context.Context, ref ConversationRef, name string) (Segment, error) {
	var g Segment
	err := s.read(ctx, "read a segment", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		g, err = one(ctx, q, scanSegment, `SELECT name, covers_from, covers_to, coalesce(marker, ''), content, octet_length(content), created_at
			FROM segments WHERE cid = $1 AND name = $2`, cid, cleanText(name))
		return err
	})
	return g, err
}

// Segments lists a conversation's segments by name, without their content.
func (s *Store) Segments(ctx context.Context, ref ConversationRef) ([]Segment, error) {
	var list []Segment
	err := s.read(ctx, "list segments", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = all(ctx, q, scanSegment, `SELECT name, covers_from, covers_to, coalesce(marker, ''), NULL::bytea, octet_length(content),
			created_at FROM segments WHERE cid = $1 ORDER BY name`, cid)
		return err
	})
	return list, err
}

func scanSegment(row pgx.CollectableRow) (g Segment, err error) {
	return g, row.Scan(&g.Name, &g.CoversFrom, &g.CoversTo, &g.Marker, &g.Content, &g.Size, &g.Created)
}
