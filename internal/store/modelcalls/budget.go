package modelcalls

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Budgets bound what is spent, in tokens. Every request is counted from the moment it is booked: first with its
// estimate, and with what the vendor billed once that is known. A request that failed, was cancelled or whose worker
// died counts with its estimate for good, since it may have been billed. Requests that might spend more than is left
// are not booked. The tenant's row is locked while one of them is judged, so that requests at the same time do not each
// take what is left: together they spend no more than the budget, as far as their estimates are right.
type Budgets struct {
	// Run bounds all requests of the run, 0: no bound.
	Run int64
	// Tenant bounds all requests of the tenant since Since, 0: no bound.
	Tenant int64
	Since  time.Time
}

// BudgetError reports a request that was not booked since it might spend more than a budget has left. All figures are
// in tokens.
type BudgetError struct {
	// OfTenant is set for the tenant's budget, and not set for the run's.
	OfTenant              bool
	Limit, Used, Estimate int64
}

func (e *BudgetError) Error() string {
	whose := "the run's requests have"
	if e.OfTenant {
		whose = "the tenant's runs have today"
	}
	return fmt.Sprintf("%s used or reserved %d of %d tokens, and this one may take %d", whose, e.Used, e.Limit,
		e.Estimate)
}

// counted is what a row l of usage_ledger counts against budgets.
const counted = `l.lost_tokens + CASE
	WHEN l.state = 'complete' AND ` + billed + ` > 0 THEN ` + billed + `
	ELSE greatest(` + billed + `, l.reserved_tokens) END`

const billed = `(l.input_tokens + l.cached_input_tokens + l.cache_write_tokens + l.output_tokens)`

// reserve returns a *BudgetError if a request does not fit in what is left. The transaction is one of seals.ChangeRun,
// so that the run's other requests wait, and keeps the tenant's row locked until the request is booked.
func reserve(ctx context.Context, tx pgx.Tx, ref db.RunRef, call Call) error {
	if b := call.Budgets; b.Run > 0 {
		used, err := db.One(ctx, tx, pgx.RowTo[int64], `SELECT coalesce(sum(`+counted+`), 0)::bigint
			FROM usage_ledger l WHERE l.run = $1`, db.CleanText(ref.ID))
		if err != nil {
			return err
		}
		if used+call.Estimate > b.Run {
			return &BudgetError{Limit: b.Run, Used: used, Estimate: call.Estimate}
		}
	}
	b := call.Budgets
	if b.Tenant <= 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, ref.Tenant); err != nil {
		return err
	}
	used, err := tokensUsed(ctx, tx, ref.Tenant, b.Since)
	if err == nil && used+call.Estimate > b.Tenant {
		err = &BudgetError{OfTenant: true, Limit: b.Tenant, Used: used, Estimate: call.Estimate}
	}
	return err
}

// TokensUsed returns the tokens that a tenant's requests since a time count against its budget.
func (s *Store) TokensUsed(ctx context.Context, tenant string, since time.Time) (int64, error) {
	var n int64
	err := s.db.Read(ctx, "sum a tenant's tokens", func(ctx context.Context, q db.Querier) (err error) {
		n, err = tokensUsed(ctx, q, tenant, since)
		return err
	})
	return n, err
}

func tokensUsed(ctx context.Context, q db.Querier, tenant string, since time.Time) (int64, error) {
	return db.One(ctx, q, pgx.RowTo[int64], `SELECT coalesce(sum(`+counted+`), 0)::bigint
		FROM usage_ledger l WHERE l.tenant = $1 AND l.started_at >= $2`, tenant, since)
}
