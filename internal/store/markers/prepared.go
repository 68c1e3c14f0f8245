package markers

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/artifacts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/replies"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
)

// discardPrepared gives up the prepared marker, if there is one that is not except.
func discardPrepared(ctx context.Context, tx pgx.Tx, cid int64, except, why string) error {
	m, err := db.One(ctx, tx, Scan, `UPDATE markers m SET status = 'discarded', reason = $3,
		ended_at = clock_timestamp()
		WHERE cid = $1 AND status = 'prepared' AND id <> $2 RETURNING `+Columns, cid, except, why)
	if db.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.Run != "" {
		if _, err := tx.Exec(ctx, `UPDATE runs SET outcome = 'superseded', reason = $2 WHERE id = $1`, m.Run,
			why); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"marker": m.ID, "reason": why})
	if err != nil {
		return err
	}
	if _, err = timeline.Append(ctx, tx, cid,
		timeline.Event{Kind: timeline.Discarded, Run: m.Run, Data: data}); err != nil {
		return err
	}
	return sealMarker(ctx, tx, cid, m)
}

// Application is what a prepared marker takes effect with, in place of what it was prepared with. Zero fields stay.
type Application struct {
	// Summary is the artifact that holds the summary's text as it is to be read now.
	Summary                   string
	SummaryTokens             int
	TokensBefore, TokensAfter int
	// Numbers is added to the run's, a JSON object.
	Numbers json.RawMessage
	// Context is the artifact with the context as it is written now, Snapshot that of what it was built from.
	Context, Snapshot string
}

// ApplyPrepared makes a prepared marker take effect, under the checks of ApplyMarker; its run's outcome becomes
// applied. Called again it gives the same marker, and already is true. One that was discarded or undone is
// ConflictNotPrepared.
func (s *Store) ApplyPrepared(ctx context.Context, ref db.ConversationRef, id string,
	a Application,
) (m Marker, already bool, err error) {
	numbers, err := db.CleanJSON(a.Numbers)
	if err != nil {
		return m, false, db.Failed("apply a prepared marker", fmt.Errorf("numbers: %w", err))
	}
	err = s.db.Write(ctx, "apply a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		if m, err = Find(ctx, tx, c.CID, id); err != nil {
			return err
		}
		if already = m.Status == runs.MarkerApplied; already {
			return nil
		}
		if m.Status != runs.MarkerPrepared {
			return db.Conflictf(db.ConflictNotPrepared, "marker %s is %s: %s", id, m.Status, m.Reason)
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		if err := replies.NoneOpen(ctx, tx, c.CID); err != nil {
			return err
		}
		if _, err := checkMarker(ctx, tx, c, m.NewMarker); err != nil {
			return err
		}
		for _, sha := range []string{a.Summary, a.Context, a.Snapshot} {
			if err := artifacts.Linked(ctx, tx, c, sha); err != nil {
				return err
			}
		}
		sum, err := db.OptionalHash(a.Summary)
		if err != nil {
			return err
		}
		written, err := db.OptionalHash(a.Context)
		if err != nil {
			return err
		}
		snapshot, err := db.OptionalHash(a.Snapshot)
		if err != nil {
			return err
		}
		m, err = db.One(ctx, tx, Scan, `UPDATE markers m SET status = 'applied', applied_at = clock_timestamp(),
			epoch = $2,
				tokens_before = coalesce(nullif($3::bigint, 0), tokens_before),
				tokens_after = coalesce(nullif($4::bigint, 0), tokens_after),
				summary_sha256 = coalesce($5, summary_sha256), summary_tokens = coalesce(nullif($6::bigint, 0),
				summary_tokens)
			WHERE id = $1 RETURNING `+Columns, id, c.Epoch+1, a.TokensBefore, a.TokensAfter, sum, a.SummaryTokens)
		if err != nil {
			return err
		}
		if err := activate(ctx, tx, c.CID, id, 0); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE runs SET outcome = 'applied', tokens_before = $2, tokens_after = $3,
			numbers = numbers || $4::jsonb,
				context_sha256 = coalesce($5, context_sha256), snapshot_sha256 = coalesce($6, snapshot_sha256)
				WHERE id = $1`,
			m.Run, m.TokensBefore, m.TokensAfter, numbers, written, snapshot)
		if err != nil {
			return err
		}
		if _, err = timeline.Append(ctx, tx, c.CID,
			timeline.Event{Kind: timeline.Applied, Run: m.Run, Data: markerEvent(m)}); err != nil {
			return err
		}
		return sealMarker(ctx, tx, c.CID, m)
	})
	return m, already, err
}

// DiscardPrepared gives up a conversation's prepared marker and says why; its run becomes superseded. With none
// prepared it does nothing.
func (s *Store) DiscardPrepared(ctx context.Context, ref db.ConversationRef, why string) error {
	return s.db.Write(ctx, "discard a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		return discardPrepared(ctx, tx, c.CID, "", db.CleanText(why))
	})
}

// DiscardPreparedOf is DiscardPrepared for the marker of a run, and does nothing when another one waits.
func (s *Store) DiscardPreparedOf(ctx context.Context, ref db.ConversationRef, run, why string) error {
	return s.db.Write(ctx, "discard a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		waits, err := db.One(ctx, tx, pgx.RowTo[bool],
			`SELECT EXISTS (SELECT FROM markers WHERE cid = $1 AND status = 'prepared' AND run = $2)`,
			c.CID, db.CleanText(run))
		if err != nil || !waits {
			return err
		}
		return discardPrepared(ctx, tx, c.CID, "", db.CleanText(why))
	})
}
