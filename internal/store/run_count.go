package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// CountRuns counts a tenant's runs by outcome, "" being those that have none yet. Cursor and Limit of the filter
// do not count.
func (s *Store) CountRuns(ctx context.Context, tenant string, f RunFilter) (map[Outcome]int, error) {
	type group struct {
		outcome Outcome
		n       int
	}
	var groups []group
	err := s.read(ctx, "count runs", func(ctx context.Context, q querier) (err error) {
		groups, err = all(ctx, q, func(row pgx.CollectableRow) (g group, err error) {
			return g, row.Scan(&g.outcome, &g.n)
		}, `SELECT coalesce(r.outcome, ''), count(*) FROM runs r JOIN conversations c ON c.cid = r.cid WHERE `+
			runFilter+` GROUP BY 1`,
			f.args(tenant)...)
		return err
	})
	counts := make(map[Outcome]int, len(groups))
	for _, g := range groups {
		counts[g.outcome] = g.n
	}
	return counts, err
}
