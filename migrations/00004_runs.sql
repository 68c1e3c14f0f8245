-- +goose Up

-- One row an execution of the CompactionWorkflow, made by whoever asks for it, before Temporal hears of it.
-- Text of the conversation stands here nowhere but in focus; the rest is numbers, names and references.
CREATE TABLE runs (
    cid bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    -- The head of the conversation when the run was asked for.
    requested_head bigint NOT NULL,
    -- The messages that were summarised, 0: none.
    covers_from bigint NOT NULL DEFAULT 0,
    covers_to bigint NOT NULL DEFAULT 0,
    covered_messages bigint NOT NULL DEFAULT 0,
    -- Tokens of the context before and after, 0: not measured.
    tokens_before bigint NOT NULL DEFAULT 0,
    tokens_after bigint NOT NULL DEFAULT 0,
    "full" boolean NOT NULL DEFAULT false,
    force_external boolean NOT NULL DEFAULT false,
    -- Compute and park, do not apply.
    prepare boolean NOT NULL DEFAULT false,
    digest boolean NOT NULL DEFAULT false,
    id text NOT NULL,
    tenant text NOT NULL,
    workflow_id text NOT NULL,
    temporal_run_id text NOT NULL DEFAULT '',
    trigger_kind text NOT NULL,
    -- What the request asks for instead of the settings; empty: nothing.
    prompt_override text NOT NULL DEFAULT '',
    summarizer_override text NOT NULL DEFAULT '',
    -- NULL while the run is unfinished.
    outcome text,
    error_kind text NOT NULL DEFAULT '',
    -- Why it was skipped, superseded or failed: a word, or one sentence.
    reason text NOT NULL DEFAULT '',
    summarizer text NOT NULL DEFAULT '',
    -- The step of the ladder that led to the summary.
    rung text NOT NULL DEFAULT '',
    prompt_name text NOT NULL DEFAULT '',
    prompt_version text NOT NULL DEFAULT '',
    mode text NOT NULL DEFAULT '',
    replay_of text,
    -- messages.chain at covers_to: commits to every message up to there.
    covered_chain bytea,
    -- The artifact that holds the context as it was written.
    context_sha256 bytea,
    -- The user's own words, any bytes.
    focus bytea,
    -- The numbers that were compared: the trigger's decision.
    trigger jsonb NOT NULL DEFAULT '{}',
    -- Versions of code, prompts and configuration.
    versions jsonb NOT NULL DEFAULT '{}',
    verification jsonb NOT NULL DEFAULT '{}',
    -- Counts of the slimming, the valves that were used…
    numbers jsonb NOT NULL DEFAULT '{}',
    -- The effective settings, as JSON, as they were when the run was asked for.
    settings bytea COMPRESSION lz4,
    CONSTRAINT runs_pkey PRIMARY KEY (id),
    CONSTRAINT runs_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid),
    CONSTRAINT runs_replay_of_fkey FOREIGN KEY (replay_of) REFERENCES runs (id),
    CONSTRAINT runs_trigger_known CHECK (trigger_kind IN ('tokens', 'turns', 'manual', 'background', 'overflow')),
    CONSTRAINT runs_outcome_known CHECK (
        outcome IN ('applied', 'prepared', 'skipped', 'superseded', 'cancelled', 'failed')
    ),
    CONSTRAINT runs_finished_has_outcome CHECK ((outcome IS NULL) = (finished_at IS NULL))
);

-- Single flight: asking while one runs attaches to it. A replay runs beside.
CREATE UNIQUE INDEX runs_one_unfinished_key ON runs (cid) WHERE outcome IS NULL AND replay_of IS NULL;
CREATE INDEX runs_cid_idx ON runs (cid, created_at DESC, id DESC);
CREATE INDEX runs_tenant_idx ON runs (tenant, created_at DESC, id DESC);
CREATE INDEX runs_outcome_idx ON runs (tenant, outcome, created_at DESC);

-- Every attempt at every stage, written by the activity interceptor: a row when it starts, the rest when it ends.
-- Temporal's history keeps only the last failure of a retried activity; this keeps all of them.
CREATE TABLE run_steps (
    id bigint GENERATED ALWAYS AS IDENTITY,
    started_at timestamptz NOT NULL DEFAULT now(),
    ms bigint,
    -- Counts the activity calls of the run, so that several calls of one stage are told apart; attempt counts
    -- Temporal's attempts at one call, from 1.
    call integer NOT NULL,
    attempt integer NOT NULL,
    run text NOT NULL,
    stage text NOT NULL,
    -- The step of the ladder that led here, 'first' before any.
    rung text NOT NULL DEFAULT '',
    summarizer text NOT NULL DEFAULT '',
    -- 'started', 'ok', 'failed', 'reused'.
    outcome text NOT NULL,
    error_kind text NOT NULL DEFAULT '',
    -- One sentence without text of the conversation.
    message text NOT NULL DEFAULT '',
    -- What the ladder does after it.
    next text NOT NULL DEFAULT '',
    worker text NOT NULL DEFAULT '',
    numbers jsonb NOT NULL DEFAULT '{}',
    -- References by role: {"prompt": "sha256…", "answer": "sha256…"}.
    artifacts jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT run_steps_pkey PRIMARY KEY (id),
    CONSTRAINT run_steps_run_fkey FOREIGN KEY (run) REFERENCES runs (id),
    CONSTRAINT run_steps_attempt_key UNIQUE (run, stage, call, attempt),
    CONSTRAINT run_steps_attempt_positive CHECK (attempt > 0),
    CONSTRAINT run_steps_outcome_known CHECK (outcome IN ('started', 'ok', 'failed', 'reused'))
);

-- A stage's result, written before its activity returns: an activity that is run again after a crash finds
-- it and does no work twice. The key never holds the attempt. The first writer wins.
CREATE TABLE stage_results (
    created_at timestamptz NOT NULL DEFAULT now(),
    call integer NOT NULL,
    run text NOT NULL,
    stage text NOT NULL,
    result bytea COMPRESSION lz4 NOT NULL,
    CONSTRAINT stage_results_pkey PRIMARY KEY (run, stage, call),
    CONSTRAINT stage_results_run_fkey FOREIGN KEY (run) REFERENCES runs (id)
);

-- Every call of a model, booked under '/compact'. The row is written before the call and completed after it:
-- one that stays 'started' was perhaps paid for, and its answer lost.
CREATE TABLE usage_ledger (
    cid bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    input_tokens bigint NOT NULL DEFAULT 0,
    cached_input_tokens bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    call integer NOT NULL,
    attempt integer NOT NULL,
    run text NOT NULL,
    tenant text NOT NULL,
    booked_under text NOT NULL DEFAULT '/compact',
    vendor text NOT NULL,
    model text NOT NULL,
    state text NOT NULL DEFAULT 'started',
    error_kind text NOT NULL DEFAULT '',
    -- The vendor's id of the request, for its support.
    request_id text NOT NULL DEFAULT '',
    -- Artifacts: the request that was sent, the answer that came.
    request_sha256 bytea,
    answer_sha256 bytea,
    CONSTRAINT usage_ledger_pkey PRIMARY KEY (run, call, attempt),
    CONSTRAINT usage_ledger_run_fkey FOREIGN KEY (run) REFERENCES runs (id),
    CONSTRAINT usage_ledger_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid),
    CONSTRAINT usage_ledger_state_known CHECK (state IN ('started', 'complete', 'failed')),
    CONSTRAINT usage_ledger_tokens_positive CHECK (
        input_tokens >= 0 AND cached_input_tokens >= 0 AND cache_write_tokens >= 0 AND output_tokens >= 0
    ),
    CONSTRAINT usage_ledger_complete_has_answer CHECK (state <> 'complete' OR answer_sha256 IS NOT NULL)
);

CREATE INDEX usage_ledger_tenant_idx ON usage_ledger (tenant, started_at);
CREATE INDEX usage_ledger_cid_idx ON usage_ledger (cid);

-- Workflows that are to be started, written in the transaction of what fired them and drained by a dispatcher
-- with FOR UPDATE SKIP LOCKED (54 000 rows/s with four of them; NOTIFY takes a global lock at commit, 3 900/s).
-- Starting one twice is harmless: the workflow id is the conversation's.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Not before; also the end of a claim, so that a dispatcher that died lets go by itself.
    due_at timestamptz NOT NULL DEFAULT now(),
    dispatched_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    tenant text NOT NULL,
    conversation text NOT NULL,
    run text NOT NULL,
    last_error text NOT NULL DEFAULT '',
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_run_key UNIQUE (run),
    CONSTRAINT outbox_run_fkey FOREIGN KEY (run) REFERENCES runs (id)
);

CREATE INDEX outbox_due_idx ON outbox (due_at, id) WHERE dispatched_at IS NULL;

-- Counts failures in a row, of a conversation's runs or of a vendor, so that a restart forgets none of them.
CREATE TABLE breakers (
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- NULL: closed.
    opened_at timestamptz,
    -- When the one attempt after the cooldown was let through.
    probe_at timestamptz,
    failures integer NOT NULL DEFAULT 0,
    scope text NOT NULL,
    -- Empty for a vendor: its key is the deployment's.
    tenant text NOT NULL,
    -- The conversation's id, or the vendor's name.
    name text NOT NULL,
    error_kind text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    CONSTRAINT breakers_pkey PRIMARY KEY (scope, tenant, name),
    CONSTRAINT breakers_scope_known CHECK (scope IN ('conversation', 'vendor')),
    CONSTRAINT breakers_failures_positive CHECK (failures >= 0)
);
