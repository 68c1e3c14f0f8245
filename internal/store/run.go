package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// Outcome is how a run ended; "" while it has not.
type Outcome string

// The outcomes.
const (
	OutcomeApplied    Outcome = "applied"
	OutcomePrepared   Outcome = "prepared"
	OutcomeSkipped    Outcome = "skipped"
	OutcomeSuperseded Outcome = "superseded"
	OutcomeCancelled  Outcome = "cancelled"
	OutcomeFailed     Outcome = "failed"
	// OutcomeReplayed is that of a replay that came to its end and took no effect.
	OutcomeReplayed Outcome = "replayed"
)

// RunRequest asks for a compaction.
type RunRequest struct {
	// Kind is the trigger: "tokens", "turns", "manual", "background" or "overflow".
	Kind pipeline.TriggerKind
	// Trigger is the decision with its numbers, a JSON object.
	Trigger json.RawMessage
	// Focus is the user's own, any bytes.
	Focus         string
	Full          bool
	ForceExternal bool
	// Prepare asks for a summary that waits instead of taking effect.
	Prepare bool
	// Prompt and Summarizer are asked for instead of what the settings say, "": nothing.
	Prompt, Summarizer string
	// Settings are the effective ones as JSON, a snapshot: later changes do not touch the run.
	Settings json.RawMessage
	// Versions of code, prompts and configuration, a JSON object.
	Versions json.RawMessage
	// Hold is how long dispatchers leave the run to its caller, who starts its workflow; after that they start it, as
	// they start any other at once.
	Hold time.Duration
	// ReplayOf is the run that this one repeats, "": none. A replay runs beside others.
	ReplayOf string
	Replay   ReplayOptions
}

// Run is one row of runs, with the sums of its model calls.
type Run struct {
	Ref          RunRef
	Conversation string
	WorkflowID   string
	// TemporalRunID is "" until the workflow has started.
	TemporalRunID string
	// Outcome is "" while the run is unfinished.
	Outcome   Outcome
	ErrorKind pipeline.ErrorKind
	Reason    string

	Kind               pipeline.TriggerKind
	Trigger            json.RawMessage
	Focus              string
	Full               bool
	ForceExternal      bool
	Prepare            bool
	Prompt, Summarizer string // what was asked for instead of the settings
	Settings, Versions json.RawMessage
	ReplayOf           string
	// Replay is what it is as a replay, zero for a run that is none.
	Replay Replay
	// RequestedHead is the head of the conversation when the run was asked for.
	RequestedHead int64

	Facts RunFacts
	// Marker is the one that the run wrote, "": none. MarkerStatus is what has become of it, MarkerEnded when it was
	// undone or discarded.
	Marker       string
	MarkerStatus MarkerStatus
	MarkerEnded  time.Time
	Usage        RunUsage
	// Models are the same calls by model.
	Models []ModelUsage
	// Created is when it was asked for, Started when a worker took it up, Finished when it ended; zero: not yet.
	Created, Started, Finished time.Time
	// Steps are set by GetRun only.
	Steps []Step
}

// RunFacts are what a run finds out on its way. Recording them again replaces those that are not zero.
type RunFacts struct {
	// Summarizer wrote the summary; Rung is the step of the ladder that led to it.
	Summarizer, Rung string
	PromptName       string
	PromptVersion    string
	Mode             pipeline.Mode
	Digest           bool
	// CoversFrom and CoversTo are sequence numbers, CoveredMessages counts what was summarized.
	CoversFrom, CoversTo int64
	CoveredMessages      int
	// CoveredChain is Message.Chain at CoversTo.
	CoveredChain Hash
	// TokensBefore and TokensAfter are of the whole context.
	TokensBefore, TokensAfter int
	// Context is the artifact of the context as it was written.
	Context string
	// Verification and Numbers are JSON objects. Numbers are merged key by key.
	Verification, Numbers json.RawMessage
}

// RunUsage sums a run's model calls, failed ones too.
type RunUsage struct {
	// Tokens. Input does not count CachedInput and CacheWrite.
	Input, CachedInput, CacheWrite, Output int64
	Calls                                  int
	// Lost counts calls that were begun and never ended: perhaps paid for, and the answer gone.
	Lost int
}

// ModelUsage sums the calls of one model, failed ones too.
type ModelUsage struct {
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	// Tokens. Input does not count CachedInput and CacheWrite.
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached"`
	CacheWrite  int64 `json:"written"`
	Output      int64 `json:"output"`
	Calls       int   `json:"calls"`
}

const runColumns = `r.id, r.tenant, c.id, r.workflow_id, r.temporal_run_id, coalesce(r.outcome, ''), r.error_kind, r.reason,
	r.trigger_kind, r.trigger, r.focus, r.full, r.force_external, r.prepare, r.prompt_override, r.summarizer_override,
	r.settings, r.versions, coalesce(r.replay_of, ''), r.requested_head, r.summarizer, r.rung, r.prompt_name,
	r.prompt_version, r.mode, r.digest, r.covers_from, r.covers_to, r.covered_messages, r.covered_chain, r.tokens_before,
	r.tokens_after, r.context_sha256, r.verification, r.numbers, coalesce(m.id, ''),
	coalesce(m.status, ''), m.ended_at, u.input, u.cached, u.written, u.output, u.calls, u.lost, models.list, r.created_at,
	r.started_at, r.finished_at, coalesce(p.live, false), coalesce(p.apply, false), coalesce(p.batch, ''), p.identical, p.comparison_sha256`

// runJoins adds what a run's row does not hold itself.
const runJoins = ` FROM runs r JOIN conversations c ON c.cid = r.cid LEFT JOIN markers m ON m.run = r.id
	LEFT JOIN replays p ON p.run = r.id
	CROSS JOIN LATERAL (
		SELECT coalesce(sum(input_tokens), 0)::bigint AS input, coalesce(sum(cached_input_tokens), 0)::bigint AS cached,
			coalesce(sum(cache_write_tokens), 0)::bigint AS written, coalesce(sum(output_tokens), 0)::bigint AS output,
			count(*) AS calls, count(*) FILTER (WHERE state = 'started' AND (r.outcome IS NOT NULL OR EXISTS (
				SELECT FROM usage_ledger later WHERE later.run = l.run AND (later.call, later.attempt) > (l.call, l.attempt)
			))) AS lost
		FROM usage_ledger l WHERE l.run = r.id
	) u CROSS JOIN LATERAL (
		SELECT coalesce(jsonb_agg(sums ORDER BY vendor, model), '[]') AS list FROM (
			SELECT vendor, model, sum(input_tokens) AS input, sum(cached_input_tokens) AS cached, sum(cache_write_tokens) AS written,
				sum(output_tokens) AS output, count(*) AS calls
			FROM usage_ledger l WHERE l.run = r.id GROUP BY vendor, model
		) sums
	) models`

func scanRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	var focus, chain, context, comparison []byte
	var started, finished, ended *time.Time
	err := row.Scan(&r.Ref.ID, &r.Ref.Tenant, &r.Conversation, &r.WorkflowID, &r.TemporalRunID, &r.Outcome,
		&r.ErrorKind,
		&r.Reason, &r.Kind, (*[]byte)(&r.Trigger), &focus, &r.Full, &r.ForceExternal, &r.Prepare, &r.Prompt,
		&r.Summarizer, (*[]byte)(&r.Settings), (*[]byte)(&r.Versions), &r.ReplayOf, &r.RequestedHead,
		&r.Facts.Summarizer, &r.Facts.Rung, &r.Facts.PromptName, &r.Facts.PromptVersion, &r.Facts.Mode, &r.Facts.Digest,
		&r.Facts.CoversFrom, &r.Facts.CoversTo, &r.Facts.CoveredMessages, &chain, &r.Facts.TokensBefore,
		&r.Facts.TokensAfter, &context, (*[]byte)(&r.Facts.Verification), (*[]byte)(&r.Facts.Numbers), &r.Marker,
		&r.MarkerStatus, &ended, &r.Usage.Input, &r.Usage.CachedInput, &r.Usage.CacheWrite, &r.Usage.Output,
		&r.Usage.Calls, &r.Usage.Lost, &r.Models,
		&r.Created, &started, &finished, &r.Replay.Live, &r.Replay.Apply, &r.Replay.Batch, &r.Replay.Identical,
		&comparison)
	r.Replay.Comparison = hex.EncodeToString(comparison) // NULL is ""
	r.Focus = string(focus)
	copy(r.Facts.CoveredChain[:], chain)
	if context != nil {
		r.Facts.Context = hex.EncodeToString(context)
	}
	r.Started, r.Finished, r.MarkerEnded = or(started, time.Time{}), or(finished, time.Time{}), or(ended, time.Time{})
	return r, err
}

// RequestRun asks for a compaction of a conversation, and leaves word for a dispatcher to start its workflow, in one
// transaction. While a run is unfinished it gives that one instead (attached is true): a conversation is compacted
// once at a time. One that only prepares takes effect from then on, unless preparing is what is asked for. By hand,
// with a reply open: ErrReplyOpen.
func (s *Store) RequestRun(ctx context.Context, ref ConversationRef, req RunRequest) (r Run, attached bool, err error) {
	clean, err := req.cleaned()
	if err != nil {
		return r, false, fmt.Errorf("store: request a run: %w", err)
	}
	id := newID()
	err = s.write(ctx, "request a run", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		r, attached, err = requestLocked(ctx, tx, c, id, clean)
		return err
	})
	return r, attached, err
}

// cleaned is the request as it can be written, or what is wrong with it.
func (req RunRequest) cleaned() (RunRequest, error) {
	var err error
	if req.Trigger, err = cleanJSON(req.Trigger); err != nil {
		return req, fmt.Errorf("trigger: %w", err)
	}
	if req.Versions, err = cleanJSON(req.Versions); err != nil {
		return req, fmt.Errorf("versions: %w", err)
	}
	if !goodTrigger(req.Kind) {
		return req, invalidf("trigger kind %q", req.Kind)
	}
	if req.Replay != (ReplayOptions{}) && req.ReplayOf == "" || req.Replay.Apply && !req.Replay.Live {
		return req, invalidf("a replay repeats a run, and only a live one takes effect")
	}
	return req, nil
}

// requestLocked asks for a run of a conversation whose row the transaction holds.
func requestLocked(ctx context.Context, tx pgx.Tx, c Conversation, id string,
	req RunRequest,
) (r Run, attached bool, err error) {
	if !c.ContentDeleted.IsZero() {
		return r, false, ErrContentDeleted
	}
	if req.Kind == triggerManual && req.ReplayOf == "" {
		if err := noReplyOpen(ctx, tx, c.cid); err != nil {
			return r, false, err
		}
	}
	var replayOf *string
	workflow := WorkflowID(c.Ref)
	if req.ReplayOf == "" {
		r, err = one(ctx, tx, scanRun,
			`SELECT `+runColumns+runJoins+` WHERE r.cid = $1 AND r.outcome IS NULL AND r.replay_of IS NULL`, c.cid)
		if err == nil {
			r, err = promote(ctx, tx, r, req)
			return r, true, err
		}
		if !isNotFound(err) {
			return r, false, err
		}
	} else {
		r, attached, err = replayOfBatch(ctx, tx, c, req)
		if err != nil || attached {
			return r, attached, err
		}
		replayOf, workflow = &req.ReplayOf, ReplayWorkflowID(RunRef{c.Ref.Tenant, id})
	}
	_, err = tx.Exec(ctx, `INSERT INTO runs (id, cid, tenant, workflow_id, requested_head, trigger_kind, trigger, focus, "full",
			force_external, prepare, prompt_override, summarizer_override, settings, versions, replay_of)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		id, c.cid, c.Ref.Tenant, workflow, c.HeadSeq, string(req.Kind), req.Trigger, []byte(req.Focus), req.Full,
		req.ForceExternal, req.Prepare, cleanText(req.Prompt), cleanText(req.Summarizer), []byte(req.Settings),
		req.Versions, replayOf)
	if err != nil {
		return r, false, err
	}
	if replayOf != nil {
		r, err = insertReplay(ctx, tx, RunRef{c.Ref.Tenant, id}, req)
		return r, false, err
	}
	_, err = tx.Exec(
		ctx, `INSERT INTO outbox (tenant, conversation, run, trace_parent, due_at) VALUES ($1, $2, $3, $4, now() + $5)`,
		c.Ref.Tenant, c.Ref.ID, id, traceParent(ctx), req.Hold)
	if err != nil {
		return r, false, err
	}
	if _, err := appendEvent(ctx, tx, c.cid, Event{Kind: EventTrigger, Run: id, Data: req.Trigger}); err != nil {
		return r, false, err
	}
	r, err = run(ctx, tx, RunRef{c.Ref.Tenant, id})
	return r, false, err
}

// promote makes a run under way that only prepares take effect, when a request that joins it wants that.
func promote(ctx context.Context, tx pgx.Tx, r Run, req RunRequest) (Run, error) {
	if !r.Prepare || req.Prepare {
		return r, nil
	}
	r.Prepare = false
	_, err := tx.Exec(ctx, `UPDATE runs SET prepare = false WHERE id = $1`, r.Ref.ID)
	return r, err
}

const triggerManual pipeline.TriggerKind = "manual"

func goodTrigger(k pipeline.TriggerKind) bool {
	switch k {
	case "tokens", "turns", triggerManual, "background", "overflow":
		return true
	}
	return false
}

// WorkflowID is the id of the workflow that compacts a conversation, at most 255 bytes.
func WorkflowID(ref ConversationRef) string { return "compaction/" + ref.Tenant + "/" + ref.ID }

func run(ctx context.Context, q querier, ref RunRef) (Run, error) {
	if !goodID(ref.ID, 64) || !goodID(ref.Tenant, 64) {
		return Run{}, notFoundf("run %q", ref.ID)
	}
	r, err := one(ctx, q, scanRun, `SELECT `+runColumns+runJoins+` WHERE r.tenant = $1 AND r.id = $2`, ref.Tenant,
		ref.ID)
	if err != nil {
		return r, fmt.Errorf("run %q: %w", ref.ID, err)
	}
	return r, nil
}

// GetRun reads a run with its steps.
func (s *Store) GetRun(ctx context.Context, ref RunRef) (Run, error) {
	var r Run
	err := s.snapshot(ctx, "read a run", func(ctx context.Context, tx pgx.Tx) (err error) {
		if r, err = run(ctx, tx, ref); err != nil {
			return err
		}
		r.Steps, err = all(ctx, tx, scanStep,
			`SELECT `+stepColumns+` FROM run_steps s WHERE s.run = $1 ORDER BY s.call, s.attempt, s.id`, ref.ID)
		return err
	})
	return r, err
}

// StartRun notes that a workflow execution has taken the run up. Called again it changes nothing but a new Temporal
// run id. It gives the run as it is: a finished one is to be left alone.
func (s *Store) StartRun(ctx context.Context, ref RunRef, temporalRunID string) (Run, error) {
	var r Run
	err := s.write(ctx, "start a run", func(ctx context.Context, tx pgx.Tx) (err error) {
		if _, err = run(ctx, tx, ref); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE runs SET temporal_run_id = CASE WHEN $3 = '' THEN temporal_run_id ELSE $3 END,
			started_at = coalesce(started_at, now()) WHERE tenant = $1 AND id = $2 AND outcome IS NULL`, ref.Tenant, ref.ID, temporalRunID)
		if err != nil {
			return err
		}
		r, err = run(ctx, tx, ref)
		return err
	})
	return r, err
}

// RecordFacts adds to what is known of a run, finished or not.
func (s *Store) RecordFacts(ctx context.Context, ref RunRef, f RunFacts) error {
	return s.write(ctx, "record a run's facts", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := lockRun(ctx, tx, ref)
		if err != nil {
			return err
		}
		if err := recordFacts(ctx, tx, ref, f); err != nil {
			return err
		}
		return sealEnded(ctx, tx, cid, ref.ID)
	})
}

func recordFacts(ctx context.Context, tx pgx.Tx, ref RunRef, f RunFacts) error {
	var chain []byte
	if !f.CoveredChain.IsZero() {
		chain = f.CoveredChain[:]
	}
	contextSum, err := optionalHash(f.Context)
	if err != nil {
		return err
	}
	verification, err := cleanJSON(f.Verification)
	if err != nil {
		return fmt.Errorf("verification: %w", err)
	}
	numbers, err := cleanJSON(f.Numbers)
	if err != nil {
		return fmt.Errorf("numbers: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE runs SET
			summarizer = coalesce(nullif($3, ''), summarizer),
			rung = coalesce(nullif($4, ''), rung),
			prompt_name = coalesce(nullif($5, ''), prompt_name),
			prompt_version = coalesce(nullif($6, ''), prompt_version),
			mode = coalesce(nullif($7, ''), mode),
			digest = digest OR $8,
			covers_from = coalesce(nullif($9::bigint, 0), covers_from),
			covers_to = coalesce(nullif($10::bigint, 0), covers_to),
			covered_messages = coalesce(nullif($11::bigint, 0), covered_messages),
			covered_chain = coalesce($12, covered_chain),
			tokens_before = coalesce(nullif($13::bigint, 0), tokens_before),
			tokens_after = coalesce(nullif($14::bigint, 0), tokens_after),
			context_sha256 = coalesce($15, context_sha256),
			verification = CASE WHEN $16::jsonb = '{}' THEN verification ELSE $16::jsonb END,
			numbers = numbers || $17::jsonb
		WHERE tenant = $1 AND id = $2`,
		ref.Tenant, ref.ID, cleanText(f.Summarizer), cleanText(f.Rung), cleanText(f.PromptName),
		cleanText(f.PromptVersion), string(f.Mode), f.Digest, f.CoversFrom, f.CoversTo, f.CoveredMessages, chain,
		f.TokensBefore, f.TokensAfter,
		contextSum, verification, numbers)
	return err
}

// RunEnd is how a run ended.
type RunEnd struct {
	Outcome   Outcome
	ErrorKind pipeline.ErrorKind
	// Reason is a word or one sentence, without text of the conversation.
	Reason string
	Facts  RunFacts
	// Event is noted in the conversation's timeline with the end, nil: none.
	Event *Event
}

// FinishRun ends a run that writes no marker. The first end counts: called for a finished run it changes nothing and
// gives the run as it ended.
func (s *Store) FinishRun(ctx context.Context, ref RunRef, end RunEnd) (Run, error) {
	var r Run
	switch end.Outcome {
	case OutcomeSkipped, OutcomeSuperseded, OutcomeCancelled, OutcomeFailed, OutcomeReplayed:
	default:
		return r, fmt.Errorf("store: finish a run: %w",
			invalidf("outcome %q: applied and prepared come with a marker", end.Outcome))
	}
	err := s.write(ctx, "finish a run", func(ctx context.Context, tx pgx.Tx) (err error) {
		r, err = lockedRun(ctx, tx, ref)
		if err != nil || r.Outcome != "" {
			return err
		}
		r, err = finishLocked(ctx, tx, r, end)
		return err
	})
	return r, err
}

// lockedRun reads a run after it has taken its conversation's row, as everything does that ends one.
func lockedRun(ctx context.Context, tx pgx.Tx, ref RunRef) (Run, error) {
	r, err := run(ctx, tx, ref)
	if err != nil {
		return r, err
	}
	if _, err := lockConversation(ctx, tx, ConversationRef{ref.Tenant, r.Conversation}); err != nil {
		return r, err
	}
	return run(ctx, tx, ref)
}

// finishLocked ends a run and seals it, with what else its end has changed.
func finishLocked(ctx context.Context, tx pgx.Tx, r Run, end RunEnd, also ...subject) (Run, error) {
	if err := recordFacts(ctx, tx, r.Ref, end.Facts); err != nil {
		return r, err
	}
	cid, err := one(ctx, tx, pgx.RowTo[int64], `UPDATE runs SET outcome = $3, error_kind = $4, reason = $5, finished_at = clock_timestamp()
		WHERE tenant = $1 AND id = $2 RETURNING cid`, r.Ref.Tenant, r.Ref.ID, string(end.Outcome), string(end.ErrorKind), cleanText(end.Reason))
	if err != nil {
		return r, err
	}
	// Whatever was to start it is done with.
	if _, err := tx.Exec(ctx, `UPDATE outbox SET dispatched_at = now() WHERE run = $1 AND dispatched_at IS NULL`,
		r.Ref.ID); err != nil {
		return r, err
	}
	if end.Event != nil {
		e := *end.Event
		e.Run = r.Ref.ID
		if _, err := appendEvent(ctx, tx, cid, e); err != nil {
			return r, err
		}
	}
	if err := seal(ctx, tx, cid, append(also, ofRun(r.Ref.ID))...); err != nil {
		return r, err
	}
	return run(ctx, tx, r.Ref)
}

// RunFilter picks runs; zero fields do not filter.
type RunFilter struct {
	Conversation string
	Outcome      Outcome
	// Unfinished picks those without an outcome.
	Unfinished bool
	ErrorKind  pipeline.ErrorKind
	Digest     *bool
	Trigger    pipeline.TriggerKind
	// Summarizer picks those whose summary it wrote.
	Summarizer string
	// ReplayOf picks those that repeat a run.
	ReplayOf string
	// Compactions leaves out replays that took no effect.
	Compactions bool
	// Since and Until bound Created: from Since on, before Until.
	Since, Until time.Time
	// Cursor is "" for the first page and what came back for the next.
	Cursor string
	// Limit is 1 to 1000; 0: 100.
	Limit int
}

// ListRuns gives a tenant's runs, newest first, without their steps; next is "" after the last page.
func (s *Store) ListRuns(ctx context.Context, tenant string, f RunFilter) (list []Run, next string, err error) {
	after, err := parseCursor(f.Cursor)
	if err != nil {
		return nil, "", fmt.Errorf("store: list runs: %w", err)
	}
	limit := clampLimit(f.Limit)
	err = s.read(ctx, "list runs", func(ctx context.Context, q querier) (err error) {
		list, err = all(ctx, q, scanRun, `SELECT `+runColumns+runJoins+` WHERE `+runFilter+`
				AND ($13::timestamptz IS NULL OR (r.created_at, r.id) < ($13, $14))
			ORDER BY r.created_at DESC, r.id DESC LIMIT $15`, append(f.args(tenant), after.at, after.id, limit+1)...)
		return err
	})
	if len(list) > limit {
		list = list[:limit]
		next = makeCursor(list[limit-1].Created, list[limit-1].Ref.ID)
	}
	return list, next, err
}

// runFilter is a RunFilter in SQL, its values are args.
const runFilter = `r.tenant = $1
	AND ($2 = '' OR c.id = $2)
	AND ($3 = '' OR r.outcome = $3)
	AND (NOT $4 OR r.outcome IS NULL)
	AND ($5 = '' OR r.error_kind = $5)
	AND ($6::boolean IS NULL OR r.digest = $6)
	AND ($7::timestamptz IS NULL OR r.created_at >= $7)
	AND ($8::timestamptz IS NULL OR r.created_at < $8)
	AND ($9 = '' OR r.trigger_kind = $9)
	AND ($10 = '' OR r.summarizer = $10)
	AND ($11 = '' OR r.replay_of = $11)
	AND (NOT $12 OR r.replay_of IS NULL OR EXISTS (SELECT FROM markers took WHERE took.run = r.id))`

func (f RunFilter) args(tenant string) []any {
	return []any{
		tenant, cleanText(f.Conversation), string(f.Outcome), f.Unfinished, string(f.ErrorKind), f.Digest,
		timeOrNil(f.Since), timeOrNil(f.Until), string(f.Trigger), cleanText(f.Summarizer), cleanText(f.ReplayOf),
		f.Compactions,
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
