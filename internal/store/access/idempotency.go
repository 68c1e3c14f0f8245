package access

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// IdempotencyLife is how long the answer to a keyed request is stored.
const IdempotencyLife = 24 * time.Hour

// keyClaim is how long a request holds its key, unless it calls Extend: how long the key of a request is busy whose
// process died.
const keyClaim = 10 * time.Second

// KeyedRequest is a write that its caller may send again and that must be done only once.
type KeyedRequest struct {
	Tenant string
	// Key is the caller's own, 1 to 255 bytes without control characters.
	Key string
	// Request is the hash of method, path and body.
	Request db.Hash
	// Repeatable is set if doing the request twice has the same effect as doing it once.
	Repeatable bool
	// Holder identifies this try of the request. A try that lost its claim to another one cannot commit any more.
	Holder string
}

// KeyState is the state of a key.
type KeyState string

// The states of a key.
const (
	// KeyOurs: the caller must do the request now, and then call Answer or Release.
	KeyOurs KeyState = "ours"
	// KeyAnswered: the request was done, and its answer is stored.
	KeyAnswered KeyState = "answered"
	// KeyBusy: another caller is doing the request.
	KeyBusy KeyState = "busy"
	// KeyOther: the key was used with another request.
	KeyOther KeyState = "other"
	// KeyLost: the request took effect, and its caller died before the answer was stored.
	KeyLost KeyState = "lost"
)

// KeyedAnswer is the stored answer to a request.
type KeyedAnswer struct {
	Status  int
	Headers map[string]string
	Body    []byte
}

// Claim returns the state of a keyed request, and claims it for the caller if nobody else has. Keys older than
// IdempotencyLife count as unused.
func (s *Idempotency) Claim(ctx context.Context, k KeyedRequest) (KeyState, KeyedAnswer, error) {
	var state KeyState
	var answer KeyedAnswer
	var body []byte
	if !db.PossibleID(k.Key, 255) {
		return "", answer, db.Failed("claim a key",
			db.Invalidf("an idempotency key has 1 to 255 bytes of UTF-8 and no control characters"))
	}
	err := s.db.Write(db.WithoutLastStatement(ctx), "claim a key", func(ctx context.Context, tx pgx.Tx) error {
		state, answer, body = "", KeyedAnswer{}, nil
		// Delete a few at a time, so that no request has to delete the keys of a whole day.
		_, err := tx.Exec(ctx, `DELETE FROM idempotency_keys WHERE (tenant, key) IN (
			SELECT tenant, key FROM idempotency_keys WHERE created_at < now() - $1::interval AND claimed_until < now()
			ORDER BY created_at LIMIT 20 FOR UPDATE SKIP LOCKED)`, IdempotencyLife)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO idempotency_keys (tenant, key, request_sha256, claimed_until,
				claimed_by)
			VALUES ($1, $2, $3, clock_timestamp() + $4::interval, $6)
			ON CONFLICT (tenant, key) DO UPDATE SET created_at = now(), claimed_until = excluded.claimed_until,
			claimed_by = excluded.claimed_by, effective_at = NULL,
				answered_at = NULL, status = NULL, request_sha256 = excluded.request_sha256, headers = '{}', body = NULL
			WHERE idempotency_keys.created_at < now() - $5::interval AND idempotency_keys.claimed_until < now()`,
			k.Tenant, k.Key, k.Request[:], keyClaim, IdempotencyLife, k.Holder)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 1 {
			state = KeyOurs
			return nil
		}
		state, answer, body, err = lookAtKey(ctx, tx, k)
		return err
	})
	if err == nil && body != nil {
		if answer.Body, err = s.db.Decompress(body); err != nil {
			err = db.Failed("read a kept answer", err)
		}
	}
	return state, answer, err
}

// lookAtKey returns the state of an existing key, and takes it over if its claim has expired.
func lookAtKey(ctx context.Context, tx pgx.Tx, k KeyedRequest) (KeyState, KeyedAnswer, []byte, error) {
	var answer KeyedAnswer
	var request, headers, body []byte
	var status *int
	var held, effective bool
	err := tx.QueryRow(ctx, `SELECT request_sha256, claimed_until > clock_timestamp(), effective_at IS NOT NULL,
		status, headers, body
		FROM idempotency_keys WHERE tenant = $1 AND key = $2 FOR UPDATE`, k.Tenant, k.Key).
		Scan(&request, &held, &effective, &status, &headers, &body)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return KeyBusy, answer, nil, nil // released just now: the next try has it
	case err != nil:
		return "", answer, nil, err
	case db.Hash(request) != k.Request:
		return KeyOther, answer, nil, nil
	case status != nil:
		answer.Status = *status
		return KeyAnswered, answer, body, json.Unmarshal(headers, &answer.Headers)
	case held:
		return KeyBusy, answer, nil, nil
	case effective && !k.Repeatable:
		return KeyLost, answer, nil, nil
	}
	_, err = tx.Exec(
		ctx, `UPDATE idempotency_keys SET claimed_until = clock_timestamp() + $3::interval, claimed_by = $4
			WHERE tenant = $1 AND key = $2`,
		k.Tenant, k.Key, keyClaim, k.Holder)
	return KeyOurs, answer, nil, err
}

// Extend extends the caller's claim of a key by keyClaim.
func (s *Idempotency) Extend(ctx context.Context, k KeyedRequest) error {
	return s.db.Write(db.WithoutLastStatement(ctx), "hold a key", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE idempotency_keys SET claimed_until = clock_timestamp() + $4::interval
			WHERE tenant = $1 AND key = $2 AND request_sha256 = $3 AND claimed_by = $5
			AND answered_at IS NULL`, k.Tenant, k.Key, k.Request[:], keyClaim, k.Holder)
		return err
	})
}

// Answer stores the answer to a request that the caller has claimed.
func (s *Idempotency) Answer(ctx context.Context, k KeyedRequest, a KeyedAnswer) error {
	headers, err := json.Marshal(a.Headers)
	if err != nil {
		return db.Failed("keep an answer", err)
	}
	if a.Headers == nil {
		headers = []byte(`{}`)
	}
	body := s.db.Compress(a.Body)
	return s.db.Write(db.WithoutLastStatement(ctx), "keep an answer", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE idempotency_keys SET answered_at = clock_timestamp(),
			claimed_until = clock_timestamp(),
				status = $4, headers = $5, body = $6
			WHERE tenant = $1 AND key = $2 AND request_sha256 = $3 AND answered_at IS NULL AND claimed_by = $7`,
			k.Tenant, k.Key, k.Request[:], a.Status, headers, body, k.Holder)
		return err
	})
}

// Release ends the claim of a key whose request failed. If the request changed nothing, the key is free again at once;
// if it did, effective is true.
func (s *Idempotency) Release(ctx context.Context, k KeyedRequest) (effective bool, err error) {
	err = s.db.Write(db.WithoutLastStatement(ctx), "release a key", func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM idempotency_keys WHERE tenant = $1 AND key = $2 AND request_sha256 = $3
			AND answered_at IS NULL AND effective_at IS NULL AND claimed_by = $4`,
			k.Tenant, k.Key, k.Request[:], k.Holder)
		if err != nil || tag.RowsAffected() > 0 {
			effective = false
			return err
		}
		tag, err = tx.Exec(ctx, `UPDATE idempotency_keys SET claimed_until = clock_timestamp()
			WHERE tenant = $1 AND key = $2 AND request_sha256 = $3 AND claimed_by = $4`,
			k.Tenant, k.Key, k.Request[:], k.Holder)
		effective = tag.RowsAffected() > 0 // else the claim was released before, or is another try's
		return err
	})
	return effective, err
}

// WithKey returns a context whose transactions record, as part of their commit, that the keyed request has taken
// effect. So the request is not done twice, even if the process dies after the commit. A transaction of a try that has
// lost its claim to another one is rolled back, with an ErrConflict.
func WithKey(ctx context.Context, k KeyedRequest) context.Context {
	return db.WithLastStatement(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE idempotency_keys SET effective_at = coalesce(effective_at, clock_timestamp())
			WHERE tenant = $1 AND key = $2 AND request_sha256 = $3 AND claimed_by = $4`,
			k.Tenant, k.Key, k.Request[:], k.Holder)
		if err == nil && tag.RowsAffected() == 0 {
			return db.Conflictf(db.ConflictDifferent, "another try of the request with idempotency key %q has taken "+
				"over: send it again to get its answer", k.Key)
		}
		return err
	})
}
