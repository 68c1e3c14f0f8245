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

// discardPrepared discards the prepared marker, unless there is none or it is except.
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

// Application replaces values of a prepared marker when it is applied. Zero fields stay as they were prepared.
type Application struct {
	// Summary is the artifact with the summary's text as it is now.
	Summary                   string
	SummaryTokens             int
	TokensBefore, TokensAfter int
	// Numbers is a JSON object to add to the run's.
	Numbers json.RawMessage
	// Context is the artifact with the new context, Snapshot the artifact of what it was built from.
	Context, Snapshot string
}

// ApplyPrepared applies a prepared marker with the checks of Apply and sets its run's outcome to applied. Called again,
// it returns the same marker with already true. A marker that was discarded or undone is ConflictNotPrepared.
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

// DiscardPrepared discards a conversation's prepared marker for the reason why; the outcome of its run becomes
// superseded. It does nothing if no marker is prepared.
func (s *Store) DiscardPrepared(ctx context.Context, ref db.ConversationRef, why string) error {
	return s.db.Write(ctx, "discard a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		return discardPrepared(ctx, tx, c.CID, "", db.CleanText(why))
	})
}

// DiscardPreparedOf is DiscardPrepared for the marker of a run. It does nothing if the prepared marker is of another
// run.
func (s *Store) DiscardPreparedOf(ctx context.Context, ref db.ConversationRef, run, why string) error {
	return s.db.Write(ctx, "discard a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		prepared, err := db.One(ctx, tx, pgx.RowTo[bool],
			`SELECT EXISTS (SELECT FROM markers WHERE cid = $1 AND status = 'prepared' AND run = $2)`,
			c.CID, db.CleanText(run))
		if err != nil || !prepared {
			return err
		}
		return discardPrepared(ctx, tx, c.CID, "", db.CleanText(why))
	})
}
