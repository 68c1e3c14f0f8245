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
	Created time.Time
	// Revoked is when the key was revoked, zero: it is valid.
	Revoked time.Time
	// LastUsed is when a request last named the key, up to lastUsePrecision before its last use; zero: never.
	LastUsed time.Time
}

// Create creates a key for a tenant. Only the hash of the secret is stored, so that it cannot be read again.
func (s *Keys) Create(ctx context.Context, tenant, name string,
	trusted bool,
) (key APIKey, secret string, err error) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the program instead
	secret = "pk_" + base64.RawURLEncoding.EncodeToString(raw)
	hash := sha256.Sum256([]byte(secret))
	id := db.NewID()
	err = s.db.Write(ctx, "make an API key", func(ctx context.Context, tx pgx.Tx) (err error) {
		key, err = db.One(ctx, tx, scanAPIKey, `INSERT INTO api_keys AS k (id, tenant, name, hash, trusted)
			VALUES ($1, $2, $3, $4, $5)
			RETURNING `+apiKeyColumns, id, tenant, db.CleanText(name), hash[:], trusted)
		if db.Violates(err, "api_keys_tenant_fkey") {
			return db.NotFoundf("tenant %q", tenant)
		}
		return err
	})
	return key, secret, err
}

const apiKeyColumns = `k.id, k.tenant, k.name, k.trusted, k.created_at, k.revoked_at, k.last_used_at`

func scanAPIKey(row pgx.CollectableRow) (APIKey, error) {
	var k APIKey
	var revoked, used *time.Time
	err := row.Scan(&k.ID, &k.Tenant, &k.Name, &k.Trusted, &k.Created, &revoked, &used)
	k.Revoked, k.LastUsed = db.Or(revoked, time.Time{}), db.Or(used, time.Time{})
	return k, err
}

// lastUsePrecision is how old APIKey.LastUsed may be: a key that every request names is written once a minute.
const lastUsePrecision = time.Minute

// Find returns the key that a secret belongs to, and records its use. An unknown or revoked key is ErrNotFound.
func (s *Keys) Find(ctx context.Context, secret string) (APIKey, error) {
	hash := sha256.Sum256([]byte(secret))
	var k APIKey
	err := s.db.Read(ctx, "look up an API key", func(ctx context.Context, q db.Querier) (err error) {
		k, err = db.One(ctx, q, scanAPIKey, `WITH used AS (
				UPDATE api_keys SET last_used_at = now() WHERE hash = $1 AND revoked_at IS NULL
					AND (last_used_at IS NULL OR last_used_at < now() - $2::interval)
			)
			SELECT `+apiKeyColumns+` FROM api_keys k WHERE k.hash = $1 AND k.revoked_at IS NULL`,
			hash[:], lastUsePrecision)
		return err
	})
	return k, err
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
