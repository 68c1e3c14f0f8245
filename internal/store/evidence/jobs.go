package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Job is the progress of a job over many conversations.
type Job struct {
	// Name identifies the job and what it works on.
	Name string
	// Key is the Audited.Key of the last conversation that is done, 0: none.
	Key int64
	// Progress is what the job has found so far, a JSON object.
	Progress json.RawMessage
	Started  time.Time
}

// Get returns an interrupted job, ErrNotFound if there is none of that name.
func (s *Jobs) Get(ctx context.Context, name string) (Job, error) {
	j := Job{Name: name}
	err := s.db.Read(ctx, "read a job", func(ctx context.Context, q db.Querier) error {
		return q.QueryRow(ctx, `SELECT cid, progress, started_at FROM audit_jobs WHERE name = $1`, db.CleanText(name)).
			Scan(&j.Key, (*[]byte)(&j.Progress), &j.Started)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = db.NotFoundf("job %q", name)
	}
	return j, err
}

// Keep stores the progress of a job.
func (s *Jobs) Keep(ctx context.Context, j Job) error {
	progress, err := db.CleanJSON(j.Progress)
	if err != nil {
		return db.Failed("keep a job", err)
	}
	return s.db.Write(ctx, "keep a job", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO audit_jobs (name, cid, progress) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET cid = excluded.cid, progress = excluded.progress,
			updated_at = now()`, db.CleanText(j.Name), j.Key, progress)
		return err
	})
}

// End deletes a job that is done. It does nothing if the job does not exist.
func (s *Jobs) End(ctx context.Context, name string) error {
	return s.db.Write(ctx, "end a job", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM audit_jobs WHERE name = $1`, db.CleanText(name))
		return err
	})
}
