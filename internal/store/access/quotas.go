package access

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Quota is what one tenant may store; 0: no limit.
type Quota struct {
	// Bytes bounds the content that is stored, Conversations the number of conversations.
	Bytes, Conversations int64
}

// Stored is what a tenant has stored.
type Stored struct {
	// Bytes are those of messages, live state and notes, and of the JSON of conversations.
	Bytes int64
	// Conversations are those whose content was not deleted.
	Conversations int64
}

// Stored returns what a tenant has stored.
func (t *Tenants) Stored(ctx context.Context, tenant string) (Stored, error) {
	var s Stored
	err := t.db.Read(ctx, "read what a tenant has stored", func(ctx context.Context, q db.Querier) (err error) {
		s, err = db.One(ctx, q, scanStored, `SELECT bytes, conversations FROM tenant_usage WHERE tenant = $1`, tenant)
		if db.IsNotFound(err) {
			return nil // nothing yet
		}
		return err
	})
	return s, err
}

func scanStored(row pgx.CollectableRow) (s Stored, err error) {
	return s, row.Scan(&s.Bytes, &s.Conversations)
}

// WithQuota returns a context whose transactions fail with a *db.QuotaError if they add to what a tenant has stored
// and it is then over its quota. The tenant's row is locked from the check to the commit, so that no two transactions
// pass it together. What removes content, or adds none, never fails.
func WithQuota(ctx context.Context, tenant string, quota Quota) context.Context {
	if quota == (Quota{}) {
		return ctx
	}
	return db.WithLastStatement(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var stored, grown Stored
		batch := &pgx.Batch{}
		// The deferred trigger adds this transaction's changes to the tenant's row.
		batch.Queue(`SET CONSTRAINTS tenant_usage_fold IMMEDIATE`)
		batch.Queue(`SELECT coalesce(sum(bytes), 0)::bigint, coalesce(sum(conversations), 0)::bigint,
				coalesce(nullif(current_setting('precis.grown_bytes', true), '')::bigint, 0),
				coalesce(nullif(current_setting('precis.grown_conversations', true), '')::bigint, 0)
			FROM tenant_usage WHERE tenant = $1`, tenant).QueryRow(func(row pgx.Row) error {
			return row.Scan(&stored.Bytes, &stored.Conversations, &grown.Bytes, &grown.Conversations)
		})
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		return quota.check(stored, grown)
	})
}

func (q Quota) check(stored, grown Stored) error {
	switch {
	case q.Conversations > 0 && grown.Conversations > 0 && stored.Conversations > q.Conversations:
		return &db.QuotaError{Detail: fmt.Sprintf(
			"the tenant has %d conversations, which is its quota (quotas.conversations): ask the operator to raise it",
			q.Conversations)}
	case q.Bytes > 0 && grown.Bytes > 0 && stored.Bytes > q.Bytes:
		return &db.QuotaError{Detail: fmt.Sprintf(
			"with this request the tenant would have stored %d bytes, and its quota is %d (quotas.storage_bytes): ask "+
				"the operator to raise it, or to prune", stored.Bytes, q.Bytes)}
	}
	return nil
}
