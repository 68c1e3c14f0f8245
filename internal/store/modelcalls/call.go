// Package modelcalls keeps the ledger: every request to a model, booked before it is sent, with its answer and its
// tokens.
package modelcalls

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/artifacts"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/pipeline"
)

// Store books and reads model calls.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Call identifies one request to a model by the run's activity call and the attempt at it.
type Call struct {
	// Call and Attempt are those of the runs.Attempt.
	Call, Attempt int
	Vendor, Model string
	// Request is what is sent, nil: not stored.
	Request []byte
	// Estimate is what the request may send and receive at most, in tokens: an estimate of its input and the output
	// that it is allowed. It counts against the budgets until the real figures are known, and for good where they never
	// are.
	Estimate int64
	// Budgets bound the request.
	Budgets Budgets
}

// Result is the result of a request. Token counts that are known are also set for a failed request, since they are
// billed.
type Result struct {
	// Tokens. Input does not count CachedInput and CacheWrite.
	Input, CachedInput, CacheWrite, Output int64
	// Answer is stored for the next attempt at the call, and for audit. Nil: the call failed.
	Answer []byte
	// ErrorKind is the kind of failure, "" if the call succeeded.
	ErrorKind pipeline.ErrorKind
	// RequestID is the vendor's.
	RequestID string
}

// bookedUnder is the account of every model call. Precis calls models for compactions only.
const bookedUnder = "/compact"

// State is the state of a request to a model.
type State string

// The states.
const (
	// Started: the request was booked. If its run has ended or it was tried again, its answer is lost and may have been
	// billed.
	Started  State = "started"
	Complete State = "complete"
	Failed   State = "failed"
)

// Begin books a request to a model before it is sent, so that the ledger also has requests whose answer was lost, and
// reserves its tokens in the budgets. If an earlier attempt at the same call has an answer, Begin books nothing and
// returns that answer, since it was billed. If answer is nil, the caller must send the request. The error is a
// *BudgetError if the request might spend more than a budget has left, and db.ErrRunEnded if the run has ended; then
// nothing is booked.
func (s *Store) Begin(ctx context.Context, ref db.RunRef, call Call) (answer []byte, err error) {
	var request *db.Packed
	if call.Request != nil {
		p := s.db.Pack(call.Request)
		request = &p
	}
	err = seals.ChangeRun(ctx, s.db, "book a model call", ref, func(ctx context.Context, tx seals.Tx) error {
		var err error
		answer, err = s.answer(ctx, tx, ref, call.Call)
		if err == nil || !db.IsNotFound(err) {
			return err
		}
		if tx.Ended {
			return fmt.Errorf("run %q: %w", ref.ID, db.ErrRunEnded)
		}
		var sum []byte
		if request != nil {
			sum = request.Sum[:]
			if _, err := artifacts.Put(ctx, tx, tx.CID, ref.Tenant, contract.ArtifactRequest, *request); err != nil {
				return err
			}
		}
		if err := reserve(ctx, tx, ref, call); err != nil {
			return err
		}
		// A request under a key that was used before, as by a workflow that was started once more, does not make the
		// earlier one free.
		_, err = tx.Exec(ctx, `INSERT INTO usage_ledger AS l (cid, tenant, run, call, attempt, vendor, model,
			request_sha256, booked_under, reserved_tokens)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (run, call, attempt) DO UPDATE SET
				lost_tokens = `+counted+`, reserved_tokens = excluded.reserved_tokens
			WHERE l.state <> 'complete'`,
			tx.CID, ref.Tenant, ref.ID, call.Call, call.Attempt, db.CleanText(call.Vendor), db.CleanText(call.Model),
			sum, bookedUnder, call.Estimate)
		return err
	})
	return answer, err
}

// Finish books the result of a request and stores its answer, in one transaction. It returns the artifact of the
// answer, "" for a failure. Call it as soon as the answer is complete. Booking the same result again changes nothing.
func (s *Store) Finish(ctx context.Context, ref db.RunRef, call Call, res Result) (answer string, err error) {
	var p db.Packed
	state := Failed
	if res.Answer != nil {
		state, p = Complete, s.db.Pack(res.Answer)
	}
	err = seals.ChangeRun(ctx, s.db, "book a model's answer", ref, func(ctx context.Context, tx seals.Tx) error {
		answer = ""
		var sum []byte
		if state == Complete {
			answer, sum = p.Sum.String(), p.Sum[:]
			if err := keepAnswer(ctx, tx, ref.Tenant, p); err != nil {
				return err
			}
		}
		// A complete call stays as it is. A call that Begin did not book is inserted.
		_, err := tx.Exec(ctx, `INSERT INTO usage_ledger AS l (cid, tenant, run, call, attempt, vendor, model, state,
			error_kind,
				request_id, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, answer_sha256,
				booked_under, finished_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, clock_timestamp())
			ON CONFLICT (run, call, attempt) DO UPDATE SET state = excluded.state, error_kind = excluded.error_kind,
				request_id = excluded.request_id, input_tokens = excluded.input_tokens,
				cached_input_tokens = excluded.cached_input_tokens, cache_write_tokens = excluded.cache_write_tokens,
				output_tokens = excluded.output_tokens, answer_sha256 = excluded.answer_sha256,
				finished_at = excluded.finished_at
			WHERE l.state <> 'complete'`,
			tx.CID, ref.Tenant, ref.ID, call.Call, call.Attempt, db.CleanText(call.Vendor), db.CleanText(call.Model),
			string(state),
			string(res.ErrorKind), db.CleanText(res.RequestID), res.Input, res.CachedInput, res.CacheWrite, res.Output,
			sum, bookedUnder)
		return err
	})
	return answer, err
}

// keepAnswer stores an answer, unless the conversation's content was deleted while the model was writing: then only its
// hash is kept.
func keepAnswer(ctx context.Context, tx seals.Tx, tenant string, p db.Packed) error {
	deleted, err := db.One(ctx, tx, pgx.RowTo[bool],
		`SELECT content_deleted_at IS NOT NULL FROM conversations WHERE cid = $1`, tx.CID)
	if err != nil || deleted {
		return err
	}
	_, err = artifacts.Put(ctx, tx, tx.CID, tenant, contract.ArtifactAnswer, p)
	return err
}
