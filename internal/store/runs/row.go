package runs

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// UnderWay reports whether a conversation has an unfinished run, replays included.
func UnderWay(ctx context.Context, q db.Querier, cid int64) (bool, error) {
	return db.One(ctx, q, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM runs WHERE cid = $1 AND outcome IS NULL)`, cid)
}

// FailedByFault reports whether a run of a conversation has failed by a fault of ours (kind internal) in the last 30
// days. What the conversation holds is kept that long, so that the fault can be found.
func FailedByFault(ctx context.Context, q db.Querier, cid int64) (bool, error) {
	return db.One(ctx, q, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM runs WHERE cid = $1 AND outcome = 'failed'
		AND error_kind = 'internal' AND finished_at > now() - interval '30 days')`, cid)
}

const runColumns = `r.id, r.tenant, c.id, r.workflow_id, r.temporal_run_id, coalesce(r.outcome, ''), r.error_kind,
	r.reason,
	r.trigger_kind, r.trigger, r.focus, r.full, r.force_external, r.prepare, r.prompt_override, r.summarizer_override,
	r.settings, r.versions, coalesce(r.replay_of, ''), r.requested_head, r.summarizer, r.rung, r.prompt_name,
	r.prompt_version, r.mode, r.digest, r.covers_from, r.covers_to, r.covered_messages, r.covered_chain,
	r.tokens_before,
	r.tokens_after, r.context_sha256, r.snapshot_sha256, r.head_seq, r.verification, r.numbers, coalesce(m.id, ''),
	coalesce(m.status, ''), m.ended_at, u.input, u.cached, u.written, u.output, u.calls, u.lost, models.list,
	r.created_at,
	r.started_at, r.finished_at, coalesce(p.live, false), coalesce(p.apply, false), coalesce(p.batch, ''),
	p.identical, p.comparison_sha256`

// runJoins joins what runColumns reads from other tables.
const runJoins = ` FROM runs r JOIN conversations c ON c.cid = r.cid LEFT JOIN markers m ON m.run = r.id
	LEFT JOIN replays p ON p.run = r.id
	CROSS JOIN LATERAL (
		SELECT coalesce(sum(input_tokens), 0)::bigint AS input, coalesce(sum(cached_input_tokens), 0)::bigint AS cached,
			coalesce(sum(cache_write_tokens), 0)::bigint AS written, coalesce(sum(output_tokens), 0)::bigint AS output,
			count(*) AS calls, count(*) FILTER (WHERE state = 'started' AND (r.outcome IS NOT NULL OR EXISTS (
				SELECT FROM usage_ledger later WHERE later.run = l.run
				AND (later.call, later.attempt) > (l.call, l.attempt)
			))) AS lost
		FROM usage_ledger l WHERE l.run = r.id
	) u CROSS JOIN LATERAL (
		SELECT coalesce(jsonb_agg(sums ORDER BY vendor, model), '[]') AS list FROM (
			SELECT vendor, model, sum(input_tokens) AS input, sum(cached_input_tokens) AS cached,
			sum(cache_write_tokens) AS written,
				sum(output_tokens) AS output, count(*) AS calls
			FROM usage_ledger l WHERE l.run = r.id GROUP BY vendor, model
		) sums
	) models`

func scanRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	var focus, chain, context, snapshot, comparison []byte
	var started, finished, ended *time.Time
	err := row.Scan(&r.Ref.ID, &r.Ref.Tenant, &r.Conversation, &r.WorkflowID, &r.TemporalRunID, &r.Outcome,
		&r.ErrorKind,
		&r.Reason, &r.Kind, (*[]byte)(&r.Trigger), &focus, &r.Full, &r.ForceExternal, &r.Prepare, &r.Prompt,
		&r.Summarizer, (*[]byte)(&r.Settings), (*[]byte)(&r.Versions), &r.ReplayOf, &r.RequestedHead,
		&r.Facts.Summarizer, &r.Facts.Rung, &r.Facts.PromptName, &r.Facts.PromptVersion, &r.Facts.Mode, &r.Facts.Digest,
		&r.Facts.CoversFrom, &r.Facts.CoversTo, &r.Facts.CoveredMessages, &chain, &r.Facts.TokensBefore,
		&r.Facts.TokensAfter, &context, &snapshot, &r.Facts.Head, (*[]byte)(&r.Facts.Verification),
		(*[]byte)(&r.Facts.Numbers), &r.Marker, &r.MarkerStatus, &ended, &r.Usage.Input, &r.Usage.CachedInput,
		&r.Usage.CacheWrite, &r.Usage.Output, &r.Usage.Calls, &r.Usage.Lost, &r.Models,
		&r.Created, &started, &finished, &r.Replay.Live, &r.Replay.Apply, &r.Replay.Batch, &r.Replay.Identical,
		&comparison)
	r.Replay.Comparison = hex.EncodeToString(comparison) // NULL is ""
	r.Focus = string(focus)
	copy(r.Facts.CoveredChain[:], chain)
	r.Facts.Context, r.Facts.Snapshot = hex.EncodeToString(context), hex.EncodeToString(snapshot)
	r.Started, r.Finished, r.MarkerEnded = db.Or(started, time.Time{}), db.Or(finished, time.Time{}),
		db.Or(ended, time.Time{})
	return r, err
}

// Find reads a run without its attempts.
func Find(ctx context.Context, q db.Querier, ref db.RunRef) (Run, error) {
	if !db.PossibleID(ref.ID, 64) || !db.PossibleID(ref.Tenant, 64) {
		return Run{}, db.NotFoundf("run %q", ref.ID)
	}
	r, err := db.One(ctx, q, scanRun, `SELECT `+runColumns+runJoins+` WHERE r.tenant = $1 AND r.id = $2`, ref.Tenant,
		ref.ID)
	if err != nil {
		return r, fmt.Errorf("run %q: %w", ref.ID, err)
	}
	return r, nil
}

// Get reads a run with its attempts.
func (s *Store) Get(ctx context.Context, ref db.RunRef) (Run, error) {
	var r Run
	err := s.db.Snapshot(ctx, "read a run", func(ctx context.Context, tx pgx.Tx) (err error) {
		r, err = FindWithAttempts(ctx, tx, ref)
		return err
	})
	return r, err
}

// FindWithAttempts reads a run with its attempts.
func FindWithAttempts(ctx context.Context, q db.Querier, ref db.RunRef) (Run, error) {
	r, err := Find(ctx, q, ref)
	if err != nil {
		return r, err
	}
	r.Attempts, err = db.All(ctx, q, scanAttempt,
		`SELECT `+attemptColumns+` FROM run_attempts s WHERE s.run = $1 ORDER BY s.call, s.attempt, s.id`, ref.ID)
	return r, err
}

// lockedRun reads a run after locking its conversation's row, which everything that ends a run must do.
func lockedRun(ctx context.Context, tx pgx.Tx, ref db.RunRef) (Run, error) {
	r, err := Find(ctx, tx, ref)
	if err != nil {
		return r, err
	}
	if _, err := conversations.Lock(ctx, tx, db.ConversationRef{Tenant: ref.Tenant, ID: r.Conversation}); err != nil {
		return r, err
	}
	return Find(ctx, tx, ref)
}

// Owns returns ErrNotFound unless the run belongs to the tenant.
func Owns(ctx context.Context, q db.Querier, ref db.RunRef) error {
	if !db.PossibleID(ref.ID, 64) || !db.PossibleID(ref.Tenant, 64) {
		return db.NotFoundf("run %q", ref.ID)
	}
	if _, err := db.One(ctx, q, pgx.RowTo[string], `SELECT id FROM runs WHERE tenant = $1 AND id = $2`, ref.Tenant,
		ref.ID); err != nil {
		return fmt.Errorf("run %q: %w", ref.ID, err)
	}
	return nil
}
