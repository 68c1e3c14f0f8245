package modelcalls

import (
	"context"
	"crypto/sha256"

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
	return s.oneAnswer(ctx, q, ref, `SELECT answer_sha256 FROM usage_ledger
		WHERE tenant = $1 AND run = $2 AND call = $3 AND state = 'complete' ORDER BY attempt
		LIMIT 1`, ref.Tenant, db.CleanText(ref.ID), call)
}

// AnswerTo returns the run's answer to the same bytes from the same model in another call, ErrNotFound if there is
// none. A run sends no request twice that was answered.
func (s *Store) AnswerTo(ctx context.Context, ref db.RunRef, call Call) ([]byte, error) {
	sum := sha256.Sum256(call.Request)
	var data []byte
	err := s.db.Read(ctx, "look for the answer to a request", func(ctx context.Context, q db.Querier) (err error) {
		data, err = s.oneAnswer(ctx, q, ref, `SELECT answer_sha256 FROM usage_ledger
			WHERE tenant = $1 AND run = $2 AND request_sha256 = $3 AND vendor = $4 AND model = $5
			AND state = 'complete' AND call <> $6 ORDER BY call, attempt LIMIT 1`, ref.Tenant, db.CleanText(ref.ID),
			sum[:], db.CleanText(call.Vendor), db.CleanText(call.Model), call.Call)
		return err
	})
	return data, err
}

// oneAnswer returns the content of the answer whose hash a query selects.
func (s *Store) oneAnswer(ctx context.Context, q db.Querier, ref db.RunRef, query string, args ...any) ([]byte, error) {
	sum, err := db.One(ctx, q, pgx.RowTo[[]byte], query, args...)
	if err != nil {
		return nil, err
	}
	data, err := artifacts.Data(ctx, q, ref.Tenant, db.Hash(sum))
	if err != nil {
		return nil, err
	}
	return s.db.Unpack(db.Hash(sum), data)
}
