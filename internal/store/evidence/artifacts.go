package evidence

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// ArtifactReference is a run's reference to an artifact.
type ArtifactReference struct {
	SHA256 string
	// Table, Key and Column locate the reference; Role is what the artifact is, for display.
	Table, Key, Column, Role string
}

// References lists the artifacts that a run, its attempts, its model calls and its marker refer to.
func (v *Verification) References(ctx context.Context, run string) ([]ArtifactReference, error) {
	return db.All(ctx, v.tx, func(row pgx.CollectableRow) (r ArtifactReference, err error) {
		return r, row.Scan(&r.SHA256, &r.Table, &r.Key, &r.Column, &r.Role)
	}, `SELECT encode(context_sha256, 'hex'), 'runs', id, 'context_sha256', 'context' FROM runs WHERE id = $1
		AND context_sha256 IS NOT NULL
		UNION ALL SELECT encode(snapshot_sha256, 'hex'), 'runs', id, 'snapshot_sha256', 'state' FROM runs
		WHERE id = $1 AND snapshot_sha256 IS NOT NULL
		UNION ALL SELECT value, 'run_attempts', concat_ws('/', run, stage, call, attempt), 'artifacts', key
			FROM run_attempts, jsonb_each_text(artifacts) WHERE run = $1 AND value <> ''
		UNION ALL SELECT encode(request_sha256, 'hex'), 'usage_ledger', concat_ws('/', run, call, attempt),
		'request_sha256', 'request'
			FROM usage_ledger WHERE run = $1 AND request_sha256 IS NOT NULL
		UNION ALL SELECT encode(answer_sha256, 'hex'), 'usage_ledger', concat_ws('/', run, call, attempt),
		'answer_sha256', 'answer'
			FROM usage_ledger WHERE run = $1 AND answer_sha256 IS NOT NULL
		UNION ALL SELECT encode(comparison_sha256, 'hex'), 'replays', run, 'comparison_sha256', 'comparison'
			FROM replays WHERE run = $1 AND comparison_sha256 IS NOT NULL
		UNION ALL SELECT encode(summary_sha256, 'hex'), 'markers', id, 'summary_sha256', 'summary'
			FROM markers WHERE run = $1 AND summary_sha256 IS NOT NULL
		UNION ALL SELECT encode(native_sha256, 'hex'), 'markers', id, 'native_sha256', 'native'
			FROM markers WHERE run = $1 AND native_sha256 IS NOT NULL
		UNION ALL SELECT draft ->> 'summary', 'markers', id, 'draft', 'summary text' FROM markers WHERE run = $1
		AND draft ->> 'summary' <> ''
		ORDER BY 2, 3, 4, 5`, run)
}

// Artifact reads and verifies a referenced artifact. If it is pruned, missing or changed, data is nil and a finding is
// added to f.
func (v *Verification) Artifact(ctx context.Context, f *Findings, r ArtifactReference) (data []byte, err error) {
	f.Checked++
	c := v.Conversation
	sum, err := db.ParseHash(r.SHA256)
	if err != nil {
		f.add(Tampered, r.Table, r.Key, r.Column, "the reference to its %s is not a SHA-256", r.Role)
		return nil, nil
	}
	type stored struct {
		size   int64
		zstd   []byte
		pruned *time.Time
		linked bool
	}
	a, err := db.One(ctx, v.tx, func(row pgx.CollectableRow) (a stored, err error) {
		return a, row.Scan(&a.size, &a.zstd, &a.pruned, &a.linked)
	}, `SELECT size, data, pruned_at, EXISTS (SELECT FROM artifact_links l WHERE l.cid = $3 AND l.tenant = a.tenant
		AND l.sha256 = a.sha256)
		FROM artifacts a WHERE tenant = $1 AND sha256 = $2`, c.Ref.Tenant, sum[:], c.CID)
	key := sum.String()
	switch {
	case db.IsNotFound(err) && !c.ContentDeleted.IsZero():
		f.add(Pruned, "artifacts", key, "", "the %s went with the conversation's content", r.Role)
		return nil, nil
	case db.IsNotFound(err):
		f.add(Missing, "artifacts", key, "", "%s %s refers to it as its %s, and it is not there", r.Table, r.Key,
			r.Role)
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch {
	case !a.linked && !c.ContentDeleted.IsZero(): // what is there is another conversation's with the same text
		f.add(Pruned, "artifacts", key, "", "the %s went with the conversation's content", r.Role)
		return nil, nil
	case !a.linked:
		f.add(Missing, "artifact_links", key, "", "the %s is not noted as this conversation's", r.Role)
	}
	if a.pruned != nil {
		pruned, err := v.prunings(ctx)
		if err != nil {
			return nil, err
		}
		p, ok := pruned.artifacts[sum]
		if !ok || p.Size != a.size {
			f.add(Tampered, "artifacts", key, "pruned_at",
				"the %s says that it was pruned, and no pruning is on record", r.Role)
			return nil, nil
		}
		f.add(Pruned, "artifacts", key, "data", "the %s was pruned on %s", r.Role, v.day(p.at, a.pruned))
		return nil, nil
	}
	if data, err = v.db.Unpack(sum, a.zstd); err != nil {
		f.add(Tampered, "artifacts", key, "data", "the %s of %s %s is not what its hash commits to", r.Role,
			r.Table, r.Key)
		return nil, nil
	}
	if int64(len(data)) != a.size {
		f.add(Tampered, "artifacts", key, "size", "the %s has %d bytes, and its row says %d", r.Role, len(data),
			a.size)
	}
	return data, nil
}
