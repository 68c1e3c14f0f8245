package triggers

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/runs"
)

// Check decides what a change to a conversation starts. It is called in the transaction of the change, with the
// conversation locked, so that a run that it requests is committed together with the change. It may be called more than
// once, so it must set its results and not add to them.
type Check func(ctx context.Context, m State) (Decision, error)

// Decision is the result of a Check.
type Decision struct {
	// Run is the run to request, nil: none. If a run is unfinished, the request joins it.
	Run *runs.Request
	// Measured is the size of the history, nil: the check did not build the context.
	Measured *conversations.Measured
	// Figure is the new local estimate for the server's figure, nil: unchanged.
	Figure *Figure
}

// Figure is a local estimate of what the server's figure counts.
type Figure struct {
	// Estimate is the local estimate of what the figure counts, in tokens; Calibration the ratio of the two.
	Estimate    int
	Calibration float64
}

// Result is what was done after a Check.
type Result struct {
	// Run is the run that was requested or joined, nil: none.
	Run      *runs.Run
	Attached bool
}

// Inspect calls look with the state that a Check would get, from one snapshot, and changes nothing.
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

// Check calls check without a change to the conversation.
func (s *Store) Check(ctx context.Context, ref db.ConversationRef,
	check Check,
) (conversations.Conversation, Result, error) {
	var c conversations.Conversation
	var w Result
	err := s.db.Write(ctx, "look at a conversation", func(ctx context.Context, tx pgx.Tx) (err error) {
		if c, err = conversations.Lock(ctx, tx, ref); err != nil {
			return err
		}
		w, err = CheckLocked(ctx, s.db, tx, &c, check)
		return err
	})
	return c, w, err
}

// CheckLocked calls check after a change and carries out its decision. c is the conversation after the change.
func CheckLocked(ctx context.Context, d *db.DB, tx pgx.Tx, c *conversations.Conversation, check Check) (Result, error) {
	var w Result
	if check == nil {
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
	v, err := check(ctx, m)
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

// noteFound stores the sizes in a decision.
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
