package runs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// ShortID is the length of a run's short id: the last group of its UUID.
const ShortID = 12

// FindByEnd resolves a run's short id, its last ShortID characters, to the run. Any other id is returned as it is. It
// returns ErrInvalid if two runs have the short id.
func (s *Store) FindByEnd(ctx context.Context, tenant, id string) (db.RunRef, error) {
	ref := db.RunRef{Tenant: tenant, ID: id}
	if len(id) != ShortID || !db.PossibleID(id, 64) {
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
		return ref, db.Failed("find a run", db.Invalidf("two runs end in %q: use the full id", id))
	case len(ids) == 1:
		ref.ID = ids[0]
	}
	return ref, nil
}
