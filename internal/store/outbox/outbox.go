// Package outbox dispatches runs: it has a row for each workflow to start. Package runs writes the row in the
// transaction that requests the run.
package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/db"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Store claims and marks dispatches.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Dispatch is a run whose workflow must be started.
type Dispatch struct {
	ID           int64
	Tenant       string
	Conversation string
	Run          string
	// Kind is the run's trigger, for the search attribute.
	Kind pipeline.TriggerKind
	// Replay is the mode of a replay, "": not a replay.
	Replay precis.ReplayMode
	// Attempts counts the claims, including this one.
	Attempts int
	Created  time.Time
	// TraceParent is the trace of the request that created the run, see WithTrace.
	TraceParent string
}

// WithTrace returns a context that belongs to the trace of the request that created the run.
func (d Dispatch) WithTrace(ctx context.Context) context.Context {
	return db.WithTraceParent(ctx, d.TraceParent)
}

// Claim claims up to limit runs that are due, oldest first, for the time of the lease. A run that is not marked as
// dispatched by then can be claimed again, since its dispatcher has died. Callers do not wait for each other. A run
// that has ended is marked as dispatched and not returned: its workflow must not start again.
func (s *Store) Claim(ctx context.Context, limit int, lease time.Duration) ([]Dispatch, error) {
	var list []Dispatch
	err := s.db.Write(ctx, "claim the outbox", func(ctx context.Context, tx pgx.Tx) (err error) {
		list, err = db.All(ctx, tx, func(row pgx.CollectableRow) (d Dispatch, err error) {
			return d, row.Scan(&d.ID, &d.Tenant, &d.Conversation, &d.Run, &d.Kind, &d.Replay, &d.Attempts, &d.Created,
				&d.TraceParent)
		}, `WITH due AS MATERIALIZED (
				SELECT id FROM outbox WHERE dispatched_at IS NULL AND due_at <= now() ORDER BY due_at, id LIMIT $1
				FOR UPDATE SKIP LOCKED
			), claimed AS (
				UPDATE outbox o SET due_at = now() + $2, attempts = attempts + 1,
					dispatched_at = CASE WHEN r.outcome IS NOT NULL THEN now() END
				FROM due, runs r WHERE o.id = due.id AND r.id = o.run
				RETURNING o.*
			)
			SELECT o.id, o.tenant, o.conversation, o.run, r.trigger_kind,
				CASE WHEN p.live THEN 'live' WHEN p.run IS NOT NULL THEN 'recorded' ELSE '' END, o.attempts,
				o.created_at, o.trace_parent
			FROM claimed o JOIN runs r ON r.id = o.run LEFT JOIN replays p ON p.run = o.run
			WHERE o.dispatched_at IS NULL
			ORDER BY o.id`, db.ClampLimit(limit), lease)
		return err
	})
	return list, err
}

// MarkDispatched records that the workflows have been started.
func (s *Store) MarkDispatched(ctx context.Context, ids ...int64) error {
	return s.db.Write(ctx, "mark the outbox", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET dispatched_at = now() WHERE id = ANY($1) AND dispatched_at IS NULL`,
			ids)
		return err
	})
}

// MarkRunDispatched is MarkDispatched for a caller that has started the run's workflow itself.
func (s *Store) MarkRunDispatched(ctx context.Context, ref db.RunRef) error {
	return s.db.Write(ctx, "mark the outbox", func(ctx context.Context, tx pgx.Tx) error {
		if err := runs.Owns(ctx, tx, ref); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE outbox SET dispatched_at = now() WHERE run = $1 AND dispatched_at IS NULL`,
			ref.ID)
		return err
	})
}

// Postpone makes a run due again after the given time, if its workflow could not be started.
func (s *Store) Postpone(ctx context.Context, id int64, in time.Duration) error {
	return s.db.Write(ctx, "postpone a dispatch", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET due_at = now() + $2 WHERE id = $1 AND dispatched_at IS NULL`, id, in)
		return err
	})
}

// Revive makes unfinished runs due again that have recorded nothing for the time silent, and returns how many. Their
// workflow was terminated, or its Temporal server was lost. Starting a workflow that is running has no effect, and one
// that is started again finds the results of the first.
func (s *Store) Revive(ctx context.Context, silent time.Duration) (int, error) {
	var n int64
	err := s.db.Write(ctx, "revive dispatches", func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE outbox o SET dispatched_at = NULL, due_at = now() FROM runs r
			WHERE r.id = o.run AND r.outcome IS NULL AND o.dispatched_at < now() - $1::interval AND NOT EXISTS (
				SELECT FROM run_attempts t WHERE t.run = o.run
					AND greatest(t.started_at,
					t.started_at + t.ms * interval '1 millisecond') >= now() - $1::interval)`, silent)
		n = tag.RowsAffected()
		return err
	})
	return int(n), err
}
