// Package access keeps tenants, their API keys, and the idempotency keys of their requests.
package access

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Tenants keeps tenants and their settings.
type Tenants struct{ db *db.DB }

// NewTenants returns Tenants over an open database.
func NewTenants(d *db.DB) *Tenants { return &Tenants{db: d} }

// Keys keeps API keys. Of a secret it stores only the hash.
type Keys struct{ db *db.DB }

// NewKeys returns Keys over an open database.
func NewKeys(d *db.DB) *Keys { return &Keys{db: d} }

// Idempotency keeps the answers to keyed requests, so that each is done only once.
type Idempotency struct{ db *db.DB }

// NewIdempotency returns Idempotency over an open database.
func NewIdempotency(d *db.DB) *Idempotency { return &Idempotency{db: d} }

// Tenant owns conversations.
type Tenant struct {
	ID      string
	Name    string
	Created time.Time
}

// maxTenant bounds the id of a tenant, in bytes.
const maxTenant = 64

// Ensure creates the tenant unless it exists. The id is a db.GoodID of at most 64 bytes without slashes.
func (s *Tenants) Ensure(ctx context.Context, id, name string) (Tenant, error) {
	var t Tenant
	problem := db.IDProblem(id, maxTenant)
	if problem == "" && strings.Contains(id, "/") {
		problem = "contains a slash"
	}
	if problem != "" {
		// One of an earlier release may exist.
		if !db.PossibleID(id, maxTenant) {
			return t, db.Failed("make a tenant", db.Invalidf("the tenant's id %q %s", id, problem))
		}
		err := s.db.Read(ctx, "find a tenant", func(ctx context.Context, q db.Querier) (err error) {
			t, err = db.One(ctx, q, scanTenant, `SELECT id, name, created_at FROM tenants WHERE id = $1`, id)
			return err
		})
		if db.IsNotFound(err) {
			err = db.Failed("make a tenant", db.Invalidf("the tenant's id %q %s", id, problem))
		}
		return t, err
	}
	err := s.db.Write(ctx, "make a tenant", func(ctx context.Context, tx pgx.Tx) (err error) {
		// DO UPDATE, since DO NOTHING returns no row if another call was faster.
		t, err = db.One(ctx, tx, scanTenant, `INSERT INTO tenants (id, name) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING id, name, created_at`, id, db.CleanText(name))
		return err
	})
	return t, err
}

func scanTenant(row pgx.CollectableRow) (t Tenant, err error) {
	return t, row.Scan(&t.ID, &t.Name, &t.Created)
}

// ChangeSettings changes a tenant's own pipeline.Settings for all its conversations. change is called with the current
// settings and returns the new ones, each a JSON object, or nil for none. The row is locked meanwhile.
func (s *Tenants) ChangeSettings(ctx context.Context, tenant string,
	change func(json.RawMessage) (json.RawMessage, error),
) error {
	return s.db.Write(ctx, "set a tenant's settings", func(ctx context.Context, tx pgx.Tx) error {
		own, err := tenantSettings(ctx, tx, tenant, " FOR NO KEY UPDATE")
		if err != nil {
			return err
		}
		if own, err = change(own); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE tenants SET settings = $2 WHERE id = $1`, db.CleanText(tenant), []byte(own))
		return err
	})
}

// Settings returns a tenant's own pipeline.Settings, nil: none.
func (s *Tenants) Settings(ctx context.Context, tenant string) (json.RawMessage, error) {
	var settings json.RawMessage
	err := s.db.Read(ctx, "read a tenant's settings", func(ctx context.Context, q db.Querier) (err error) {
		settings, err = tenantSettings(ctx, q, tenant, "")
		return err
	})
	return settings, err
}

func tenantSettings(ctx context.Context, q db.Querier, tenant, lock string) (json.RawMessage, error) {
	settings, err := db.One(ctx, q, func(row pgx.CollectableRow) (raw json.RawMessage, err error) {
		return raw, row.Scan((*[]byte)(&raw))
	}, `SELECT settings FROM tenants WHERE id = $1`+lock, db.CleanText(tenant))
	if err != nil {
		return nil, fmt.Errorf("tenant %q: %w", tenant, err)
	}
	return settings, nil
}

// List lists all tenants by id.
func (s *Tenants) List(ctx context.Context) ([]Tenant, error) {
	var list []Tenant
	err := s.db.Read(ctx, "list tenants", func(ctx context.Context, q db.Querier) (err error) {
		list, err = db.All(ctx, q, scanTenant, `SELECT id, name, created_at FROM tenants ORDER BY id`)
		return err
	})
	return list, err
}
