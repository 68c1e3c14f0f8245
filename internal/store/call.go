package store

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// ModelCall names one request to a model: the activity call of the run, and the attempt at it.
type ModelCall struct {
	// Call and Attempt are those of the Step.
	Call, Attempt int
	Vendor, Model string
	// Request is what is sent, nil: not kept.
	Request []byte
}

// CallResult is how a request ended. Figures that are known go in also when it failed: they are billed.
type CallResult struct {
	// Tokens. Input does not count CachedInput and CacheWrite.
	Input, CachedInput, CacheWrite, Output int64
	// Answer is what is to be found again by whoever tries the call next, and for audit. Nil: the call failed.
	Answer []byte
	// ErrorKind is why it failed, "" when it did not.
	ErrorKind pipeline.ErrorKind
	// RequestID is the vendor's.
	RequestID string
}

// CallState is where a request to a model stands.
type CallState string

// The states.
const (
	// CallStarted of a run that has ended, or was tried again, is an answer that was perhaps paid for and lost.
	CallStarted  CallState = "started"
	CallComplete CallState = "complete"
	CallFailed   CallState = "failed"
)

// LedgerEntry is one row of usage_ledger.
type LedgerEntry struct {
	Run           string
	Call, Attempt int
	Vendor, Model string
	State         CallState
	ErrorKind     pipeline.ErrorKind
	RequestID     string
	Input         int64
	CachedInput   int64
	CacheWrite    int64
	Output        int64
	// Request and Answer are artifacts, "": not kept.
	Request, Answer   string
	Started, Finished time.Time
}

const ledgerColumns = `l.run, l.call, l.attempt, l.vendor, l.model, l.state, l.error_kind, l.request_id, l.input_tokens,
	l.cached_input_tokens, l.cache_write_tokens, l.output_tokens, l.request_sha256, l.answer_sha256, l.started_at, l.finished_at`

func scanLedger(row pgx.CollectableRow) (LedgerEntry, error) {
	var e LedgerEntry
	var request, answer []byte
	var finished *time.Time
	err := row.Scan(&e.Run, &e.Call, &e.Attempt, &e.Vendor, &e.Model, &e.State, &e.ErrorKind, &e.RequestID, &e.Input,
		&e.CachedInput, &e.CacheWrite, &e.Output, &request, &answer, &e.Started, &finished)
	e.Request, e.Answer, e.Finished = hex.EncodeToString(request), hex.EncodeToString(answer), or(finished, time.Time{})
	return e, err
}

// BeginCall books a request to a model before it is sent, so that one whose answer is lost is still to be seen. If an
// earlier attempt at the same call has its answer, nothing is booked and that answer is given: it was paid for, and
// must not be asked for again. answer is nil when the request is to be sent.
func (s *Store) BeginCall(ctx context.Context, ref RunRef, call ModelCall) (answer []byte, err error) {
	var request *packed
	if call.Request != nil {
		p := s.pack(call.Request)
		request = &p
	}
	err = s.write(ctx, "book a model call", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := lockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		answer, err = s.answer(ctx, tx, ref, call.Call)
		if err == nil || !isNotFound(err) {
			return err
		}
		var sum []byte
		if request != nil {
			if _, err := putArtifact(ctx, tx, cid, ref.Tenant, "request", *request); err != nil {
				return err
			}
			sum = request.sum[:]
		}
		_, err = tx.Exec(ctx, `INSERT INTO usage_ledger (cid, tenant, run, call, attempt, vendor, model, request_sha256)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (run, call, attempt) DO NOTHING`,
			cid, ref.Tenant, ref.ID, call.Call, call.Attempt, cleanText(call.Vendor), cleanText(call.Model), sum)
		if err != nil {
			return err
		}
		return sealEnded(ctx, tx, cid, ref.ID)
	})
	return answer, err
}

// Answer gives the answer of any finished attempt at a call, ErrNotFound when there is none.
func (s *Store) Answer(ctx context.Context, ref RunRef, call int) ([]byte, error) {
	var data []byte
	err := s.read(ctx, "look for a model's answer", func(ctx context.Context, q querier) (err error) {
		data, err = s.answer(ctx, q, ref, call)
		return err
	})
	return data, err
}

func (s *Store) answer(ctx context.Context, q querier, ref RunRef, call int) ([]byte, error) {
	sum, err := one(ctx, q, pgx.RowTo[[]byte], `SELECT answer_sha256 FROM usage_ledger
		WHERE tenant = $1 AND run = $2 AND call = $3 AND state = 'complete' ORDER BY attempt LIMIT 1`, ref.Tenant, cleanText(ref.ID), call)
	if err != nil {
		return nil, err
	}
	data, err := artifactData(ctx, q, ref.Tenant, Hash(sum))
	if err != nil {
		return nil, err
	}
	return s.unpack(Hash(sum), data)
}

// FinishCall books how a request ended, and keeps its answer, in one transaction: call it the moment the answer is
// complete. Booking the same end again changes nothing. It gives the artifact of the answer, "" for a failure.
func (s *Store) FinishCall(ctx context.Context, ref RunRef, call ModelCall, res CallResult) (answer string, err error) {
	var p packed
	state := CallFailed
	if res.Answer != nil {
		state, p = CallComplete, s.pack(res.Answer)
	}
	err = s.write(ctx, "book a model's answer", func(ctx context.Context, tx pgx.Tx) error {
		answer = ""
		cid, err := lockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		var sum []byte
		if state == CallComplete {
			a, err := putArtifact(ctx, tx, cid, ref.Tenant, "answer", p)
			if err != nil {
				return err
			}
			answer, sum = a.SHA256, p.sum[:]
		}
		// A call that is complete stays as it is. One that BeginCall did not book is booked whole.
		_, err = tx.Exec(ctx, `INSERT INTO usage_ledger AS l (cid, tenant, run, call, attempt, vendor, model, state, error_kind,
				request_id, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, answer_sha256, finished_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, clock_timestamp())
			ON CONFLICT (run, call, attempt) DO UPDATE SET state = excluded.state, error_kind = excluded.error_kind,
				request_id = excluded.request_id, input_tokens = excluded.input_tokens,
				cached_input_tokens = excluded.cached_input_tokens, cache_write_tokens = excluded.cache_write_tokens,
				output_tokens = excluded.output_tokens, answer_sha256 = excluded.answer_sha256,
				finished_at = excluded.finished_at
			WHERE l.state <> 'complete'`,
			cid, ref.Tenant, ref.ID, call.Call, call.Attempt, cleanText(call.Vendor), cleanText(call.Model),
			string(state),
			string(res.ErrorKind), cleanText(res.RequestID), res.Input, res.CachedInput, res.CacheWrite, res.Output,
			sum)
		if err != nil {
			return err
		}
		return sealEnded(ctx, tx, cid, ref.ID)
	})
	return answer, err
}

// Ledger lists a run's model calls in order.
func (s *Store) Ledger(ctx context.Context, ref RunRef) ([]LedgerEntry, error) {
	var list []LedgerEntry
	err := s.snapshot(ctx, "read a run's model calls", func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := ownsRun(ctx, tx, ref); err != nil {
			return err
		}
		list, err = all(ctx, tx, scanLedger,
			`SELECT `+ledgerColumns+` FROM usage_ledger l WHERE l.run = $1 ORDER BY l.call, l.attempt`, ref.ID)
		return err
	})
	return list, err
}
