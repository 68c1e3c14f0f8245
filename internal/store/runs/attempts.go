package runs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/pipeline"
)

// Begin writes an attempt that starts. It returns the number of the attempt: the one it has, or with more the next that
// is free, for an activity that was scheduled again and is counted from 1 once more. faults counts the attempts at the
// call before it that ended by a fault of ours: they failed with kind internal, or never ended, since their worker died
// or did not come to an end in time.
func (s *Attempts) Begin(ctx context.Context, ref db.RunRef, t Attempt, more bool) (number, faults int, err error) {
	w, err := encodeAttempt(t)
	if err != nil {
		return 0, 0, db.Failed("record an attempt", err)
	}
	err = seals.ChangeRun(ctx, s.db, "record an attempt", ref, func(ctx context.Context, tx seals.Tx) error {
		var last int
		err := tx.QueryRow(ctx, `SELECT coalesce(max(attempt), 0), count(*) FILTER (WHERE attempt <> $4
			AND (outcome = 'started' OR error_kind = 'internal'))
			FROM run_attempts WHERE run = $1 AND stage = $2 AND call = $3`, ref.ID, string(t.Stage), t.Call,
			t.Attempt).Scan(&last, &faults)
		if err != nil {
			return err
		}
		number = t.Attempt
		if more {
			number = max(last+1, t.Attempt)
		}
		w.Attempt.Attempt = number
		return w.write(ctx, tx, ref)
	})
	return number, faults, err
}

// Record writes an attempt when it has started, and updates it when it has ended. (Stage, Call, Attempt) is the key.
// Values replace the stored ones, except empty strings and a zero Started.
func (s *Attempts) Record(ctx context.Context, ref db.RunRef, t Attempt) error {
	w, err := encodeAttempt(t)
	if err != nil {
		return db.Failed("record an attempt", err)
	}
	return seals.ChangeRun(ctx, s.db, "record an attempt", ref, func(ctx context.Context, tx seals.Tx) error {
		return w.write(ctx, tx, ref)
	})
}

// attemptRow is an attempt in the form that is stored.
type attemptRow struct {
	Attempt
	numbers, artifacts []byte
}

func encodeAttempt(t Attempt) (attemptRow, error) {
	numbers, err := db.CleanJSON(t.Numbers)
	if err != nil {
		return attemptRow{}, fmt.Errorf("numbers: %w", err)
	}
	artifacts, err := json.Marshal(t.Artifacts)
	if err != nil {
		return attemptRow{}, fmt.Errorf("artifacts: %w", err)
	}
	if t.Artifacts == nil {
		artifacts = []byte(`{}`)
	}
	if t.Attempt < 1 || t.Stage == "" {
		return attemptRow{}, db.Invalidf("an attempt has a stage and a number from 1")
	}
	return attemptRow{t, numbers, artifacts}, nil
}

// write writes the row.
func (t attemptRow) write(ctx context.Context, tx seals.Tx, ref db.RunRef) error {
	_, err := tx.Exec(ctx, `INSERT INTO run_attempts AS s (run, stage, call, attempt, rung, summarizer, outcome,
		error_kind, message, next,
			worker, started_at, ms, numbers, artifacts)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, coalesce($12, clock_timestamp()),
		nullif($13::bigint, 0), $14, $15)
		ON CONFLICT ON CONSTRAINT run_attempts_attempt_key DO UPDATE SET
			rung = coalesce(nullif(excluded.rung, ''), s.rung),
			summarizer = coalesce(nullif(excluded.summarizer, ''), s.summarizer),
			outcome = excluded.outcome,
			error_kind = coalesce(nullif(excluded.error_kind, ''), s.error_kind),
			message = coalesce(nullif(excluded.message, ''), s.message),
			next = coalesce(nullif(excluded.next, ''), s.next),
			worker = coalesce(nullif(excluded.worker, ''), s.worker),
			started_at = coalesce($12, s.started_at),
			ms = coalesce(excluded.ms, s.ms),
			numbers = s.numbers || excluded.numbers,
			artifacts = s.artifacts || excluded.artifacts`,
		ref.ID, string(t.Stage), t.Call, t.Attempt.Attempt, string(t.Rung), db.CleanText(t.Summarizer),
		string(t.Outcome), string(t.ErrorKind), db.CleanText(t.Message), string(t.Next),
		db.CleanText(t.Worker), db.TimeOrNil(t.Started), t.Took.Milliseconds(), t.numbers, t.artifacts)
	return err
}

// NoteNext records the fallback that the ladder took after the last attempt at a call. kind is the failure; it is
// stored only if the attempt did not record its own because its worker died.
func (s *Attempts) NoteNext(ctx context.Context, ref db.RunRef, stage contract.Stage, call int, next contract.Fallback,
	kind pipeline.ErrorKind,
) error {
	return seals.ChangeRun(ctx, s.db, "record the next fallback", ref, func(ctx context.Context, tx seals.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE run_attempts SET next = $4, error_kind = CASE WHEN outcome = 'started'
			AND error_kind = '' THEN $5 ELSE error_kind END
			WHERE run = $1 AND stage = $2 AND call = $3 AND attempt = (
				SELECT max(attempt) FROM run_attempts WHERE run = $1 AND stage = $2
				AND call = $3)`, ref.ID, stage, call, string(next), string(kind))
		return err
	})
}

// Result returns the result that PutResult stored, ErrNotFound if there is none.
func (s *Attempts) Result(ctx context.Context, ref db.RunRef, stage contract.Stage, call int) ([]byte, error) {
	var result []byte
	err := s.db.Read(ctx, "read a stage's result", func(ctx context.Context, q db.Querier) (err error) {
		result, err = db.One(ctx, q, pgx.RowTo[[]byte], `SELECT g.result FROM stage_results g JOIN runs r
			ON r.id = g.run
			WHERE r.tenant = $1 AND g.run = $2 AND g.stage = $3
			AND g.call = $4`, ref.Tenant, db.CleanText(ref.ID), string(stage), call)
		return err
	})
	return result, err
}

// PutResult stores a stage's result before its activity returns. If another attempt at the call has stored one first,
// PutResult returns that one instead.
func (s *Attempts) PutResult(ctx context.Context, ref db.RunRef, stage contract.Stage, call int,
	result []byte,
) ([]byte, error) {
	var winner []byte
	if result == nil {
		result = []byte{}
	}
	err := seals.ChangeRun(ctx, s.db, "keep a stage's result", ref, func(ctx context.Context, tx seals.Tx) error {
		// DO NOTHING would return no row in a race, since the statement's snapshot does not have the other row.
		var err error
		winner, err = db.One(ctx, tx, pgx.RowTo[[]byte], `INSERT INTO stage_results (run, stage, call, result)
			VALUES ($1, $2, $3, $4)
			ON CONFLICT (run, stage, call) DO UPDATE SET stage = excluded.stage
			RETURNING result`, ref.ID, stage, call, result)
		return err
	})
	return winner, err
}
