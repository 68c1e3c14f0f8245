package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// StepOutcome is what became of one attempt.
type StepOutcome string

// The outcomes of an attempt.
const (
	// StepStarted is written when the attempt begins; it stays when the worker died in it.
	StepStarted StepOutcome = "started"
	StepOK      StepOutcome = "ok"
	StepFailed  StepOutcome = "failed"
	// StepReused says that an earlier attempt had left its result, and no work was done.
	StepReused StepOutcome = "reused"
)

// Step is one attempt at one activity call of a run.
type Step struct {
	Stage string
	// Call counts the activity calls of the run, Attempt Temporal's attempts at one, both from 1.
	Call, Attempt int
	// Rung is the step of the ladder that led here.
	Rung       string
	Summarizer string
	Outcome    StepOutcome
	ErrorKind  pipeline.ErrorKind
	// Message is one sentence without text of the conversation.
	Message string
	// Next is what the ladder did after it.
	Next string
	// Worker is the process that did it.
	Worker  string
	Started time.Time
	// Took is zero while it goes on.
	Took time.Duration
	// Numbers is a JSON object; Artifacts are references by what they are.
	Numbers   json.RawMessage
	Artifacts map[string]string
}

const stepColumns = `s.stage, s.call, s.attempt, s.rung, s.summarizer, s.outcome, s.error_kind, s.message, s.next, s.worker,
	s.started_at, coalesce(s.ms, 0), s.numbers, s.artifacts`

func scanStep(row pgx.CollectableRow) (Step, error) {
	var t Step
	var ms int64
	err := row.Scan(&t.Stage, &t.Call, &t.Attempt, &t.Rung, &t.Summarizer, &t.Outcome, &t.ErrorKind, &t.Message,
		&t.Next,
		&t.Worker, &t.Started, &ms, (*[]byte)(&t.Numbers), &t.Artifacts)
	t.Took = time.Duration(ms) * time.Millisecond
	return t, err
}

// RecordStep writes an attempt, first as started and again when it has ended: (Stage, Call, Attempt) is the key, what
// is given replaces what was there, empty strings and a zero Started leave it.
func (s *Store) RecordStep(ctx context.Context, ref RunRef, t Step) error {
	numbers, err := cleanJSON(t.Numbers)
	if err != nil {
		return fmt.Errorf("store: record a step: numbers: %w", err)
	}
	artifacts, err := json.Marshal(t.Artifacts)
	if err != nil {
		return fmt.Errorf("store: record a step: artifacts: %w", err)
	}
	if t.Artifacts == nil {
		artifacts = []byte(`{}`)
	}
	if t.Attempt < 1 || t.Stage == "" {
		return fmt.Errorf("store: record a step: %w", invalidf("a step has a stage and an attempt from 1"))
	}
	return s.write(ctx, "record a step", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := lockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO run_steps AS s (run, stage, call, attempt, rung, summarizer, outcome, error_kind, message, next,
				worker, started_at, ms, numbers, artifacts)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, coalesce($12, clock_timestamp()), nullif($13::bigint, 0), $14, $15)
			ON CONFLICT ON CONSTRAINT run_steps_attempt_key DO UPDATE SET
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
			ref.ID, cleanText(t.Stage), t.Call, t.Attempt, cleanText(t.Rung), cleanText(t.Summarizer),
			string(t.Outcome), string(t.ErrorKind), cleanText(t.Message), cleanText(t.Next), cleanText(t.Worker),
			timeOrNil(t.Started),
			t.Took.Milliseconds(), numbers, artifacts)
		if err != nil {
			return err
		}
		return sealEnded(ctx, tx, cid, ref.ID)
	})
}

// ownsRun says ErrNotFound for a run that is not the tenant's.
func ownsRun(ctx context.Context, q querier, ref RunRef) error {
	if !goodID(ref.ID, 64) || !goodID(ref.Tenant, 64) {
		return notFoundf("run %q", ref.ID)
	}
	if _, err := one(ctx, q, pgx.RowTo[string], `SELECT id FROM runs WHERE tenant = $1 AND id = $2`, ref.Tenant,
		ref.ID); err != nil {
		return fmt.Errorf("run %q: %w", ref.ID, err)
	}
	return nil
}

// NoteNext records what the ladder did after the last attempt at a call, and the kind of failure that it answered: the
// attempt itself tells, unless its worker died in it.
func (s *Store) NoteNext(ctx context.Context, ref RunRef, stage string, call int, next string,
	kind pipeline.ErrorKind,
) error {
	return s.write(ctx, "record the next step", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := lockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE run_steps SET next = $4, error_kind = CASE WHEN outcome = 'started' AND error_kind = '' THEN $5 ELSE error_kind END
			WHERE run = $1 AND stage = $2 AND call = $3 AND attempt = (
				SELECT max(attempt) FROM run_steps WHERE run = $1 AND stage = $2 AND call = $3)`, ref.ID, stage, call, cleanText(next), string(kind))
		if err != nil {
			return err
		}
		return sealEnded(ctx, tx, cid, ref.ID)
	})
}

// StageResult gives what PutStageResult kept, ErrNotFound when nothing is there.
func (s *Store) StageResult(ctx context.Context, ref RunRef, stage string, call int) ([]byte, error) {
	var result []byte
	err := s.read(ctx, "read a stage's result", func(ctx context.Context, q querier) (err error) {
		result, err = one(ctx, q, pgx.RowTo[[]byte], `SELECT g.result FROM stage_results g JOIN runs r ON r.id = g.run
			WHERE r.tenant = $1 AND g.run = $2 AND g.stage = $3 AND g.call = $4`, ref.Tenant, cleanText(ref.ID), cleanText(stage), call)
		return err
	})
	return result, err
}

// PutStageResult keeps a stage's result, before its activity returns, and gives the one that counts: that of the first
// writer, whoever races. The attempt is no part of the key.
func (s *Store) PutStageResult(ctx context.Context, ref RunRef, stage string, call int, result []byte) ([]byte, error) {
	var winner []byte
	if result == nil {
		result = []byte{}
	}
	err := s.write(ctx, "keep a stage's result", func(ctx context.Context, tx pgx.Tx) (err error) {
		cid, err := lockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		// DO NOTHING with a second look gives no row in a race: the statement's snapshot does not have it yet.
		winner, err = one(ctx, tx, pgx.RowTo[[]byte], `INSERT INTO stage_results (run, stage, call, result) VALUES ($1, $2, $3, $4)
			ON CONFLICT (run, stage, call) DO UPDATE SET stage = excluded.stage RETURNING result`, ref.ID, stage, call, result)
		if err != nil {
			return err
		}
		return sealEnded(ctx, tx, cid, ref.ID)
	})
	return winner, err
}
