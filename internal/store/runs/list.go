package runs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/db"
	"precis/pipeline"
)

// Filter selects runs; zero fields do not filter.
type Filter struct {
	Conversation string
	Outcome      precis.Outcome
	// Unfinished selects runs without an outcome.
	Unfinished bool
	ErrorKind  pipeline.ErrorKind
	Digest     *bool
	Trigger    pipeline.TriggerKind
	// Summarizer selects runs whose summary it wrote.
	Summarizer string
	// ReplayOf selects replays of a run.
	ReplayOf string
	// Compactions excludes replays that did not take effect.
	Compactions bool
	// Since and Until bound Created: from Since on, before Until.
	Since, Until time.Time
	// Cursor is "" for the first page, and next of the page before for the others.
	Cursor string
	// Limit is the page size, 1 to 1000; 0: 100.
	Limit int
}

// List returns a tenant's runs, newest first, without their attempts. next is "" after the last page.
func (s *Store) List(ctx context.Context, tenant string, f Filter) (list []Run, next string, err error) {
	after, err := db.ParseCursor(f.Cursor)
	if err != nil {
		return nil, "", db.Failed("list runs", err)
	}
	limit := db.ClampLimit(f.Limit)
	err = s.db.Read(ctx, "list runs", func(ctx context.Context, q db.Querier) (err error) {
		list, err = db.All(ctx, q, scanRun, `SELECT `+runColumns+runJoins+` WHERE `+runFilter+`
				AND ($13::timestamptz IS NULL OR (r.created_at, r.id) < ($13, $14))
			ORDER BY r.created_at DESC, r.id DESC LIMIT $15`, append(f.args(tenant), after.At, after.ID, limit+1)...)
		return err
	})
	if len(list) > limit {
		list = list[:limit]
		next = db.MakeCursor(list[limit-1].Created, list[limit-1].Ref.ID)
	}
	return list, next, err
}

// runFilter is a Filter in SQL; its parameters are Filter.args.
const runFilter = `r.tenant = $1
	AND ($2 = '' OR c.id = $2)
	AND ($3 = '' OR r.outcome = $3)
	AND (NOT $4 OR r.outcome IS NULL)
	AND ($5 = '' OR r.error_kind = $5)
	AND ($6::boolean IS NULL OR r.digest = $6)
	AND ($7::timestamptz IS NULL OR r.created_at >= $7)
	AND ($8::timestamptz IS NULL OR r.created_at < $8)
	AND ($9 = '' OR r.trigger_kind = $9)
	AND ($10 = '' OR r.summarizer = $10)
	AND ($11 = '' OR r.replay_of = $11)
	AND (NOT $12 OR r.replay_of IS NULL OR EXISTS (SELECT FROM markers took WHERE took.run = r.id))`

func (f Filter) args(tenant string) []any {
	return []any{
		tenant, db.CleanText(f.Conversation), string(f.Outcome), f.Unfinished, string(f.ErrorKind), f.Digest,
		db.TimeOrNil(f.Since), db.TimeOrNil(f.Until), string(f.Trigger), db.CleanText(f.Summarizer),
		db.CleanText(f.ReplayOf), f.Compactions,
	}
}

// Count counts a tenant's runs by outcome, "" for unfinished ones. It ignores Cursor and Limit of the filter.
func (s *Store) Count(ctx context.Context, tenant string, f Filter) (map[precis.Outcome]int, error) {
	type group struct {
		outcome precis.Outcome
		n       int
	}
	var groups []group
	err := s.db.Read(ctx, "count runs", func(ctx context.Context, q db.Querier) (err error) {
		groups, err = db.All(ctx, q, func(row pgx.CollectableRow) (g group, err error) {
			return g, row.Scan(&g.outcome, &g.n)
		}, `SELECT coalesce(r.outcome, ''), count(*) FROM runs r JOIN conversations c ON c.cid = r.cid WHERE `+
			runFilter+` GROUP BY 1`,
			f.args(tenant)...)
		return err
	})
	counts := make(map[precis.Outcome]int, len(groups))
	for _, g := range groups {
		counts[g.outcome] = g.n
	}
	return counts, err
}
