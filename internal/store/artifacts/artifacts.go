// Package artifacts keeps large content by its SHA-256, compressed and once per tenant.
package artifacts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// Store writes and reads artifacts.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Linked checks that an artifact belongs to the conversation, and locks it so that it is not pruned before a marker
// refers to it. It accepts "" for no artifact.
func Linked(ctx context.Context, tx pgx.Tx, c conversations.Conversation, sha string) error {
	sum, err := db.OptionalHash(sha)
	if err != nil || sum == nil {
		return err
	}
	_, err = db.One(ctx, tx, pgx.RowTo[string],
		`SELECT a.kind FROM artifacts a JOIN artifact_links l USING (tenant, sha256)
		WHERE l.cid = $1 AND a.tenant = $2 AND a.sha256 = $3 FOR KEY SHARE OF a`, c.CID, c.Ref.Tenant, sum)
	if err != nil {
		return fmt.Errorf("artifact %s of this conversation: %w", sha, err)
	}
	return nil
}

// Artifact describes one piece of content.
type Artifact struct {
	// SHA256 is of the content, in lower-case hex: the reference that travels through Temporal.
	SHA256 string
	// Kind is the kind with which the content was first written.
	Kind contract.ArtifactKind
	// Size of the content in bytes.
	Size int64
}

// Put stores data for a conversation and returns its reference. The same data may be written again.
func (s *Store) Put(ctx context.Context, ref db.ConversationRef, kind contract.ArtifactKind,
	data []byte,
) (Artifact, error) {
	var a Artifact
	packed := s.db.Pack(data)
	err := s.db.Write(ctx, "write an artifact", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := conversations.Readable(ctx, tx, ref)
		if err != nil {
			return err
		}
		a, err = Put(ctx, tx, cid, ref.Tenant, kind, packed)
		return err
	})
	return a, err
}

// Put is Store.Put within a transaction, for content that is packed already.
func Put(ctx context.Context, tx pgx.Tx, cid int64, tenant string, kind contract.ArtifactKind,
	p db.Packed,
) (Artifact, error) {
	a := Artifact{SHA256: p.Sum.String(), Size: int64(p.Size)}
	// DO UPDATE locks the row against a concurrent pruning, and returns the row in any race. Content that was pruned is
	// stored again.
	var err error
	a.Kind, err = db.One(ctx, tx, pgx.RowTo[contract.ArtifactKind],
		`INSERT INTO artifacts (tenant, sha256, kind, size, data) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, sha256) DO UPDATE SET touched_at = now(), data = coalesce(artifacts.data, excluded.data),
			pruned_at = NULL
		RETURNING kind`,
		tenant, p.Sum[:], string(kind), p.Size, p.Zstd)
	if err != nil {
		return a, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO artifact_links (cid, tenant, sha256) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		cid, tenant, p.Sum[:])
	return a, err
}

// Get reads a tenant's artifact. Content that does not match its hash is ErrDamaged.
func (s *Store) Get(ctx context.Context, tenant, sha string) ([]byte, error) {
	return Get(ctx, s.db, tenant, sha)
}

// Get is Store.Get without a Store.
func Get(ctx context.Context, d *db.DB, tenant, sha string) ([]byte, error) {
	sum, err := db.ParseHash(sha)
	if err != nil {
		return nil, db.Failed("read an artifact", err)
	}
	var zstd []byte
	err = d.Read(ctx, "read an artifact", func(ctx context.Context, q db.Querier) (err error) {
		zstd, err = Data(ctx, q, tenant, sum)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.Unpack(sum, zstd)
}

// Data reads the compressed content of an artifact, ErrPruned if it was pruned.
func Data(ctx context.Context, q db.Querier, tenant string, sum db.Hash) ([]byte, error) {
	zstd, err := db.One(ctx, q, pgx.RowTo[[]byte], `SELECT data FROM artifacts WHERE tenant = $1 AND sha256 = $2`,
		tenant,
		sum[:])
	if err == nil && zstd == nil {
		err = db.ErrPruned
	}
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", sum, err)
	}
	return zstd, nil
}
