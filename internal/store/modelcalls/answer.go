package modelcalls

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/artifacts"
	"precis/internal/store/db"
)

// Answer returns the answer of any finished attempt at a call, ErrNotFound if there is none.
func (s *Store) Answer(ctx context.Context, ref db.RunRef, call int) ([]byte, error) {
	var data []byte
	err := s.db.Read(ctx, "look for a model's answer", func(ctx context.Context, q db.Querier) (err error) {
		data, err = s.answer(ctx, q, ref, call)
		return err
	})
	return data, err
}

func (s *Store) answer(ctx context.Context, q db.Querier, ref db.RunRef, call int) ([]byte, error) {
	sum, err := db.One(ctx, q, pgx.RowTo[[]byte], `SELECT answer_sha256 FROM usage_ledger
		WHERE tenant = $1 AND run = $2 AND call = $3 AND state = 'complete' ORDER BY attempt
		LIMIT 1`, ref.Tenant, db.CleanText(ref.ID), call)
	if err != nil {
		return nil, err
	}
	data, err := artifacts.Data(ctx, q, ref.Tenant, db.Hash(sum))
	if err != nil {
		return nil, err
	}
	return s.db.Unpack(db.Hash(sum), data)
}
