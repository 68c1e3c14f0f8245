package modelcalls

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/internal/store/runs"
)

// UsageGroup is a sum over model calls.
type UsageGroup struct {
	// Key is the conversation, "vendor/model", the day (UTC, 2006-01-02) or the tenant.
	Key                                    string
	Input, CachedInput, CacheWrite, Output int64
	Calls                                  int
	// Failed counts calls that ended without a usable answer. Lost counts calls that never ended although their run
	// did, or that were tried again. They may have been billed, and their tokens are not known.
	Failed, Lost int
	// Models are the same calls by model.
	Models []runs.ModelUsage
}

// The groups of UsageBy.
var usageGroups = map[string]string{
	"tenant":       `l.tenant`,
	"conversation": `c.id`,
	"model":        `l.vendor || '/' || l.model`,
	"day":          `to_char(l.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
}

// UsageBy sums a tenant's model calls since a time by "tenant", "conversation", "model" or "day".
func (s *Store) UsageBy(ctx context.Context, tenant, group string, since time.Time) ([]UsageGroup, error) {
	key, ok := usageGroups[group]
	if !ok {
		return nil, db.Failed("sum usage", db.Invalidf("group %q: must be tenant, conversation, model or day", group))
	}
	type row struct {
		key          string
		failed, lost int
		runs.ModelUsage
	}
	var rows []row
	err := s.db.Read(ctx, "sum usage", func(ctx context.Context, q db.Querier) (err error) {
		rows, err = db.All(ctx, q, func(r pgx.CollectableRow) (u row, err error) {
			return u, r.Scan(&u.key, &u.Vendor, &u.Model, &u.Input, &u.CachedInput, &u.CacheWrite, &u.Output, &u.Calls,
				&u.failed, &u.lost)
		}, `SELECT `+key+` AS key, l.vendor, l.model, sum(l.input_tokens)::bigint, sum(l.cached_input_tokens)::bigint,
				sum(l.cache_write_tokens)::bigint, sum(l.output_tokens)::bigint, count(*),
				count(*) FILTER (WHERE l.state = 'failed'),
				count(*) FILTER (WHERE l.state = 'started' AND (r.outcome IS NOT NULL OR EXISTS (
					SELECT FROM usage_ledger later WHERE later.run = l.run
					AND (later.call, later.attempt) > (l.call, l.attempt)
				)))
			FROM usage_ledger l JOIN conversations c ON c.cid = l.cid JOIN runs r ON r.id = l.run
			WHERE l.tenant = $1 AND l.started_at >= $2
			GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`, tenant, since)
		return err
	})
	var list []UsageGroup
	for _, r := range rows {
		if n := len(list); n == 0 || list[n-1].Key != r.key {
			list = append(list, UsageGroup{Key: r.key})
		}
		g := &list[len(list)-1]
		g.Input += r.Input
		g.CachedInput += r.CachedInput
		g.CacheWrite += r.CacheWrite
		g.Output += r.Output
		g.Calls += r.Calls
		g.Failed += r.failed
		g.Lost += r.lost
		g.Models = append(g.Models, r.ModelUsage)
	}
	return list, err
}
