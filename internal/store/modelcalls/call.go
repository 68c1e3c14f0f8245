// Package modelcalls keeps the ledger: every request to a model, booked before it is sent, with its answer and its
// tokens.
package modelcalls

import (
	"context"

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

// Call names one request to a model: the activity call of the run, and the attempt at it.
type Call struct {
	// Call and Attempt are those of the Step.
	Call, Attempt int
	Vendor, Model string
	// Request is what is sent, nil: not kept.
	Request []byte
}

// Result is how a request ended. Figures that are known go in also when it failed: they are billed.
type Result struct {
	// Tokens. Input does not count CachedInput and CacheWrite.
	Input, CachedInput, CacheWrite, Output int64
	// Answer is what is to be found again by whoever tries the call next, and for audit. Nil: the call failed.
	Answer []byte
	// ErrorKind is why it failed, "" when it did not.
	ErrorKind pipeline.ErrorKind
	// RequestID is the vendor's.
	RequestID string
}

// bookedUnder is the account of every model call: compactions are all that this program asks models for.
const bookedUnder = "/compact"

// State is where a request to a model stands.
type State string

// The states.
const (
	// Started of a run that has ended, or was tried again, is an answer that was perhaps paid for and lost.
	Started  State = "started"
	Complete State = "complete"
	Failed   State = "failed"
)

// Begin books a request to a model before it is sent, so that one whose answer is lost is still to be seen. If an
// earlier attempt at the same call has its answer, nothing is booked and that answer is given: it was paid for, and
// must not be asked for again. answer is nil when the request is to be sent.
func (s *Store) Begin(ctx context.Context, ref db.RunRef, call Call) (answer []byte, err error) {
	var request *db.Packed
	if call.Request != nil {
		p := s.db.Pack(call.Request)
		request = &p
	}
	err = s.db.Write(ctx, "book a model call", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := seals.LockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		answer, err = s.answer(ctx, tx, ref, call.Call)
		if err == nil || !db.IsNotFound(err) {
			return err
		}
		var sum []byte
		if request != nil {
			if _, err := artifacts.Put(ctx, tx, cid, ref.Tenant, contract.ArtifactRequest, *request); err != nil {
				return err
			}
			sum = request.Sum[:]
		}
		_, err = tx.Exec(ctx, `INSERT INTO usage_ledger (cid, tenant, run, call, attempt, vendor, model,
			request_sha256, booked_under)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (run, call, attempt) DO NOTHING`,
			cid, ref.Tenant, ref.ID, call.Call, call.Attempt, db.CleanText(call.Vendor), db.CleanText(call.Model), sum,
			bookedUnder)
		if err != nil {
			return err
		}
		return seals.WriteEnded(ctx, tx, cid, ref.ID)
	})
	return answer, err
}

// Finish books how a request ended, and keeps its answer, in one transaction: call it the moment the answer is
// complete. Booking the same end again changes nothing. It gives the artifact of the answer, "" for a failure.
func (s *Store) Finish(ctx context.Context, ref db.RunRef, call Call, res Result) (answer string, err error) {
	var p db.Packed
	state := Failed
	if res.Answer != nil {
		state, p = Complete, s.db.Pack(res.Answer)
	}
	err = s.db.Write(ctx, "book a model's answer", func(ctx context.Context, tx pgx.Tx) error {
		answer = ""
		cid, err := seals.LockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		var sum []byte
		if state == Complete {
			a, err := artifacts.Put(ctx, tx, cid, ref.Tenant, contract.ArtifactAnswer, p)
			if err != nil {
				return err
			}
			answer, sum = a.SHA256, p.Sum[:]
		}
		// A call that is complete stays as it is. One that BeginCall did not book is booked whole.
		_, err = tx.Exec(ctx, `INSERT INTO usage_ledger AS l (cid, tenant, run, call, attempt, vendor, model, state,
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
			cid, ref.Tenant, ref.ID, call.Call, call.Attempt, db.CleanText(call.Vendor), db.CleanText(call.Model),
			string(state),
			string(res.ErrorKind), db.CleanText(res.RequestID), res.Input, res.CachedInput, res.CacheWrite, res.Output,
			sum, bookedUnder)
		if err != nil {
			return err
		}
		return seals.WriteEnded(ctx, tx, cid, ref.ID)
	})
	return answer, err
}
