package runs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/db"
	"precis/pipeline"
)

// Group sums the runs of one outcome and error kind.
type Group struct {
	// Outcome is "" for unfinished runs.
	Outcome   precis.Outcome
	ErrorKind pipeline.ErrorKind
	Runs      int
	// Digests counts runs whose summary is a digest, Undone runs whose marker was undone.
	Digests, Undone int
	// Median and P95 are of the time from start to end, zero if no run has both.
	Median, P95 time.Duration
	Usage       Usage
	// Models are the calls by model.
	Models []ModelUsage
}

// Summarize sums a tenant's runs by outcome and error kind, ordered by both. It ignores Cursor and Limit of the filter.
func (s *Store) Summarize(ctx context.Context, tenant string, f Filter) ([]Group, error) {
	var groups []Group
	err := s.db.Read(ctx, "sum up runs", func(ctx context.Context, q db.Querier) (err error) {
		groups, err = db.All(ctx, q, scanRunGroup, runSummary, f.args(tenant)...)
		return err
	})
	return groups, err
}

// runSummary reads the ledger once, for the calls of the selected runs by group and model.
const runSummary = `WITH picked AS MATERIALIZED (
		SELECT r.id, coalesce(r.outcome, '') AS outcome, r.error_kind, r.digest, coalesce(m.status = 'undone',
		false) AS undone,
			extract(epoch FROM r.finished_at - r.started_at)::float8 AS seconds
		FROM runs r JOIN conversations c ON c.cid = r.cid LEFT JOIN markers m ON m.run = r.id WHERE ` + runFilter + `
	), booked AS (
		SELECT p.outcome, p.error_kind, l.vendor, l.model, sum(l.input_tokens)::bigint AS input,
		sum(l.cached_input_tokens)::bigint AS cached,
			sum(l.cache_write_tokens)::bigint AS written, sum(l.output_tokens)::bigint AS output, count(*) AS calls,
			count(*) FILTER (WHERE l.state = 'started' AND (p.outcome <> '' OR EXISTS (
				SELECT FROM usage_ledger later WHERE later.run = l.run
				AND (later.call, later.attempt) > (l.call, l.attempt)
			))) AS lost
		FROM picked p JOIN usage_ledger l ON l.run = p.id GROUP BY 1, 2, 3, 4
	)
	SELECT g.outcome, g.error_kind, g.runs, g.digests, g.undone, g.median, g.p95, u.input, u.cached, u.written,
	u.output, u.calls, u.lost, u.list
	FROM (
		SELECT outcome, error_kind, count(*) AS runs, count(*) FILTER (WHERE digest) AS digests,
		count(*) FILTER (WHERE undone) AS undone,
			coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), 0) AS median,
			coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds), 0) AS p95
		FROM picked GROUP BY 1, 2
	) g CROSS JOIN LATERAL (
		SELECT coalesce(sum(input), 0)::bigint AS input, coalesce(sum(cached), 0)::bigint AS cached,
		coalesce(sum(written), 0)::bigint AS written,
			coalesce(sum(output), 0)::bigint AS output, coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(lost),
			0)::bigint AS lost,
			coalesce(jsonb_agg(booked ORDER BY vendor, model), '[]') AS list
		FROM booked WHERE booked.outcome = g.outcome AND booked.error_kind = g.error_kind
	) u ORDER BY 1, 2`

func scanRunGroup(row pgx.CollectableRow) (Group, error) {
	var g Group
	var median, p95 float64
	err := row.Scan(&g.Outcome, &g.ErrorKind, &g.Runs, &g.Digests, &g.Undone, &median, &p95, &g.Usage.Input,
		&g.Usage.CachedInput,
		&g.Usage.CacheWrite, &g.Usage.Output, &g.Usage.Calls, &g.Usage.Lost, &g.Models)
	g.Median, g.P95 = time.Duration(median*float64(time.Second)), time.Duration(p95*float64(time.Second))
	return g, err
}
