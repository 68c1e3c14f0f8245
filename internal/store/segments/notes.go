package segments

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/searchindex"
)

// MaxNoteBytes bounds one note.
const MaxNoteBytes = 256 << 10

// NewNote is a note that an agent writes.
type NewNote struct {
	// Name is the note's name, "": the next free one of note_0001.md, note_0002.md…
	Name string
	// Text is at most MaxNoteBytes of any bytes.
	Text []byte
	// Replace is set to replace an existing note of that name.
	Replace bool
}

// PutNote writes a note and reports whether it is new. A reserved name is ErrInvalid. Writing the same text again
// changes nothing; another text under an existing name is an ErrConflict, unless Replace is set.
func (s *Store) PutNote(ctx context.Context, ref db.ConversationRef, n NewNote) (Segment, bool, error) {
	var g Segment
	created := false
	switch {
	case n.Name != "" && !segmentName.MatchString(n.Name):
		return g, false, db.Failed("write a note",
			db.Invalidf("name %q: letters, digits, dot, _ and -, at most 128, a letter or digit first", n.Name))
	case reservedName.MatchString(n.Name):
		return g, false, db.Failed("write a note", db.Invalidf("name %q is reserved: choose another", n.Name))
	case len(n.Text) > MaxNoteBytes:
		return g, false, db.Failed("write a note",
			db.Invalidf("the note has %d bytes, the maximum is %d", len(n.Text), MaxNoteBytes))
	}
	err := s.db.Write(ctx, "write a note", func(ctx context.Context, tx pgx.Tx) error {
		created = false
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		name := n.Name
		if name == "" {
			if name, err = freeNoteName(ctx, tx, c.CID); err != nil {
				return err
			}
		}
		old, err := db.One(ctx, tx, scanSegment,
			`SELECT `+segmentColumns+`, content FROM segments WHERE cid = $1 AND lower(name) = lower($2)`, c.CID, name)
		switch {
		case db.IsNotFound(err):
			created = true
		case err != nil:
			return err
		case old.Name != name:
			return db.Conflictf(db.ConflictDifferent,
				"there is a note %q, whose name differs in upper and lower case alone",
				old.Name)
		case string(old.Content) == string(n.Text):
			g = old
			return nil
		case !n.Replace:
			return db.Conflictf(db.ConflictDifferent,
				"there is a note %q with another text: choose another name, or say that it is to be replaced", name)
		}
		g, err = db.One(ctx, tx, scanSegment, `INSERT INTO segments (cid, name, content) VALUES ($1, $2, $3)
			ON CONFLICT (cid, name) DO UPDATE SET content = excluded.content, created_at = clock_timestamp()
			RETURNING `+segmentColumns+`, content`, c.CID, name, n.Text)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM search_texts WHERE cid = $1 AND seq = 0 AND note = $2`, c.CID,
			name); err != nil {
			return err
		}
		if err := searchindex.Insert(ctx, tx, c.CID,
			[]searchindex.Text{{Note: name, Text: string(n.Text)}}); err != nil {
			return err
		}
		_, err = tx.Exec(
			ctx, `UPDATE conversations SET memory_due_at = clock_timestamp() WHERE cid = $1 AND NOT ephemeral`, c.CID)
		return err
	})
	return g, created, err
}

// freeNoteName returns the next free name for a note without one. The caller has locked the conversation.
func freeNoteName(ctx context.Context, q db.Querier, cid int64) (string, error) {
	last, err := db.One(ctx, q, pgx.RowTo[int], `SELECT
		coalesce(max(substring(name from '^note_([0-9]{4,8})\.md$')::integer), 0)
		FROM segments WHERE cid = $1 AND covers_from = 0`, cid)
	return fmt.Sprintf("note_%04d.md", last+1), err
}
