package runs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/db"
	"precis/pipeline"
)

// Brief is what a trigger has to know of a run.
type Brief struct {
	ID   string
	Kind pipeline.TriggerKind
	// Prepare says that it parks its summary.
	Prepare   bool
	Outcome   precis.Outcome
	ErrorKind pipeline.ErrorKind
	Reason    string
	// Head is the last message that it worked on, as far as that is known.
	Head int64
	// TokensAfter is of the context that it left, 0: none.
	TokensAfter int
}

const briefColumns = `r.id, r.trigger_kind, r.prepare, coalesce(r.outcome, ''), r.error_kind, r.reason,
	greatest(r.requested_head, r.head_seq), r.tokens_after`

func scanBrief(row pgx.CollectableRow) (b Brief, err error) {
	return b, row.Scan(&b.ID, &b.Kind, &b.Prepare, &b.Outcome, &b.ErrorKind, &b.Reason, &b.Head, &b.TokensAfter)
}

func FindBrief(ctx context.Context, q db.Querier, id string) (*Brief, error) {
	b, err := db.One(ctx, q, scanBrief, `SELECT `+briefColumns+` FROM runs r WHERE r.id = $1`, id)
	return &b, err
}

// Last returns a conversation's newest run that has ended, nil: none has.
func Last(ctx context.Context, q db.Querier, cid int64) (*Brief, error) {
	b, err := db.One(ctx, q, scanBrief, `SELECT `+briefColumns+` FROM runs r
		WHERE r.cid = $1 AND r.outcome IS NOT NULL AND r.replay_of IS NULL
		ORDER BY r.created_at DESC, r.id DESC LIMIT 1`, cid)
	if db.IsNotFound(err) {
		return nil, nil
	}
	return &b, err
}
