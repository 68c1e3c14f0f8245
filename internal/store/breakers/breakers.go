// Package breakers counts failures in a row, of a conversation's automatic runs or of a tenant's calls of a model.
//
// A breaker of a model belongs to one tenant, and to the model at a vendor under a credential: a model that a vendor
// refuses says nothing about its others, and a new key starts without the failures of the old one. It counts calls, not
// the retries of a call, and opens by the threshold of the installation. Whatever a tenant sends, names or sets opens
// its own breakers only, since no other tenant reads them, with one exception that no single tenant can bring about: a
// model counts as down for everybody while the breakers of two other tenants are open for it, for reasons that lie with
// the vendor (not for time-outs, which large inputs cause), and no tenant has had an answer from it since the first of
// those failures. After the cooldown the tenants whose breakers are open try again, and an answer closes the tenant's
// breaker.
package breakers

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/pipeline"
)

// Store reads, trips and resets breakers.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Key identifies a breaker, see OfModel and OfConversation.
type Key struct{ scope, tenant, name string }

// String returns the key for people: "tenant TENANT, model VENDOR/MODEL, credential HASH".
func (k Key) String() string { return "tenant " + k.tenant + ", " + k.scope + " " + k.name }

// OfConversation returns the key of the breaker of a conversation's automatic runs.
func OfConversation(ref db.ConversationRef) Key {
	return Key{scope: "conversation", tenant: db.CleanText(ref.Tenant), name: db.CleanText(ref.ID)}
}

// Breaker is the state of a breaker. The zero value is closed.
type Breaker struct {
	// Failures is the number of failures in a row.
	Failures int
	// Opened is when the breaker opened, zero: it is closed.
	Opened    time.Time
	ErrorKind pipeline.ErrorKind
	Reason    string
	// Blocking is set if the breaker is open and the cooldown given to Get has not passed.
	Blocking bool
}

// Open reports whether the breaker is open, during its cooldown or after.
func (b Breaker) Open() bool { return !b.Opened.IsZero() }

const breakerColumns = `b.failures, b.opened_at, b.error_kind, b.reason`

func scanBreaker(row pgx.CollectableRow) (Breaker, error) {
	var b Breaker
	var opened *time.Time
	err := row.Scan(&b.Failures, &opened, &b.ErrorKind, &b.Reason)
	b.Opened = db.Or(opened, time.Time{})
	return b, err
}

// Get reads a breaker. The cooldown determines Breaker.Blocking.
func (s *Store) Get(ctx context.Context, key Key, cooldown time.Duration) (Breaker, error) {
	var b Breaker
	err := s.db.Read(ctx, "read a breaker", func(ctx context.Context, q db.Querier) (err error) {
		b, err = Get(ctx, q, key, cooldown)
		return err
	})
	return b, err
}

// Get is Store.Get within a transaction or snapshot.
func Get(ctx context.Context, q db.Querier, key Key, cooldown time.Duration) (Breaker, error) {
	b, err := db.One(ctx, q, func(row pgx.CollectableRow) (Breaker, error) {
		var b Breaker
		var opened *time.Time
		err := row.Scan(&b.Failures, &opened, &b.ErrorKind, &b.Reason, &b.Blocking)
		b.Opened = db.Or(opened, time.Time{})
		return b, err
	}, `SELECT `+breakerColumns+`, coalesce(greatest(b.opened_at, b.probe_at) + $4 > clock_timestamp(), false)
		AND b.opened_at IS NOT NULL
		FROM breakers b WHERE b.scope = $1 AND b.tenant = $2
		AND b.name = $3`, key.scope, key.tenant, key.name, cooldown)
	if db.IsNotFound(err) {
		return Breaker{}, nil
	}
	return b, err
}

// Pass reports whether the caller may proceed. A closed breaker lets all callers proceed; an open one lets one caller
// proceed each time the cooldown has passed, to try again.
func (s *Store) Pass(ctx context.Context, key Key, cooldown time.Duration) (bool, error) {
	var pass bool
	err := s.db.Write(ctx, "ask a breaker", func(ctx context.Context, tx pgx.Tx) (err error) {
		pass, err = Pass(ctx, tx, key, cooldown)
		return err
	})
	return pass, err
}

// Pass is Store.Pass within a transaction.
func Pass(ctx context.Context, tx pgx.Tx, key Key, cooldown time.Duration) (bool, error) {
	opened, err := db.One(ctx, tx, pgx.RowTo[bool], `SELECT opened_at IS NOT NULL FROM breakers WHERE scope = $1
		AND tenant = $2 AND name = $3
		FOR UPDATE`, key.scope, key.tenant, key.name)
	if db.IsNotFound(err) || (err == nil && !opened) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `UPDATE breakers SET probe_at = clock_timestamp() WHERE scope = $1 AND tenant = $2
		AND name = $3
		AND greatest(opened_at, probe_at) + $4 <= clock_timestamp()`, key.scope, key.tenant, key.name, cooldown)
	return tag.RowsAffected() == 1, err
}

// Trip counts a failure. The breaker opens at the given number in a row, or at once for a kind that trips it
// (pipeline.ErrorKind.TripsBreaker); a failure while it is open restarts the cooldown. Callers must not count rate
// limits, which do not mean that a vendor is down.
func (s *Store) Trip(ctx context.Context, key Key, kind pipeline.ErrorKind, reason string,
	failures int,
) (Breaker, error) {
	var b Breaker
	err := s.db.Write(ctx, "count a failure", func(ctx context.Context, tx pgx.Tx) (err error) {
		b, err = trip(ctx, tx, key, kind, reason, failures)
		return err
	})
	return b, err
}

func trip(ctx context.Context, tx pgx.Tx, key Key, kind pipeline.ErrorKind, reason string,
	failures int,
) (Breaker, error) {
	return db.One(ctx, tx, scanBreaker, `INSERT INTO breakers AS b (scope, tenant, name, failures, error_kind,
			reason, opened_at)
			VALUES ($1, $2, $3, 1, $4, $5, CASE WHEN $6 OR $7 <= 1 THEN clock_timestamp() END)
			ON CONFLICT (scope, tenant, name) DO UPDATE SET failures = b.failures + 1, error_kind = excluded.error_kind,
				reason = excluded.reason, updated_at = now(), probe_at = NULL,
				opened_at = CASE WHEN $6 OR b.failures + 1 >= $7 THEN clock_timestamp() ELSE b.opened_at END
			RETURNING `+breakerColumns, key.scope, key.tenant, key.name, string(kind),
		db.CleanText(reason), kind.TripsBreaker(), failures)
}

// Reset closes a breaker and clears its failures, after a success or on request.
func (s *Store) Reset(ctx context.Context, key Key) error {
	return s.db.Write(ctx, "close a breaker", func(ctx context.Context, tx pgx.Tx) error {
		return reset(ctx, tx, key)
	})
}

func reset(ctx context.Context, tx pgx.Tx, key Key) error {
	_, err := tx.Exec(ctx, `DELETE FROM breakers WHERE scope = $1 AND tenant = $2 AND name = $3`, key.scope,
		key.tenant, key.name)
	return err
}
