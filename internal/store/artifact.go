package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Artifact describes something large that a run wrote.
type Artifact struct {
	// SHA256 is of the content, in lower-case hex: the reference that travels through Temporal.
	SHA256 string
	// Kind is what it was first written as: "summary", "prompt", "answer", "context"…
	Kind string
	// Size of the content in bytes.
	Size int64
}

// PutArtifact keeps data for a conversation and gives the reference. Writing the same data again is harmless.
func (s *Store) PutArtifact(ctx context.Context, ref ConversationRef, kind string, data []byte) (Artifact, error) {
	var a Artifact
	packed := s.pack(data)
	err := s.write(ctx, "write an artifact", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := readable(ctx, tx, ref)
		if err != nil {
			return err
		}
		a, err = putArtifact(ctx, tx, cid, ref.Tenant, kind, packed)
		return err
	})
	return a, err
}

// packed is content made ready for the artifacts table, outside of any transaction.
type packed struct {
	sum  Hash
	size int
	zstd []byte
}

func (s *Store) pack(data []byte) packed {
	return packed{sum: sha256.Sum256(data), size: len(data), zstd: s.zip.EncodeAll(data, nil)}
}

func putArtifact(ctx context.Context, tx pgx.Tx, cid int64, tenant, kind string, p packed) (Artifact, error) {
	a := Artifact{SHA256: p.sum.String(), Size: int64(p.size)}
	// DO UPDATE locks the row against a pruning that goes on beside, and gives the row back in any race. What was
	// pruned is there again.
	var err error
	a.Kind, err = one(ctx, tx, pgx.RowTo[string], `INSERT INTO artifacts (tenant, sha256, kind, size, data) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, sha256) DO UPDATE SET touched_at = now(), data = coalesce(artifacts.data, excluded.data), pruned_at = NULL
		RETURNING kind`,
		tenant, p.sum[:], cleanText(kind), p.size, p.zstd)
	if err != nil {
		return a, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO artifact_links (cid, tenant, sha256) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		cid, tenant, p.sum[:])
	return a, err
}

// GetArtifact reads a tenant's artifact. The content is checked against its hash: what comes back is what was
// written, or an error.
func (s *Store) GetArtifact(ctx context.Context, tenant, sha string) ([]byte, error) {
	sum, err := parseHash(sha)
	if err != nil {
		return nil, fmt.Errorf("store: read an artifact: %w", err)
	}
	var zstd []byte
	err = s.read(ctx, "read an artifact", func(ctx context.Context, q querier) (err error) {
		zstd, err = artifactData(ctx, q, tenant, sum)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.unpack(sum, zstd)
}

func artifactData(ctx context.Context, q querier, tenant string, sum Hash) ([]byte, error) {
	zstd, err := one(ctx, q, pgx.RowTo[[]byte], `SELECT data FROM artifacts WHERE tenant = $1 AND sha256 = $2`, tenant,
		sum[:])
	if err == nil && zstd == nil {
		err = ErrPruned
	}
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", sum, err)
	}
	return zstd, nil
}

func (s *Store) unpack(sum Hash, zstd []byte) ([]byte, error) {
	data, err := s.unzip.DecodeAll(zstd, []byte{})
	if err != nil {
		return nil, fmt.Errorf("store: artifact %s is %w: %w", sum, ErrDamaged, err)
	}
	if Hash(sha256.Sum256(data)) != sum {
		return nil, fmt.Errorf("store: artifact %s is %w: its content has another hash", sum, ErrDamaged)
	}
	return data, nil
}

// parseHash reads a reference. One that cannot be is ErrNotFound: references come from outside too.
func parseHash(s string) (Hash, error) {
	var h Hash
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(h) {
		return h, notFoundf("artifact %q", s)
	}
	copy(h[:], raw)
	return h, nil
}

// optionalHash is parseHash for a field that may be empty: nil.
func optionalHash(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	h, err := parseHash(s)
	return h[:], err
}
