package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// ReplayOptions say how a run is repeated.
type ReplayOptions struct {
	// Live asks the models anew; else their answers are read from the record.
	Live bool
	// Apply makes the summary of a live one take effect.
	Apply bool
	// Batch is the ReplayBatch that it belongs to, "": none. A batch repeats a run once, and starts it by itself.
	Batch string
}

// Replay is what a run is as the repetition of another one.
type Replay struct {
	ReplayOptions
	// Identical says whether everything came out of the record as it was; nil: it has not ended, or is live.
	Identical *bool
	// Comparison is the artifact with what was found, "": not yet.
	Comparison string
}

// ReplayMode is "live" or "recorded" for a run that repeats another one, "" for one that does not.
func (r Run) ReplayMode() string {
	switch {
	case r.ReplayOf == "":
		return ""
	case r.Replay.Live:
		return "live"
	}
	return "recorded"
}

// ReplayWorkflowID is the id of the workflow that repeats a run: beside those that compact the conversation.
func ReplayWorkflowID(ref RunRef) string { return "replay/" + ref.Tenant + "/" + ref.ID }

// replayOfBatch checks that the run which is to be repeated is of the conversation, and gives the replay of it that the
// batch has already, if it has.
func replayOfBatch(ctx context.Context, tx pgx.Tx, c Conversation, req RunRequest) (r Run, found bool, err error) {
	original, err := run(ctx, tx, RunRef{c.Ref.Tenant, req.ReplayOf})
	if err != nil {
		return r, false, err
	}
	if original.Conversation != c.Ref.ID {
		return r, false, invalidf("run %s is not one of conversation %s", req.ReplayOf, c.Ref.ID)
	}
	if req.Replay.Batch == "" {
		return r, false, nil
	}
	id, err := one(ctx, tx, pgx.RowTo[string], `SELECT run FROM replays WHERE batch = $1 AND original = $2`,
		req.Replay.Batch, req.ReplayOf)
	if isNotFound(err) {
		return r, false, nil
	}
	if err == nil {
		r, err = run(ctx, tx, RunRef{c.Ref.Tenant, id})
	}
	return r, true, err
}

// insertReplay writes what a new run is as a replay. One that belongs to no batch is left to a dispatcher to start.
func insertReplay(ctx context.Context, tx pgx.Tx, ref RunRef, req RunRequest) (Run, error) {
	var batch *string
	if req.Replay.Batch != "" {
		batch = &req.Replay.Batch
	}
	_, err := tx.Exec(ctx, `INSERT INTO replays (run, original, live, apply, batch) VALUES ($1, $2, $3, $4, $5)`,
		ref.ID, req.ReplayOf, req.Replay.Live, req.Replay.Apply, batch)
	if err == nil && batch == nil {
		_, err = tx.Exec(ctx, `INSERT INTO outbox (tenant, conversation, run, trace_parent)
			SELECT r.tenant, c.id, r.id, $2 FROM runs r JOIN conversations c ON c.cid = r.cid WHERE r.id = $1`, ref.ID, traceParent(ctx))
	}
	if err != nil {
		return Run{}, err
	}
	return run(ctx, tx, ref)
}

// KeepComparison keeps what a replay found, and whether it came out identical; nil: that is not the question. Keeping
// it again replaces it.
func (s *Store) KeepComparison(ctx context.Context, ref RunRef, comparison []byte, identical *bool) error {
	packed := s.pack(comparison)
	return s.write(ctx, "keep a comparison", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := lockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		if _, err := putArtifact(ctx, tx, cid, ref.Tenant, "comparison", packed); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE replays SET comparison_sha256 = $2, identical = $3 WHERE run = $1`, ref.ID,
			packed.sum[:], identical)
		if err != nil {
			return err
		}
		return sealEnded(ctx, tx, cid, ref.ID)
	})
}

// ReplayFilter picks runs that are to be repeated. Replays themselves are never among them.
type ReplayFilter struct {
	// Failed picks runs that failed, Digest those whose summary is a digest. With neither it is any run that ended,
	// but for those that were cancelled.
	Failed bool `json:"failed,omitempty"`
	Digest bool `json:"digest,omitempty"`
	// ErrorKind is what the run failed with, or for a digest what one of its models failed with.
	ErrorKind pipeline.ErrorKind `json:"error_kind,omitempty"`
	// Conversation is the one whose runs are picked, "": all.
	Conversation string `json:"conversation,omitempty"`
	// Since and Until bound when the run was asked for: from Since on, before Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Effective leaves out what would take no effect: runs after which another one of the conversation came, and
	// digests that are no longer what the context starts from.
	Effective bool `json:"effective,omitempty"`
}

// replayFilter is a ReplayFilter in SQL, its values are args.
const replayFilter = ` FROM runs r JOIN conversations c ON c.cid = r.cid
	WHERE r.tenant = $1 AND r.replay_of IS NULL AND c.content_deleted_at IS NULL
	AND r.outcome IS NOT NULL AND r.outcome <> 'cancelled'
	AND (NOT $2 AND NOT $3 OR $2 AND r.outcome = 'failed' OR $3 AND r.digest AND r.outcome IN ('applied', 'prepared'))
	AND ($4 = '' OR r.error_kind = $4 OR r.digest AND EXISTS (
		SELECT FROM run_steps t WHERE t.run = r.id AND t.stage = 'summarise' AND t.error_kind = $4))
	AND ($5 = '' OR c.id = $5)
	AND ($6::timestamptz IS NULL OR r.created_at >= $6)
	AND ($7::timestamptz IS NULL OR r.created_at < $7)
	AND (NOT $8 OR CASE WHEN r.outcome IN ('applied', 'prepared') THEN EXISTS (
			SELECT FROM markers m WHERE m.run = r.id AND m.id = c.active_marker)
		ELSE NOT EXISTS (
			SELECT FROM runs n LEFT JOIN markers m ON m.run = n.id
			WHERE n.cid = r.cid AND (n.created_at, n.id) > (r.created_at, r.id)
			AND (m.id IS NOT NULL OR n.replay_of IS NULL AND (n.outcome IS NULL OR n.outcome = 'failed'))) END)`

func (f ReplayFilter) args(tenant string) []any {
	return []any{
		tenant, f.Failed, f.Digest, string(f.ErrorKind), cleanText(f.Conversation), timeOrNil(f.Since),
		timeOrNil(f.Until), f.Effective,
	}
}

// Replayable is a run that a filter picked.
type Replayable struct {
	Run          RunRef
	Conversation string
	Outcome      Outcome
	ErrorKind    pipeline.ErrorKind
	Digest       bool
	Created      time.Time
}

// Replayables gives the runs that a filter picks, oldest first, at most limit (1 to 1000); next is "" after the last.
func (s *Store) Replayables(ctx context.Context, tenant string, f ReplayFilter, after string,
	limit int,
) (list []Replayable, next string, err error) {
	from, err := parseCursor(after)
	if err != nil {
		return nil, "", fmt.Errorf("store: look for runs to repeat: %w", err)
	}
	limit = clampLimit(limit)
	err = s.read(ctx, "look for runs to repeat", func(ctx context.Context, q querier) (err error) {
		list, err = all(ctx, q, func(row pgx.CollectableRow) (r Replayable, err error) {
			return r, row.Scan(&r.Run.ID, &r.Run.Tenant, &r.Conversation, &r.Outcome, &r.ErrorKind, &r.Digest,
				&r.Created)
		}, `SELECT r.id, r.tenant, c.id, r.outcome, r.error_kind, r.digest, r.created_at`+replayFilter+`
			AND ($9::timestamptz IS NULL OR (r.created_at, r.id) > ($9, $10))
			ORDER BY r.created_at, r.id LIMIT $11`, append(f.args(tenant), from.at, from.id, limit+1)...)
		return err
	})
	if len(list) > limit {
		list = list[:limit]
		next = makeCursor(list[limit-1].Created, list[limit-1].Run.ID)
	}
	return list, next, err
}

// CountReplayables counts the runs that a filter picks.
func (s *Store) CountReplayables(ctx context.Context, tenant string, f ReplayFilter) (int, error) {
	var n int
	err := s.read(ctx, "count runs to repeat", func(ctx context.Context, q querier) (err error) {
		n, err = one(ctx, q, pgx.RowTo[int], `SELECT count(*)`+replayFilter, f.args(tenant)...)
		return err
	})
	return n, err
}

// BatchRef names a batch of replays of a tenant.
type BatchRef struct {
	Tenant string
	ID     string
}

// ReplayBatch is many replays that were asked for at once.
type ReplayBatch struct {
	Ref        BatchRef
	WorkflowID string
	// Request is what was asked for, a JSON object.
	Request json.RawMessage
	// Total is how many runs matched when it was asked for.
	Total     int
	Cancelled bool
	// Created is when it was asked for, Finished when nothing was left to do; zero: not yet.
	Created, Finished time.Time
}

// ReplayBatchWorkflowID is the id of the workflow that works a batch off.
func ReplayBatchWorkflowID(ref BatchRef) string { return "replays/" + ref.Tenant + "/" + ref.ID }

// CreateReplayBatch makes a batch. request is what is asked for, a JSON object; total how many runs match now.
func (s *Store) CreateReplayBatch(ctx context.Context, tenant string, request json.RawMessage,
	total int,
) (ReplayBatch, error) {
	ref := BatchRef{tenant, newID()}
	request, err := cleanJSON(request)
	if err != nil {
		return ReplayBatch{}, fmt.Errorf("store: make a batch of replays: %w", err)
	}
	var b ReplayBatch
	err = s.write(ctx, "make a batch of replays", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := one(ctx, tx, pgx.RowTo[string], `SELECT id FROM tenants WHERE id = $1`, tenant); err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		_, err := tx.Exec(ctx, `INSERT INTO replay_batches (id, tenant, workflow_id, request, total) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO NOTHING`, ref.ID, tenant, ReplayBatchWorkflowID(ref), request, total)
		if err == nil {
			b, err = replayBatch(ctx, tx, ref)
		}
		return err
	})
	return b, err
}

func replayBatch(ctx context.Context, q querier, ref BatchRef) (ReplayBatch, error) {
	b, err := one(ctx, q, func(row pgx.CollectableRow) (b ReplayBatch, err error) {
		var finished *time.Time
		err = row.Scan(&b.Ref.ID, &b.Ref.Tenant, &b.WorkflowID, (*[]byte)(&b.Request), &b.Total, &b.Cancelled,
			&b.Created, &finished)
		b.Finished = or(finished, time.Time{})
		return b, err
	}, `SELECT id, tenant, workflow_id, request, total, cancelled, created_at, finished_at FROM replay_batches
		WHERE tenant = $1 AND id = $2`, ref.Tenant, cleanText(ref.ID))
	if err != nil {
		return b, fmt.Errorf("batch %q: %w", ref.ID, err)
	}
	return b, nil
}

// GetReplayBatch reads a batch.
func (s *Store) GetReplayBatch(ctx context.Context, ref BatchRef) (ReplayBatch, error) {
	var b ReplayBatch
	err := s.read(ctx, "read a batch of replays", func(ctx context.Context, q querier) (err error) {
		b, err = replayBatch(ctx, q, ref)
		return err
	})
	return b, err
}

// FinishReplayBatch notes that a batch has nothing more to do. The first end counts.
func (s *Store) FinishReplayBatch(ctx context.Context, ref BatchRef, cancelled bool) (ReplayBatch, error) {
	var b ReplayBatch
	err := s.write(ctx, "finish a batch of replays", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE replay_batches SET finished_at = clock_timestamp(), cancelled = $3
			WHERE tenant = $1 AND id = $2 AND finished_at IS NULL`, ref.Tenant, cleanText(ref.ID), cancelled)
		if err == nil {
			b, err = replayBatch(ctx, tx, ref)
		}
		return err
	})
	return b, err
}

// ReplayCount counts the replays of a batch that ended alike.
type ReplayCount struct {
	// Outcome is "" for those that have not ended.
	Outcome   Outcome            `json:"outcome"`
	ErrorKind pipeline.ErrorKind `json:"error_kind"`
	// Identical is set for those from the record.
	Identical *bool `json:"identical,omitempty"`
	Runs      int   `json:"runs"`
}

// ReplayTotals is what has become of a batch's replays so far.
type ReplayTotals struct {
	Counts []ReplayCount
	// Models are their calls of models.
	Models []ModelUsage
	// Different lists replays whose record came out otherwise, at most 100, oldest first.
	Different []string
}

// Runs is how many replays there are, done how many of them have ended.
func (t ReplayTotals) Runs() (all, done int) {
	for _, c := range t.Counts {
		all += c.Runs
		if c.Outcome != "" {
			done += c.Runs
		}
	}
	return all, done
}

// ReplayBatchTotals sums up a batch as it stands.
func (s *Store) ReplayBatchTotals(ctx context.Context, ref BatchRef) (ReplayTotals, error) {
	var t ReplayTotals
	err := s.snapshot(ctx, "sum a batch of replays up", func(ctx context.Context, tx pgx.Tx) error {
		b, err := replayBatch(ctx, tx, ref)
		if err != nil {
			return err
		}
		t.Counts, err = all(ctx, tx, func(row pgx.CollectableRow) (c ReplayCount, err error) {
			return c, row.Scan(&c.Outcome, &c.ErrorKind, &c.Identical, &c.Runs)
		}, `SELECT coalesce(r.outcome, ''), r.error_kind, p.identical, count(*) FROM replays p JOIN runs r ON r.id = p.run
			WHERE p.batch = $1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`, b.Ref.ID)
		if err != nil {
			return err
		}
		t.Models, err = all(ctx, tx, func(row pgx.CollectableRow) (m ModelUsage, err error) {
			return m, row.Scan(&m.Vendor, &m.Model, &m.Input, &m.CachedInput, &m.CacheWrite, &m.Output, &m.Calls)
		}, `SELECT l.vendor, l.model, sum(l.input_tokens)::bigint, sum(l.cached_input_tokens)::bigint, sum(l.cache_write_tokens)::bigint,
				sum(l.output_tokens)::bigint, count(*)
			FROM replays p JOIN usage_ledger l ON l.run = p.run WHERE p.batch = $1 GROUP BY 1, 2 ORDER BY 1, 2`, b.Ref.ID)
		if err != nil {
			return err
		}
		t.Different, err = all(ctx, tx, pgx.RowTo[string],
			`SELECT run FROM replays WHERE batch = $1 AND NOT identical ORDER BY run LIMIT 100`, b.Ref.ID)
		return err
	})
	return t, err
}
