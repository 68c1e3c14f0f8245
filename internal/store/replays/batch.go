package replays

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/db"
)

// Batch is many replays that were requested together.
type Batch struct {
	Ref        db.BatchRef
	WorkflowID string
	// Request is the request, a JSON object.
	Request json.RawMessage
	// Total is how many runs matched when the batch was created.
	Total     int
	Cancelled bool
	// Created is when the batch was created, Finished when its last replay had ended; zero: not yet.
	Created, Finished time.Time
}

// Create creates a batch. request is a JSON object, total how many runs match now.
func (s *Batches) Create(ctx context.Context, tenant string, request json.RawMessage,
	total int,
) (Batch, error) {
	ref := db.BatchRef{Tenant: tenant, ID: db.NewID()}
	request, err := db.CleanJSON(request)
	if err != nil {
		return Batch{}, db.Failed("make a batch of replays", err)
	}
	var b Batch
	err = s.db.Write(ctx, "make a batch of replays", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := db.One(ctx, tx, pgx.RowTo[string], `SELECT id FROM tenants WHERE id = $1`, tenant); err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		_, err := tx.Exec(ctx, `INSERT INTO replay_batches (id, tenant, workflow_id, request, total)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO NOTHING`, ref.ID, tenant, contract.BatchWorkflowID(ref.Tenant, ref.ID), request, total)
		if err == nil {
			b, err = findBatch(ctx, tx, ref)
		}
		return err
	})
	return b, err
}

func findBatch(ctx context.Context, q db.Querier, ref db.BatchRef) (Batch, error) {
	b, err := db.One(ctx, q, func(row pgx.CollectableRow) (b Batch, err error) {
		var finished *time.Time
		err = row.Scan(&b.Ref.ID, &b.Ref.Tenant, &b.WorkflowID, (*[]byte)(&b.Request), &b.Total, &b.Cancelled,
			&b.Created, &finished)
		b.Finished = db.Or(finished, time.Time{})
		// Earlier releases stored ids that Temporal does not accept.
		b.WorkflowID = contract.BatchWorkflowID(b.Ref.Tenant, b.Ref.ID)
		return b, err
	}, `SELECT id, tenant, workflow_id, request, total, cancelled, created_at, finished_at FROM replay_batches
		WHERE tenant = $1 AND id = $2`, ref.Tenant, db.CleanText(ref.ID))
	if err != nil {
		return b, fmt.Errorf("batch %q: %w", ref.ID, err)
	}
	return b, nil
}

// Get reads a batch.
func (s *Batches) Get(ctx context.Context, ref db.BatchRef) (Batch, error) {
	var b Batch
	err := s.db.Read(ctx, "read a batch of replays", func(ctx context.Context, q db.Querier) (err error) {
		b, err = findBatch(ctx, q, ref)
		return err
	})
	return b, err
}

// Finish records that a batch has finished. Called again, it changes nothing.
func (s *Batches) Finish(ctx context.Context, ref db.BatchRef, cancelled bool) (Batch, error) {
	var b Batch
	err := s.db.Write(ctx, "finish a batch of replays", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE replay_batches SET finished_at = clock_timestamp(), cancelled = $3
			WHERE tenant = $1 AND id = $2 AND finished_at IS NULL`, ref.Tenant, db.CleanText(ref.ID), cancelled)
		if err == nil {
			b, err = findBatch(ctx, tx, ref)
		}
		return err
	})
	return b, err
}
