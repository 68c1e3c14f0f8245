package markers

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/internal/store/timeline"
)

// Undone is what an undo did.
type Undone struct {
	// Marker is the one that was undone, Active the one that is active now, nil for the full history.
	Marker Marker
	Active *Marker
}

// Undo undoes the active marker: the context is again the one before the marker, with the messages since. No automatic
// run starts until the next user message. ifMarker, if not "", is the marker to undo: if another one is active, Undo
// returns ConflictBaseChanged, so that a repeated call does not undo twice. Without an active marker it returns
// ErrNothingToUndo.
func (s *Store) Undo(ctx context.Context, ref db.ConversationRef, ifMarker string) (Undone, error) {
	var u Undone
	err := s.db.Write(ctx, "undo", func(ctx context.Context, tx pgx.Tx) error {
		u = Undone{}
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		if ifMarker != "" && ifMarker != c.ActiveMarker {
			return db.Conflictf(db.ConflictBaseChanged, "active is marker %q, not %q", c.ActiveMarker, ifMarker)
		}
		if c.ActiveMarker == "" {
			return db.ErrNothingToUndo
		}
		u.Marker, err = db.One(ctx, tx, Scan, `UPDATE markers m SET status = 'undone', ended_at = clock_timestamp()
			WHERE id = $1 RETURNING `+Columns, c.ActiveMarker)
		if err != nil {
			return err
		}
		if u.Marker.Base != "" {
			base, err := Find(ctx, tx, c.CID, u.Marker.Base)
			if err != nil {
				return err
			}
			u.Active = &base
		}
		if err := activate(ctx, tx, c.CID, u.Marker.Base, 0); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE conversations SET auto_hold_turns = turns_sum WHERE cid = $1`,
			c.CID); err != nil {
			return err
		}
		if err := discardPrepared(ctx, tx, c.CID, "", "an undo came after it"); err != nil {
			return err
		}
		if _, err = timeline.Append(ctx, tx, c.CID,
			timeline.Event{Kind: timeline.Undone, Run: u.Marker.Run, Data: markerEvent(u.Marker)}); err != nil {
			return err
		}
		return seals.Write(ctx, tx, c.CID, seals.OfMarker(u.Marker.ID))
	})
	return u, err
}
