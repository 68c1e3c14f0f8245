package triggers

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/runs"
)

// Check looks at a conversation in the transaction of a change to it, under its lock, and says what the change starts.
// A run that it asks for is written with the change: a crash loses both or neither. It is called again when the
// transaction is tried again, so that it must set its results and not add to them.
type Check func(ctx context.Context, m State) (Decision, error)

// Decision is what a watch wants.
type Decision struct {
	// Run is to be asked for, nil: none. While one is unfinished it is joined.
	Run *runs.Request
	// Measured is what the history is now, when its context was built; nil: it was not.
	Measured *conversations.Measured
	// Figure is what is known of the server's figure now, nil: nothing new.
	Figure *Figure
}

// Figure is what a local estimate makes of the server's figure.
type Figure struct {
	// Estimate is the local estimate of what the figure counts, in tokens; Calibration the ratio of the two.
	Estimate    int
	Calibration float64
}

// Result is what became of a watch.
type Result struct {
	// Run is the one that was asked for or joined, nil: none.
	Run      *runs.Run
	Attached bool
}

// Inspect reads a conversation as a watch sees it, all of it from one snapshot, and changes nothing.
func (s *Store) Inspect(ctx context.Context, ref db.ConversationRef,
	look func(ctx context.Context, m State) error,
) error {
	return s.db.Snapshot(ctx, "look at a conversation", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		m, err := readState(ctx, tx, c)
		if err != nil {
			return err
		}
		m.db = s.db
		return look(ctx, m)
	})
}

// Check calls a watch without a change.
func (s *Store) Check(ctx context.Context, ref db.ConversationRef,
	watch Check,
) (conversations.Conversation, Result, error) {
	var c conversations.Conversation
	var w Result
	err := s.db.Write(ctx, "look at a conversation", func(ctx context.Context, tx pgx.Tx) (err error) {
		if c, err = conversations.Lock(ctx, tx, ref); err != nil {
			return err
		}
		w, err = CheckLocked(ctx, s.db, tx, &c, watch)
		return err
	})
	return c, w, err
}

// CheckLocked calls the watch of a change and does what it wants. c is as the change left it.
func CheckLocked(ctx context.Context, d *db.DB, tx pgx.Tx, c *conversations.Conversation, watch Check) (Result, error) {
	var w Result
	if watch == nil {
		return w, nil
	}
	if !c.ContentDeleted.IsZero() {
		return w, db.ErrContentDeleted
	}
	m, err := readState(ctx, tx, *c)
	if err != nil {
		return w, err
	}
	m.db = d
	v, err := watch(ctx, m)
	if err != nil {
		return w, err
	}
	if err := noteFound(ctx, tx, c, v); err != nil {
		return w, err
	}
	if v.Run == nil {
		return w, nil
	}
	req, err := v.Run.Cleaned()
	if err != nil {
		return w, err
	}
	run, attached, err := runs.RequestLocked(ctx, tx, *c, db.NewID(), req)
	w.Run, w.Attached = &run, attached
	return w, err
}

// noteFound keeps what a watch found out.
func noteFound(ctx context.Context, tx pgx.Tx, c *conversations.Conversation, v Decision) error {
	if v.Measured != nil {
		c.Measured = v.Measured
		_, err := tx.Exec(
			ctx, `UPDATE conversations SET measured_tokens = $2, measured_seq = $3, measured_epoch = epoch WHERE `+
				`cid = $1`,
			c.CID, v.Measured.Tokens, v.Measured.Seq)
		if err != nil {
			return err
		}
	}
	if v.Figure != nil && (v.Figure.Estimate != c.Usage.Estimate || v.Figure.Calibration != c.Usage.Calibration) {
		c.Usage.Estimate, c.Usage.Calibration = v.Figure.Estimate, v.Figure.Calibration
		_, err := tx.Exec(ctx, `UPDATE conversations SET server_estimate = CASE
			WHEN server_tokens IS NOT NULL THEN $2::bigint END,
			calibration = $3 WHERE cid = $1`, c.CID, v.Figure.Estimate, v.Figure.Calibration)
		return err
	}
	return nil
}
