package breakers

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/pipeline"
)

// enough is how many other tenants' breakers have to be open for a model, before it counts as down for a tenant whose
// own is closed.
const enough = 2

// OfModel returns the key of a tenant's breaker for a model. credential names the key that the vendor is called with,
// without giving it away.
func OfModel(tenant, vendor, model, credential string) Key {
	return Key{
		scope: "model", tenant: db.CleanText(tenant),
		name: db.CleanText(vendor + "/" + model + ", credential " + credential),
	}
}

// Call is a request to a model that a run has sent.
type Call struct {
	Run db.RunRef
	// Call and Attempt are those of the ledger.
	Call, Attempt int
}

// counts are the failures that a breaker of a model counts. Rate limits and overload pass by themselves, and a request
// that is refused for what it is says nothing about the model.
var counts = []pipeline.ErrorKind{
	pipeline.Auth, pipeline.Quota, pipeline.ServerError, pipeline.Network, pipeline.Timeout,
}

// ofVendor are those of them that may lie with the vendor alone.
var ofVendor = []string{
	string(pipeline.Auth), string(pipeline.Quota), string(pipeline.ServerError), string(pipeline.Network),
}

// Blocked reports whether a tenant's automatic runs must not ask the model now.
func (s *Store) Blocked(ctx context.Context, key Key, cooldown time.Duration) (bool, error) {
	var blocked bool
	err := s.db.Read(ctx, "read the breakers of a model", func(ctx context.Context, q db.Querier) (err error) {
		blocked, err = db.One(ctx, q, pgx.RowTo[bool], `SELECT coalesce(bool_or(tenant = $2), false)
			OR count(*) FILTER (WHERE tenant <> $2 AND shared AND error_kind = ANY($4)) >= $5
			FROM breakers WHERE scope = 'model' AND name = $1 AND opened_at IS NOT NULL
			AND greatest(opened_at, probe_at) + $3 > clock_timestamp()`,
			key.name, key.tenant, cooldown, ofVendor, enough)
		return err
	})
	return blocked, err
}

// Failed counts a call that failed, unless an earlier attempt at the call was counted or the kind speaks neither
// against the model nor against its vendor. The breaker opens as Trip says.
func (s *Store) Failed(ctx context.Context, key Key, call Call, kind pipeline.ErrorKind, reason string,
	failures int,
) error {
	if !slices.Contains(counts, kind) {
		return nil
	}
	counted := make([]string, len(counts))
	for i, k := range counts {
		counted[i] = string(k)
	}
	return s.db.Write(ctx, "count a failed call", func(ctx context.Context, tx pgx.Tx) error {
		again, err := db.One(ctx, tx, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM usage_ledger WHERE tenant = $1
			AND run = $2 AND call = $3 AND attempt < $4 AND error_kind = ANY($5))`, call.Run.Tenant,
			db.CleanText(call.Run.ID), call.Call, call.Attempt, counted)
		if err != nil || again {
			return err
		}
		_, err = trip(ctx, tx, key, kind, reason, failures)
		return err
	})
}

// Answered closes a tenant's breaker for a model that has answered. The failures of other tenants say nothing about the
// vendor then.
func (s *Store) Answered(ctx context.Context, key Key) error {
	return s.db.Write(ctx, "close the breaker of a model", func(ctx context.Context, tx pgx.Tx) error {
		if err := reset(ctx, tx, key); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE breakers SET shared = false
			WHERE scope = 'model' AND name = $1 AND tenant <> $2 AND shared`, key.name, key.tenant)
		return err
	})
}
