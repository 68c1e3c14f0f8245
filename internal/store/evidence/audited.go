package evidence

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Filter picks conversations; zero fields do not filter.
type Filter struct {
	Tenant, Conversation string
}

// Audited is a conversation to verify.
type Audited struct {
	// Key orders the conversations of a store by their creation; it is the argument after of Store.After.
	Key int64
	Ref db.ConversationRef
}

// After returns at most limit (1 to 1000) conversations that a filter picks, of all tenants, in the order of their
// creation, starting after the key.
func (s *Store) After(ctx context.Context, f Filter, key int64,
	limit int,
) ([]Audited, error) {
	var list []Audited
	err := s.db.Read(ctx, "list conversations", func(ctx context.Context, q db.Querier) (err error) {
		list, err = db.All(ctx, q, func(row pgx.CollectableRow) (c Audited, err error) {
			return c, row.Scan(&c.Key, &c.Ref.Tenant, &c.Ref.ID)
		}, `SELECT cid, tenant, id FROM conversations WHERE cid > $1 AND ($2 = '' OR tenant = $2) AND ($3 = ''
			OR id = $3)
			ORDER BY cid LIMIT $4`, key, db.CleanText(f.Tenant), db.CleanText(f.Conversation), db.ClampLimit(limit))
		return err
	})
	return list, err
}

// Count counts the conversations that a filter picks.
func (s *Store) Count(ctx context.Context, f Filter) (int, error) {
	var n int
	err := s.db.Read(ctx, "count conversations", func(ctx context.Context, q db.Querier) (err error) {
		n, err = db.One(ctx, q, pgx.RowTo[int],
			`SELECT count(*) FROM conversations WHERE ($1 = '' OR tenant = $1) AND ($2 = '' OR id = $2)`,
			db.CleanText(f.Tenant), db.CleanText(f.Conversation))
		return err
	})
	return n, err
}
