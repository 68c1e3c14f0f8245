package replays

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/db"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Count counts the replays of a batch with one result.
type Count struct {
	// Outcome is "" for unfinished replays.
	Outcome   precis.Outcome     `json:"outcome"`
	ErrorKind pipeline.ErrorKind `json:"error_kind"`
	// Identical is set for finished replays from the record.
	Identical *bool `json:"identical,omitempty"`
	Runs      int   `json:"runs"`
}

// Totals are the results of a batch's replays so far.
type Totals struct {
	Counts []Count
	// Models are their model calls.
	Models []runs.ModelUsage
	// Different lists replays that were not identical, oldest first, at most 100.
	Different []string
}

// Runs returns how many replays there are, and how many of them have ended.
func (t Totals) Runs() (all, done int) {
	for _, c := range t.Counts {
		all += c.Runs
		if c.Outcome != "" {
			done += c.Runs
		}
	}
	return all, done
}

// Totals sums up the results of a batch so far.
func (s *Batches) Totals(ctx context.Context, ref db.BatchRef) (Totals, error) {
	var t Totals
	err := s.db.Snapshot(ctx, "sum a batch of replays up", func(ctx context.Context, tx pgx.Tx) error {
		b, err := findBatch(ctx, tx, ref)
		if err != nil {
			return err
		}
		t.Counts, err = db.All(ctx, tx, func(row pgx.CollectableRow) (c Count, err error) {
			return c, row.Scan(&c.Outcome, &c.ErrorKind, &c.Identical, &c.Runs)
		}, `SELECT coalesce(r.outcome, ''), r.error_kind, p.identical, count(*) FROM replays p JOIN runs r
			ON r.id = p.run
			WHERE p.batch = $1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`, b.Ref.ID)
		if err != nil {
			return err
		}
		t.Models, err = db.All(ctx, tx, func(row pgx.CollectableRow) (m runs.ModelUsage, err error) {
			return m, row.Scan(&m.Vendor, &m.Model, &m.Input, &m.CachedInput, &m.CacheWrite, &m.Output, &m.Calls)
		}, `SELECT l.vendor, l.model, sum(l.input_tokens)::bigint, sum(l.cached_input_tokens)::bigint,
			sum(l.cache_write_tokens)::bigint,
				sum(l.output_tokens)::bigint, count(*)
			FROM replays p JOIN usage_ledger l ON l.run = p.run WHERE p.batch = $1 GROUP BY 1, 2
			ORDER BY 1, 2`, b.Ref.ID)
		if err != nil {
			return err
		}
		t.Different, err = db.All(ctx, tx, pgx.RowTo[string],
			`SELECT run FROM replays WHERE batch = $1 AND NOT identical ORDER BY run LIMIT 100`, b.Ref.ID)
		return err
	})
	return t, err
}
