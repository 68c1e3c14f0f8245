// Package segments keeps the out-of-band memory of conversations: ranges of messages that markers cover, and notes of
// agents.
package segments

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/markers"
)

// Store keeps segments and notes.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Segment is one entry of a conversation's out-of-band memory: a range of its messages, whose text is produced from
// them when it is read, or an agent's own note.
type Segment struct {
	Name string
	// CoversFrom and CoversTo are the first and last message of the range, 0: a note. OffsetFrom is the offset in bytes
	// in the text of CoversFrom at which the range begins, OffsetTo the offset in the text of CoversTo at which it
	// ends; 0: the whole message.
	CoversFrom, CoversTo int64
	OffsetFrom, OffsetTo int
	// Marker is the marker that the range was made for, "": a note.
	Marker string
	// Content is a note's text, any bytes; nil for a range, and in lists.
	Content []byte
	// Size of the text in bytes, 0 for a range that must be measured again since a message in it was pruned.
	Size int64
	// Facts describe a range in the index, a JSON object; "{}" for a note.
	Facts   json.RawMessage
	Created time.Time
}

// Note reports whether the segment is an agent's note.
func (g Segment) Note() bool { return g.CoversFrom == 0 }

var (
	segmentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	// Reserved names, in upper and lower case, since file systems may not distinguish case.
	reservedName = regexp.MustCompile(`(?i)^(index\.md|segment_[0-9]+\.md)$`)
)

// Keep stores ranges. An existing one stays as it is, since the meaning of a name never changes.
func (s *Store) Keep(ctx context.Context, ref db.ConversationRef, list []Segment) error {
	return s.db.Write(ctx, "keep segments", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		batch := &pgx.Batch{}
		known := map[string]bool{}
		for _, g := range list {
			if !reservedName.MatchString(g.Name) || g.Note() {
				return db.Invalidf("segment %q of messages %d to %d", g.Name, g.CoversFrom, g.CoversTo)
			}
			if !known[g.Marker] {
				if _, err := markers.Find(ctx, tx, c.CID, g.Marker); err != nil {
					return err
				}
				known[g.Marker] = true
			}
			facts, err := db.CleanJSON(g.Facts)
			if err != nil {
				return err
			}
			batch.Queue(`INSERT INTO segments (cid, name, covers_from, covers_to, offset_from, offset_to, marker,
				content, size, facts)
				VALUES ($1, $2, $3, $4, $5, $6, $7, '', $8, $9) ON CONFLICT (cid, name) DO NOTHING`,
				c.CID, g.Name, g.CoversFrom, g.CoversTo, g.OffsetFrom, g.OffsetTo, g.Marker, g.Size, facts)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

// Measure stores the size of a range that had to be measured again.
func (s *Store) Measure(ctx context.Context, ref db.ConversationRef, name string, size int64) error {
	return s.db.Write(ctx, "measure a segment", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := conversations.Readable(ctx, tx, ref)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE segments SET size = $3 WHERE cid = $1 AND name = $2 AND covers_from > 0`, cid,
			name, size)
		if err == nil && tag.RowsAffected() == 0 {
			err = db.NotFoundf("segment %q", name)
		}
		return err
	})
}

// Get reads a segment.
func (s *Store) Get(ctx context.Context, ref db.ConversationRef, name string) (Segment, error) {
	var g Segment
	err := s.db.Read(ctx, "read a segment", func(ctx context.Context, q db.Querier) error {
		cid, err := conversations.Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		g, err = db.One(ctx, q, scanSegment,
			`SELECT `+segmentColumns+`, content FROM segments WHERE cid = $1 AND name = $2`, cid, db.CleanText(name))
		if db.IsNotFound(err) {
			err = db.NotFoundf("segment %q", strings.ToValidUTF8(name, "\uFFFD"))
		}
		return err
	})
	return g, err
}

// List returns a conversation's segments without texts: ranges in the order of the conversation, then notes by name.
func (s *Store) List(ctx context.Context, ref db.ConversationRef) ([]Segment, error) {
	var list []Segment
	err := s.db.Read(ctx, "list segments", func(ctx context.Context, q db.Querier) error {
		cid, err := conversations.Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = db.All(ctx, q, scanSegment, `SELECT `+segmentColumns+`, NULL::bytea FROM segments WHERE cid = $1
			ORDER BY covers_from = 0, covers_from, offset_from, name`, cid)
		return err
	})
	return list, err
}

const segmentColumns = `name, covers_from, covers_to, offset_from, offset_to, coalesce(marker, ''),
	CASE WHEN covers_from = 0 THEN octet_length(content) ELSE size END, facts, created_at`

func scanSegment(row pgx.CollectableRow) (g Segment, err error) {
	err = row.Scan(&g.Name, &g.CoversFrom, &g.CoversTo, &g.OffsetFrom, &g.OffsetTo, &g.Marker, &g.Size,
		(*[]byte)(&g.Facts), &g.Created, &g.Content)
	if !g.Note() {
		g.Content = nil
	}
	return g, err
}
