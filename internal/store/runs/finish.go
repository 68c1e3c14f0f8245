package runs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// Start records that a workflow execution has started the run, and returns the run. Called again, it only updates the
// Temporal run id. The caller must not continue a run that is returned finished.
func (s *Store) Start(ctx context.Context, ref db.RunRef, temporalRunID string) (Run, error) {
	var r Run
	err := s.db.Write(ctx, "start a run", func(ctx context.Context, tx pgx.Tx) (err error) {
		if _, err = Find(ctx, tx, ref); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE runs SET temporal_run_id = CASE WHEN $3 = '' THEN temporal_run_id ELSE $3 END,
			started_at = coalesce(started_at, now()) WHERE tenant = $1 AND id = $2
			AND outcome IS NULL`, ref.Tenant, ref.ID, temporalRunID)
		if err != nil {
			return err
		}
		r, err = Find(ctx, tx, ref)
		return err
	})
	return r, err
}

// End is the end of a run.
type End struct {
	Outcome   precis.Outcome
	ErrorKind pipeline.ErrorKind
	// Reason is a word or a sentence without text of the conversation.
	Reason string
	Facts  Facts
	// Event is appended to the conversation's timeline, nil: none.
	Event *timeline.Event
}

// Finish ends a run that writes no marker. If the run has already ended, Finish changes nothing and returns the run.
func (s *Store) Finish(ctx context.Context, ref db.RunRef, end End) (Run, error) {
	var r Run
	switch end.Outcome {
	case precis.OutcomeSkipped, precis.OutcomeSuperseded, precis.OutcomeCancelled, precis.OutcomeFailed,
		precis.OutcomeReplayed:
	default:
		return r, db.Failed("finish a run",
			db.Invalidf("outcome %q: a run is finished as skipped, superseded, cancelled, failed or replayed",
				end.Outcome))
	}
	err := s.db.Write(ctx, "finish a run", func(ctx context.Context, tx pgx.Tx) (err error) {
		r, err = lockedRun(ctx, tx, ref)
		if err != nil || r.Outcome != "" {
			return err
		}
		r, err = FinishLocked(ctx, tx, r, end)
		return err
	})
	return r, err
}

// FinishLocked ends a run and seals it together with the subjects in also.
func FinishLocked(ctx context.Context, tx pgx.Tx, r Run, end End, also ...seals.Subject) (Run, error) {
	if err := recordFacts(ctx, tx, r.Ref, end.Facts); err != nil {
		return r, err
	}
	cid, err := db.One(ctx, tx, pgx.RowTo[int64], `UPDATE runs
		SET outcome = $3, error_kind = $4, reason = $5, finished_at = clock_timestamp()
		WHERE tenant = $1 AND id = $2
		RETURNING cid`, r.Ref.Tenant, r.Ref.ID, string(end.Outcome), string(end.ErrorKind), db.CleanText(end.Reason))
	if err != nil {
		return r, err
	}
	// A finished run needs no dispatch.
	if _, err := tx.Exec(ctx, `UPDATE outbox SET dispatched_at = now() WHERE run = $1 AND dispatched_at IS NULL`,
		r.Ref.ID); err != nil {
		return r, err
	}
	if end.Event != nil {
		e := *end.Event
		e.Run = r.Ref.ID
		if _, err := timeline.Append(ctx, tx, cid, e); err != nil {
			return r, err
		}
	}
	if err := seals.Write(ctx, tx, cid, append(also, seals.OfRun(r.Ref.ID))...); err != nil {
		return r, err
	}
	return Find(ctx, tx, r.Ref)
}
