package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// APIKey is an API key without its secret.
type APIKey struct {
	ID      string
	Tenant  string
	Name    string
	Trusted bool
	// Scope is what the key may do: ScopeAdmin for a trusted key.
	Scope   Scope
	Created time.Time
	// Expires is when the key stops working, zero: never.
	Expires time.Time
	// Revoked is when the key was revoked, zero: it is valid.
	Revoked time.Time
	// LastUsed is when a request last named the key, up to lastUsePrecision before its last use; zero: never.
	LastUsed time.Time
}

// NewKey is a key to create.
type NewKey struct {
	Tenant string
	// Name distinguishes the key from others, "": none.
	Name string
	// Scope is what the key may do, "": ScopeWrite.
	Scope Scope
	// Expires is when the key stops working, zero: never.
	Expires time.Time
}

// maxKeyName bounds the name of a key, in bytes.
const maxKeyName = 256

func (n NewKey) validate() error {
	if problem := db.IDProblem(n.Name, maxKeyName); n.Name != "" && problem != "" {
		return db.Invalidf("the key's name %q %s", n.Name, problem)
	}
	if !ScopeAdmin.Includes(n.Scope) {
		return db.Invalidf("there is no scope %q: there are read, write and admin", n.Scope)
	}
	if !n.Expires.IsZero() && !n.Expires.After(time.Now()) {
		return db.Invalidf("the key would expire at %s, which is past", n.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// Create creates a key with ScopeWrite that does not expire, or with ScopeAdmin if it is trusted.
func (s *Keys) Create(ctx context.Context, tenant, name string,
	trusted bool,
) (key APIKey, secret string, err error) {
	n := NewKey{Tenant: tenant, Name: name}
	if trusted {
		n.Scope = ScopeAdmin
	}
	return s.CreateKey(ctx, n)
}

// CreateKey creates a key for a tenant. Only the hash of the secret is stored, so that it cannot be read again.
func (s *Keys) CreateKey(ctx context.Context, n NewKey) (key APIKey, secret string, err error) {
	if n.Scope == "" {
		n.Scope = ScopeWrite
	}
	if err := n.validate(); err != nil {
		return key, "", db.Failed("make an API key", err)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the program instead
	secret = "pk_" + base64.RawURLEncoding.EncodeToString(raw)
	hash := sha256.Sum256([]byte(secret))
	id := db.NewID()
	err = s.db.Write(ctx, "make an API key", func(ctx context.Context, tx pgx.Tx) (err error) {
		key, err = db.One(ctx, tx, scanAPIKey, `INSERT INTO api_keys AS k (id, tenant, name, hash, trusted,
				scope, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			RETURNING `+apiKeyColumns, id, n.Tenant, n.Name, hash[:], n.Scope == ScopeAdmin, string(n.Scope),
			db.TimeOrNil(n.Expires))
		if db.Violates(err, "api_keys_tenant_fkey") {
			return db.NotFoundf("tenant %q", n.Tenant)
		}
		return err
	})
	return key, secret, err
}

const apiKeyColumns = `k.id, k.tenant, k.name, k.trusted, k.created_at, k.revoked_at, k.last_used_at,
	k.scope, k.expires_at`

func scanAPIKey(row pgx.CollectableRow) (APIKey, error) {
	var k APIKey
	var revoked, used, expires *time.Time
	err := row.Scan(&k.ID, &k.Tenant, &k.Name, &k.Trusted, &k.Created, &revoked, &used, &k.Scope, &expires)
	k.Revoked, k.LastUsed = db.Or(revoked, time.Time{}), db.Or(used, time.Time{})
	k.Expires = db.Or(expires, time.Time{})
	if k.Trusted { // also one that an earlier release created
		k.Scope = ScopeAdmin
	}
	return k, err
}

// lastUsePrecision is how old APIKey.LastUsed may be: a key that every request names is written once a minute.
const lastUsePrecision = time.Minute

// usable is the condition for a key that still works.
const usable = `(k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))`

// Find returns the key that a secret belongs to, and records its use. A key that is unknown, revoked or expired is
// ErrNotFound.
func (s *Keys) Find(ctx context.Context, secret string) (APIKey, error) {
	hash := sha256.Sum256([]byte(secret))
	var k APIKey
	err := s.db.Read(ctx, "look up an API key", func(ctx context.Context, q db.Querier) (err error) {
		k, err = db.One(ctx, q, scanAPIKey, `WITH used AS (
				UPDATE api_keys k SET last_used_at = now() WHERE hash = $1 AND `+usable+`
					AND (last_used_at IS NULL OR last_used_at < now() - $2::interval)
			)
			SELECT `+apiKeyColumns+` FROM api_keys k WHERE k.hash = $1 AND `+usable,
			hash[:], lastUsePrecision)
		return err
	})
	return k, err
}

// Ended returns those of the keys, by their ids, that no longer work: they were revoked, have expired or do not exist.
func (s *Keys) Ended(ctx context.Context, ids []string) ([]string, error) {
	var ended []string
	err := s.db.Read(ctx, "look for revoked API keys", func(ctx context.Context, q db.Querier) (err error) {
		ended, err = db.All(ctx, q, pgx.RowTo[string], `SELECT g.id FROM unnest($1::text[]) AS g (id)
			WHERE NOT EXISTS (SELECT FROM api_keys k WHERE k.id = g.id AND `+usable+`)`, ids)
		return err
	})
	return ended, err
}

// List returns a tenant's keys, newest first, or the keys of all tenants for "".
func (s *Keys) List(ctx context.Context, tenant string) ([]APIKey, error) {
	var list []APIKey
	err := s.db.Read(ctx, "list API keys", func(ctx context.Context, q db.Querier) (err error) {
		list, err = db.All(ctx, q, scanAPIKey, `SELECT `+apiKeyColumns+` FROM api_keys k WHERE $1 = '' OR k.tenant = $1
			ORDER BY k.created_at DESC, k.id DESC`, tenant)
		return err
	})
	return list, err
}

// Any reports whether a key was ever created. Revoked keys count, so that revoking the last key does not open the
// service to everybody.
func (s *Keys) Any(ctx context.Context) (bool, error) {
	var has bool
	err := s.db.Read(ctx, "look for API keys", func(ctx context.Context, q db.Querier) (err error) {
		has, err = db.One(ctx, q, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM api_keys)`)
		return err
	})
	return has, err
}

// Revoke revokes a tenant's key, at once and permanently.
func (s *Keys) Revoke(ctx context.Context, tenant, id string) error {
	return s.db.Write(ctx, "revoke an API key", func(ctx context.Context, tx pgx.Tx) error {
		_, err := db.One(ctx, tx, pgx.RowTo[string], `UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
			WHERE tenant = $1 AND id = $2 RETURNING id`, tenant, id)
		return err
	})
}
