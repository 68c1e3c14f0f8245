package runs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/db"
	"precis/pipeline"
)

// Brief is the part of a run that a trigger needs.
type Brief struct {
	ID   string
	Kind pipeline.TriggerKind
	// Prepare is set if the run only prepares its summary.
	Prepare   bool
	Outcome   precis.Outcome
	ErrorKind pipeline.ErrorKind
	Reason    string
	// Head is the last message that the run worked on, or the head when it was requested if that is later.
	Head int64
	// TokensAfter is the size of the context that the run produced, 0: none.
	TokensAfter int
}

const briefColumns = `r.id, r.trigger_kind, r.prepare, coalesce(r.outcome, ''), r.error_kind, r.reason,
	greatest(r.requested_head, r.head_seq), r.tokens_after`

func scanBrief(row pgx.CollectableRow) (b Brief, err error) {
	return b, row.Scan(&b.ID, &b.Kind, &b.Prepare, &b.Outcome, &b.ErrorKind, &b.Reason, &b.Head, &b.TokensAfter)
}

// FindBrief reads the Brief of a run.
func FindBrief(ctx context.Context, q db.Querier, id string) (*Brief, error) {
	b, err := db.One(ctx, q, scanBrief, `SELECT `+briefColumns+` FROM runs r WHERE r.id = $1`, id)
	return &b, err
}

// Last returns a conversation's newest finished run, except replays, or nil.
func Last(ctx context.Context, q db.Querier, cid int64) (*Brief, error) {
	b, err := db.One(ctx, q, scanBrief, `SELECT `+briefColumns+` FROM runs r
		WHERE r.cid = $1 AND r.outcome IS NOT NULL AND r.replay_of IS NULL
		ORDER BY r.created_at DESC, r.id DESC LIMIT 1`, cid)
	if db.IsNotFound(err) {
		return nil, nil
	}
	return &b, err
}
