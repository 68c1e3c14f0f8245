package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Dispatch is a run whose workflow is to be started.
type Dispatch struct {
	ID           int64
	Tenant       string
	Conversation string
	Run          string
	// Kind is the run's trigger, for the search attribute.
	Kind string
	// Replay is Run.ReplayMode.
	Replay string
	// Attempts counts the claims, this one too.
	Attempts int
	Created  time.Time
	// TraceParent is the trace of the request that asked for the run, see WithTrace.
	TraceParent string
}

// ClaimOutbox takes up to limit runs that are due, oldest first. Each is this caller's for the lease; one that is
// not marked by then is given out again, since its dispatcher is dead. Callers never wait for each other.
func (s *Store) ClaimOutbox(ctx context.Context, limit int, lease time.Duration) ([]Dispatch, error) {
	var list []Dispatch
	err := s.write(ctx, "claim the outbox", func(ctx context.Context, tx pgx.Tx) (err error) {
		list, err = all(ctx, tx, func(row pgx.CollectableRow) (d Dispatch, err error) {
			return d, row.Scan(&d.ID, &d.Tenant, &d.Conversation, &d.Run, &d.Kind, &d.Replay, &d.Attempts, &d.Created,
				&d.TraceParent)
		}, `WITH due AS MATERIALIZED (
				SELECT id FROM outbox WHERE dispatched_at IS NULL AND due_at <= now() ORDER BY due_at, id LIMIT $1
				FOR UPDATE SKIP LOCKED
			), claimed AS (
				UPDATE outbox o SET due_at = now() + $2, attempts = attempts + 1 FROM due WHERE o.id = due.id RETURNING o.*
			)
			SELECT o.id, o.tenant, o.conversation, o.run, r.trigger_kind,
				CASE WHEN p.live THEN 'live' WHEN p.run IS NOT NULL THEN 'recorded' ELSE '' END, o.attempts, o.created_at, o.trace_parent
			FROM claimed o JOIN runs r ON r.id = o.run LEFT JOIN replays p ON p.run = o.run ORDER BY o.id`, clampLimit(limit), lease)
		return err
	})
	return list, err
}

// MarkDispatched says that the workflows have been started.
func (s *Store) MarkDispatched(ctx context.Context, ids ...int64) error {
	return s.write(ctx, "mark the outbox", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET dispatched_at = now() WHERE id = ANY($1) AND dispatched_at IS NULL`,
			ids)
		return err
	})
}

// MarkRunDispatched is MarkDispatched for a caller that has started the run's workflow itself.
func (s *Store) MarkRunDispatched(ctx context.Context, ref RunRef) error {
	return s.write(ctx, "mark the outbox", func(ctx context.Context, tx pgx.Tx) error {
		if err := ownsRun(ctx, tx, ref); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE outbox SET dispatched_at = now() WHERE run = $1 AND dispatched_at IS NULL`,
			ref.ID)
		return err
	})
}

// PostponeDispatch says that a workflow could not be started, and when to try again.
func (s *Store) PostponeDispatch(ctx context.Context, id int64, in time.Duration, why string) error {
	return s.write(ctx, "postpone a dispatch", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(
			ctx, `UPDATE outbox SET due_at = now() + $2, last_error = $3 WHERE id = $1 AND dispatched_at IS NULL`,
			id, in, cleanText(why))
		return err
	})
}

// ReviveDispatches gives out again the runs that have not ended and of which nothing has been heard for the time
// given: their workflow was terminated, or the Temporal server that had it is gone. Starting one that does run is
// harmless, and one that starts again finds what was done before. It says how many there are.
func (s *Store) ReviveDispatches(ctx context.Context, silent time.Duration) (int, error) {
	var n int64
	err := s.write(ctx, "revive dispatches", func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE outbox o SET dispatched_at = NULL, due_at = now() FROM runs r
			WHERE r.id = o.run AND r.outcome IS NULL AND o.dispatched_at < now() - $1::interval AND NOT EXISTS (
				SELECT FROM run_steps t WHERE t.run = o.run
					AND greatest(t.started_at, t.started_at + t.ms * interval '1 millisecond') >= now() - $1::interval)`, silent)
		n = tag.RowsAffected()
		return err
	})
	return int(n), err
}
