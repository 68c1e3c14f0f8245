// Package replays keeps the comparisons of replays with the runs that they repeat, and batches of replays.
package replays

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/contract"
	"precis/internal/store/artifacts"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/pipeline"
)

// Store finds runs to replay and keeps comparisons.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Batches keeps batches of replays.
type Batches struct{ db *db.DB }

// NewBatches returns Batches over an open database.
func NewBatches(d *db.DB) *Batches { return &Batches{db: d} }

// KeepComparison stores the comparison of a replay, and whether the replay was identical; nil for a live replay. Called
// again, it replaces the comparison.
func (s *Store) KeepComparison(ctx context.Context, ref db.RunRef, comparison []byte, identical *bool) error {
	packed := s.db.Pack(comparison)
	return seals.ChangeRun(ctx, s.db, "keep a comparison", ref, func(ctx context.Context, tx seals.Tx) error {
		if _, err := artifacts.Put(ctx, tx, tx.CID, ref.Tenant, contract.ArtifactComparison, packed); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE replays SET comparison_sha256 = $2, identical = $3 WHERE run = $1`, ref.ID,
			packed.Sum[:], identical)
		return err
	})
}

// Filter selects runs to replay. It never selects replays.
type Filter struct {
	// Failed selects runs that failed, Digest runs whose summary is a digest. With neither, all finished runs are
	// selected except cancelled ones.
	Failed bool `json:"failed,omitempty"`
	Digest bool `json:"digest,omitempty"`
	// ErrorKind is the failure of the run or, for a digest, of one of its models.
	ErrorKind pipeline.ErrorKind `json:"error_kind,omitempty"`
	// Conversation selects the runs of one conversation, "": of all.
	Conversation string `json:"conversation,omitempty"`
	// Since and Until bound when the run was requested: from Since on, before Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Effective excludes runs whose replay could not take effect: those with a later run in the conversation, and
	// digests that are no longer active.
	Effective bool `json:"effective,omitempty"`
}

// filterSQL is a Filter in SQL; its parameters are Filter.args.
const filterSQL = ` FROM runs r JOIN conversations c ON c.cid = r.cid
	WHERE r.tenant = $1 AND r.replay_of IS NULL AND c.content_deleted_at IS NULL
	AND r.outcome IS NOT NULL AND r.outcome <> 'cancelled'
	AND (NOT $2 AND NOT $3 OR $2 AND r.outcome = 'failed' OR $3 AND r.digest AND r.outcome IN ('applied', 'prepared'))
	AND ($4 = '' OR r.error_kind = $4 OR r.digest AND EXISTS (
		SELECT FROM run_attempts t WHERE t.run = r.id AND t.stage = 'summarise' AND t.error_kind = $4))
	AND ($5 = '' OR c.id = $5)
	AND ($6::timestamptz IS NULL OR r.created_at >= $6)
	AND ($7::timestamptz IS NULL OR r.created_at < $7)
	AND (NOT $8 OR CASE WHEN r.outcome IN ('applied', 'prepared') THEN EXISTS (
			SELECT FROM markers m WHERE m.run = r.id AND m.id = c.active_marker)
		ELSE NOT EXISTS (
			SELECT FROM runs n LEFT JOIN markers m ON m.run = n.id
			WHERE n.cid = r.cid AND (n.created_at, n.id) > (r.created_at, r.id)
			AND (m.id IS NOT NULL OR n.replay_of IS NULL AND (n.outcome IS NULL OR n.outcome = 'failed'))) END)`

func (f Filter) args(tenant string) []any {
	return []any{
		tenant, f.Failed, f.Digest, string(f.ErrorKind), db.CleanText(f.Conversation), db.TimeOrNil(f.Since),
		db.TimeOrNil(f.Until), f.Effective,
	}
}

// Replayable is a run that a filter selected.
type Replayable struct {
	Run          db.RunRef
	Conversation string
	Outcome      precis.Outcome
	ErrorKind    pipeline.ErrorKind
	Digest       bool
	Created      time.Time
}

// List returns at most limit (1 to 1000) of the runs that a filter selects, oldest first. next is "" after the last
// page.
func (s *Store) List(ctx context.Context, tenant string, f Filter, after string,
	limit int,
) (list []Replayable, next string, err error) {
	from, err := db.ParseCursor(after)
	if err != nil {
		return nil, "", db.Failed("look for runs to repeat", err)
	}
	limit = db.ClampLimit(limit)
	err = s.db.Read(ctx, "look for runs to repeat", func(ctx context.Context, q db.Querier) (err error) {
		list, err = db.All(ctx, q, func(row pgx.CollectableRow) (r Replayable, err error) {
			return r, row.Scan(&r.Run.ID, &r.Run.Tenant, &r.Conversation, &r.Outcome, &r.ErrorKind, &r.Digest,
				&r.Created)
		}, `SELECT r.id, r.tenant, c.id, r.outcome, r.error_kind, r.digest, r.created_at`+filterSQL+`
			AND ($9::timestamptz IS NULL OR (r.created_at, r.id) > ($9, $10))
			ORDER BY r.created_at, r.id LIMIT $11`, append(f.args(tenant), from.At, from.ID, limit+1)...)
		return err
	})
	if len(list) > limit {
		list = list[:limit]
		next = db.MakeCursor(list[limit-1].Created, list[limit-1].Run.ID)
	}
	return list, next, err
}

// Count counts the runs that a filter selects.
func (s *Store) Count(ctx context.Context, tenant string, f Filter) (int, error) {
	var n int
	err := s.db.Read(ctx, "count runs to repeat", func(ctx context.Context, q db.Querier) (err error) {
		n, err = db.One(ctx, q, pgx.RowTo[int], `SELECT count(*)`+filterSQL, f.args(tenant)...)
		return err
	})
	return n, err
}
