package modelcalls

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Entry is one row of the table usage_ledger.
type Entry struct {
	Run           string
	Call, Attempt int
	Vendor, Model string
	State         State
	ErrorKind     pipeline.ErrorKind
	RequestID     string
	Input         int64
	CachedInput   int64
	CacheWrite    int64
	Output        int64
	// Request and Answer are artifacts, "": not stored.
	Request, Answer   string
	Started, Finished time.Time
}

const ledgerColumns = `l.run, l.call, l.attempt, l.vendor, l.model, l.state, l.error_kind, l.request_id, l.input_tokens,
	l.cached_input_tokens, l.cache_write_tokens, l.output_tokens, l.request_sha256, l.answer_sha256, l.started_at,
	l.finished_at`

func scanEntry(row pgx.CollectableRow) (Entry, error) {
	var e Entry
	var request, answer []byte
	var finished *time.Time
	err := row.Scan(&e.Run, &e.Call, &e.Attempt, &e.Vendor, &e.Model, &e.State, &e.ErrorKind, &e.RequestID, &e.Input,
		&e.CachedInput, &e.CacheWrite, &e.Output, &request, &answer, &e.Started, &finished)
	e.Request, e.Answer, e.Finished = hex.EncodeToString(request), hex.EncodeToString(answer),
		db.Or(finished, time.Time{})
	return e, err
}

// List returns a run's model calls in order.
func (s *Store) List(ctx context.Context, ref db.RunRef) ([]Entry, error) {
	var list []Entry
	err := s.db.Snapshot(ctx, "read a run's model calls", func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := runs.Owns(ctx, tx, ref); err != nil {
			return err
		}
		list, err = db.All(ctx, tx, scanEntry,
			`SELECT `+ledgerColumns+` FROM usage_ledger l WHERE l.run = $1 ORDER BY l.call, l.attempt`, ref.ID)
		return err
	})
	return list, err
}
