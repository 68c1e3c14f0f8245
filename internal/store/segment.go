package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Segment is one entry of a conversation's out-of-band memory: a range of its messages, whose text is written out from
// them when somebody reads it, or an agent's own note.
type Segment struct {
	Name string
	// CoversFrom and CoversTo are the messages that it shows, 0: a note. OffsetFrom is the byte of the text of
	// CoversFrom where it begins, OffsetTo the byte of the text of CoversTo where it ends; 0: whole.
	CoversFrom, CoversTo int64
	OffsetFrom, OffsetTo int
	// Marker is the one that it was made for, "": a note.
	Marker string
	// Content is a note's text, any bytes; nil for a range, and in lists.
	Content []byte
	// Size of the text in bytes. 0 for a range that has to be measured anew, since a message in it was pruned.
	Size int64
	// Facts is what the index says of a range, a JSON object; "{}" for a note.
	Facts   json.RawMessage
	Created time.Time
}

// Note says that an agent wrote it.
func (g Segment) Note() bool { return g.CoversFrom == 0 }

// MaxNoteBytes bounds one note.
const MaxNoteBytes = 256 << 10

var (
	segmentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	// Names of the memory's own, in any case: a folder may not tell upper from lower.
	reservedName = regexp.MustCompile(`(?i)^(index\.md|segment_[0-9]+\.md)$`)
)

// KeepSegments notes ranges that have been made. One that is there stays as it is: a name means the same for ever.
func (s *Store) KeepSegments(ctx context.Context, ref ConversationRef, list []Segment) error {
	return s.write(ctx, "keep segments", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		batch := &pgx.Batch{}
		known := map[string]bool{}
		for _, g := range list {
			if !reservedName.MatchString(g.Name) || g.Note() {
				return invalidf("segment %q of messages %d to %d", g.Name, g.CoversFrom, g.CoversTo)
			}
			if !known[g.Marker] {
				if _, err := marker(ctx, tx, c.cid, g.Marker); err != nil {
					return err
				}
				known[g.Marker] = true
			}
			facts, err := cleanJSON(g.Facts)
			if err != nil {
				return err
			}
			batch.Queue(`INSERT INTO segments (cid, name, covers_from, covers_to, offset_from, offset_to, marker, content, size, facts)
				VALUES ($1, $2, $3, $4, $5, $6, $7, '', $8, $9) ON CONFLICT (cid, name) DO NOTHING`,
				c.cid, g.Name, g.CoversFrom, g.CoversTo, g.OffsetFrom, g.OffsetTo, g.Marker, g.Size, facts)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

// MeasureSegment notes the size of a range that was to be measured anew.
func (s *Store) MeasureSegment(ctx context.Context, ref ConversationRef, name string, size int64) error {
	return s.write(ctx, "measure a segment", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := readable(ctx, tx, ref)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE segments SET size = $3 WHERE cid = $1 AND name = $2 AND covers_from > 0`, cid,
			name, size)
		if err == nil && tag.RowsAffected() == 0 {
			err = notFoundf("segment %q", name)
		}
		return err
	})
}

// NewNote is a note that an agent writes.
type NewNote struct {
	// Name, or "" for the next free note_0001.md…
	Name string
	// Text may hold any bytes, at most MaxNoteBytes.
	Text []byte
	// Replace lets it take the place of a note of that name.
	Replace bool
}

// PutNote writes a note, and says whether it is a new one. A name of the memory's own is ErrInvalid; the same text
// again changes nothing; another text under a name that is taken is an ErrConflict, unless Replace says otherwise.
func (s *Store) PutNote(ctx context.Context, ref ConversationRef, n NewNote) (Segment, bool, error) {
	var g Segment
	created := false
	switch {
	case n.Name != "" && !segmentName.MatchString(n.Name):
		return g, false, fmt.Errorf("store: write a note: %w",
			invalidf("name %q: letters, digits, dot, _ and -, at most 128, a letter or digit first", n.Name))
	case reservedName.MatchString(n.Name):
		return g, false, fmt.Errorf("store: write a note: %w",
			invalidf("name %q is one of the memory's own: give the note another", n.Name))
	case len(n.Text) > MaxNoteBytes:
		return g, false, fmt.Errorf("store: write a note: %w",
			invalidf("it has %d bytes, a note has at most %d", len(n.Text), MaxNoteBytes))
	}
	err := s.write(ctx, "write a note", func(ctx context.Context, tx pgx.Tx) error {
		created = false
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		name := n.Name
		if name == "" {
			if name, err = freeNoteName(ctx, tx, c.cid); err != nil {
				return err
			}
		}
		old, err := one(ctx, tx, scanSegment,
			`SELECT `+segmentColumns+`, content FROM segments WHERE cid = $1 AND lower(name) = lower($2)`, c.cid, name)
		switch {
		case isNotFound(err):
			created = true
		case err != nil:
			return err
		case old.Name != name:
			return conflictf(ConflictDifferent, "there is a note %q, whose name differs in upper and lower case alone",
				old.Name)
		case string(old.Content) == string(n.Text):
			g = old
			return nil
		case !n.Replace:
			return conflictf(ConflictDifferent,
				"there is a note %q with another text: choose another name, or say that it is to be replaced", name)
		}
		g, err = one(ctx, tx, scanSegment, `INSERT INTO segments (cid, name, content) VALUES ($1, $2, $3)
			ON CONFLICT (cid, name) DO UPDATE SET content = excluded.content, created_at = clock_timestamp()
			RETURNING `+segmentColumns+`, content`, c.cid, name, n.Text)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM search_texts WHERE cid = $1 AND seq = 0 AND note = $2`, c.cid,
			name); err != nil {
			return err
		}
		if err := insertSearchTexts(ctx, tx, c.cid, []SearchText{{Note: name, Text: string(n.Text)}}); err != nil {
			return err
		}
		_, err = tx.Exec(
			ctx, `UPDATE conversations SET memory_due_at = clock_timestamp() WHERE cid = $1 AND NOT ephemeral`, c.cid)
		return err
	})
	return g, created, err
}

// freeNoteName is the next of the names that notes without one get. The caller holds the conversation.
func freeNoteName(ctx context.Context, q querier, cid int64) (string, error) {
	last, err := one(ctx, q, pgx.RowTo[int], `SELECT coalesce(max(substring(name from '^note_([0-9]{4,8})\.md$')::integer), 0)
		FROM segments WHERE cid = $1 AND covers_from = 0`, cid)
	return fmt.Sprintf("note_%04d.md", last+1), err
}

// GetSegment reads an entry of the memory.
func (s *Store) GetSegment(ctx context.Context, ref ConversationRef, name string) (Segment, error) {
	var g Segment
	err := s.read(ctx, "read a segment", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		g, err = one(ctx, q, scanSegment,
			`SELECT `+segmentColumns+`, content FROM segments WHERE cid = $1 AND name = $2`, cid, cleanText(name))
		if isNotFound(err) {
			err = notFoundf("segment %q", strings.ToValidUTF8(name, "\uFFFD"))
		}
		return err
	})
	return g, err
}

// Segments lists a conversation's memory, without texts: ranges in the order of the conversation, then notes by name.
func (s *Store) Segments(ctx context.Context, ref ConversationRef) ([]Segment, error) {
	var list []Segment
	err := s.read(ctx, "list segments", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = all(ctx, q, scanSegment, `SELECT `+segmentColumns+`, NULL::bytea FROM segments WHERE cid = $1
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

// MemoryWork is a conversation whose memory's files are to be looked at.
type MemoryWork struct {
	Ref ConversationRef
	// claimed is the end of the claim: a later change sets another time.
	claimed time.Time
}

// ClaimMemory takes conversations whose memory has changed, or is to be looked at again, at most limit of them, those
// that wait longest first. Nobody else gets them until the lease has passed.
func (s *Store) ClaimMemory(ctx context.Context, limit int, lease time.Duration) ([]MemoryWork, error) {
	var list []MemoryWork
	err := s.write(ctx, "claim memory", func(ctx context.Context, tx pgx.Tx) (err error) {
		list, err = all(ctx, tx, func(row pgx.CollectableRow) (w MemoryWork, err error) {
			return w, row.Scan(&w.Ref.Tenant, &w.Ref.ID, &w.claimed)
		}, `UPDATE conversations SET memory_due_at = clock_timestamp() + $2::interval WHERE cid IN (
				SELECT cid FROM conversations WHERE memory_due_at <= clock_timestamp() ORDER BY memory_due_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
			) RETURNING tenant, id, memory_due_at`, limit, lease)
		return err
	})
	return list, err
}

// MemoryDone ends a claim. The conversation is looked at again after the time given if anything has happened in it in
// the last day, and else when its memory changes. What has changed since the claim stays due.
func (s *Store) MemoryDone(ctx context.Context, w MemoryWork, again time.Duration) error {
	return s.write(ctx, "end a claim of memory", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE conversations SET memory_due_at = CASE WHEN updated_at > now() - interval '1 day' THEN clock_timestamp() + $4::interval END
			WHERE tenant = $1 AND id = $2 AND memory_due_at = $3`, w.Ref.Tenant, w.Ref.ID, w.claimed, again)
		return err
	})
}

// MemoryLater puts a claim off: the conversation is due again after the time given. What has changed since the claim
// stays due.
func (s *Store) MemoryLater(ctx context.Context, w MemoryWork, wait time.Duration) error {
	return s.write(ctx, "put off a claim of memory", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE conversations SET memory_due_at = clock_timestamp() + $4::interval
			WHERE tenant = $1 AND id = $2 AND memory_due_at = $3`, w.Ref.Tenant, w.Ref.ID, w.claimed, wait)
		return err
	})
}
