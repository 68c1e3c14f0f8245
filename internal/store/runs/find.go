package runs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// ShortID is how much of a run's end a person may give in place of its id, in chars: the last group of a UUID.
const ShortID = 12

// FindByEnd returns the run with an id, or with that end: its last ShortID chars. ErrNotFound when there is none,
// ErrInvalid when there are two.
func (s *Store) FindByEnd(ctx context.Context, tenant, id string) (db.RunRef, error) {
	ref := db.RunRef{Tenant: tenant, ID: id}
	if len(id) != ShortID || !db.GoodID(id, 64) {
		return ref, nil
	}
	var ids []string
	err := s.db.Read(ctx, "find a run", func(ctx context.Context, q db.Querier) (err error) {
		ids, err = db.All(ctx, q, pgx.RowTo[string],
			`SELECT id FROM runs WHERE tenant = $1 AND right(id, 12) = $2 LIMIT 2`, tenant, id)
		return err
	})
	switch {
	case err != nil:
		return ref, err
	case len(ids) > 1:
		return ref, db.Failed("find a run", db.Invalidf("two runs end in %q: give the whole id", id))
	case len(ids) == 1:
		ref.ID = ids[0]
	}
	return ref, nil
}
