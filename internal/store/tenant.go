package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tenant owns conversations.
type Tenant struct {
	ID      string
	Name    string
	Created time.Time
}

// EnsureTenant makes the tenant if it is not there. The id has 1 to 64 bytes, no slash, no control characters.
func (s *Store) EnsureTenant(ctx context.Context, id, name string) (Tenant, error) {
	var t Tenant
	if !goodID(id, 64) || strings.Contains(id, "/") {
		return t, fmt.Errorf("store: make a tenant: %w",
			invalidf("a tenant's id has 1 to 64 bytes, no slash and no control characters"))
	}
	err := s.write(ctx, "make a tenant", func(ctx context.Context, tx pgx.Tx) (err error) {
		// DO UPDATE, since DO NOTHING gives no row back when another call was faster.
		t, err = one(ctx, tx, scanTenant, `INSERT INTO tenants (id, name) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING id, name, created_at`, id, cleanText(name))
		return err
	})
	return t, err
}

func scanTenant(row pgx.CollectableRow) (t Tenant, err error) {
	return t, row.Scan(&t.ID, &t.Name, &t.Created)
}

// ChangeTenantSettings changes what a tenant sets of pipeline.Settings for all its conversations: change gets what it
// sets now and gives what it is to set, each a JSON object or nil for nothing. No other change comes in between.
func (s *Store) ChangeTenantSettings(ctx context.Context, tenant string,
	change func(json.RawMessage) (json.RawMessage, error),
) error {
	return s.write(ctx, "set a tenant's settings", func(ctx context.Context, tx pgx.Tx) error {
		own, err := tenantSettings(ctx, tx, tenant, " FOR NO KEY UPDATE")
		if err != nil {
			return err
		}
		if own, err = change(own); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE tenants SET settings = $2 WHERE id = $1`, cleanText(tenant), []byte(own))
		return err
	})
}

// TenantSettings reads them.
func (s *Store) TenantSettings(ctx context.Context, tenant string) (json.RawMessage, error) {
	var settings json.RawMessage
	err := s.read(ctx, "read a tenant's settings", func(ctx context.Context, q querier) (err error) {
		settings, err = tenantSettings(ctx, q, tenant, "")
		return err
	})
	return settings, err
}

func tenantSettings(ctx context.Context, q querier, tenant, lock string) (json.RawMessage, error) {
	settings, err := one(ctx, q, func(row pgx.CollectableRow) (raw json.RawMessage, err error) {
		return raw, row.Scan((*[]byte)(&raw))
	}, `SELECT settings FROM tenants WHERE id = $1`+lock, cleanText(tenant))
	if err != nil {
		return nil, fmt.Errorf("tenant %q: %w", tenant, err)
	}
	return settings, nil
}

// Tenants lists all tenants by id.
func (s *Store) Tenants(ctx context.Context) ([]Tenant, error) {
	var list []Tenant
	err := s.read(ctx, "list tenants", func(ctx context.Context, q querier) (err error) {
		list, err = all(ctx, q, scanTenant, `SELECT id, name, created_at FROM tenants ORDER BY id`)
		return err
	})
	return list, err
}

// APIKey is a key as it is listed: never the secret itself.
type APIKey struct {
	ID      string
	Tenant  string
	Name    string
	Trusted bool
	Created time.Time
	// Revoked is zero while the key works.
	Revoked time.Time
}

// CreateAPIKey makes a key for a tenant. The secret is shown this once: only its hash is kept.
func (s *Store) CreateAPIKey(ctx context.Context, tenant, name string,
	trusted bool,
) (key APIKey, secret string, err error) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the program instead
	secret = "pk_" + base64.RawURLEncoding.EncodeToString(raw)
	hash := sha256.Sum256([]byte(secret))
	id := newID()
	err = s.write(ctx, "make an API key", func(ctx context.Context, tx pgx.Tx) (err error) {
		key, err = one(ctx, tx, scanAPIKey, `INSERT INTO api_keys AS k (id, tenant, name, hash, trusted) VALUES ($1, $2, $3, $4, $5)
			RETURNING `+apiKeyColumns, id, tenant, cleanText(name), hash[:], trusted)
		if violates(err, "api_keys_tenant_fkey") {
			return notFoundf("tenant %q", tenant)
		}
		return err
	})
	return key, secret, err
}

const apiKeyColumns = `k.id, k.tenant, k.name, k.trusted, k.created_at, k.revoked_at`

func scanAPIKey(row pgx.CollectableRow) (APIKey, error) {
	var k APIKey
	var revoked *time.Time
	err := row.Scan(&k.ID, &k.Tenant, &k.Name, &k.Trusted, &k.Created, &revoked)
	k.Revoked = or(revoked, time.Time{})
	return k, err
}

// FindAPIKey gives the key that a secret belongs to. One that is unknown or revoked is ErrNotFound.
func (s *Store) FindAPIKey(ctx context.Context, secret string) (APIKey, error) {
	hash := sha256.Sum256([]byte(secret))
	var k APIKey
	err := s.read(ctx, "look up an API key", func(ctx context.Context, q querier) (err error) {
		k, err = one(ctx, q, scanAPIKey,
			`SELECT `+apiKeyColumns+` FROM api_keys k WHERE k.hash = $1 AND k.revoked_at IS NULL`, hash[:])
		return err
	})
	return k, err
}

// APIKeys lists a tenant's keys, newest first; all tenants' for "".
func (s *Store) APIKeys(ctx context.Context, tenant string) ([]APIKey, error) {
	var list []APIKey
	err := s.read(ctx, "list API keys", func(ctx context.Context, q querier) (err error) {
		list, err = all(ctx, q, scanAPIKey, `SELECT `+apiKeyColumns+` FROM api_keys k WHERE $1 = '' OR k.tenant = $1
			ORDER BY k.created_at DESC, k.id DESC`, tenant)
		return err
	})
	return list, err
}

// HasAPIKeys says whether a key was ever made for anybody. Revoked ones count: taking the last one back does not
// open the service to everybody.
func (s *Store) HasAPIKeys(ctx context.Context) (bool, error) {
	var has bool
	err := s.read(ctx, "look for API keys", func(ctx context.Context, q querier) (err error) {
		has, err = one(ctx, q, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM api_keys)`)
		return err
	})
	return has, err
}

// RevokeAPIKey makes a tenant's key useless, at once and for good.
func (s *Store) RevokeAPIKey(ctx context.Context, tenant, id string) error {
	return s.write(ctx, "revoke an API key", func(ctx context.Context, tx pgx.Tx) error {
		_, err := one(ctx, tx, pgx.RowTo[string], `UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
			WHERE tenant = $1 AND id = $2 RETURNING id`, tenant, id)
		return err
	})
}
