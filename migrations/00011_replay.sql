-- +goose Up

-- Replays: runs that repeat another one, from its record or with the models asked anew.

-- One call of `precis replay` that repeats many runs: a workflow works it off, and what it has done is seen from
-- the replays that name it.
CREATE TABLE replay_batches (
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When it had nothing more to do, or was cancelled.
    finished_at timestamptz,
    -- How many runs matched when it was asked for.
    total bigint NOT NULL DEFAULT 0,
    cancelled boolean NOT NULL DEFAULT false,
    id text NOT NULL,
    tenant text NOT NULL,
    workflow_id text NOT NULL,
    -- Which runs, and how each is repeated: the request as it came.
    request jsonb NOT NULL,
    CONSTRAINT replay_batches_pkey PRIMARY KEY (id),
    CONSTRAINT replay_batches_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenants (id)
);

CREATE INDEX replay_batches_tenant_idx ON replay_batches (tenant, created_at DESC, id DESC);

-- What a run is that repeats another; runs.replay_of names that one. It stands beside the run's row, which says how
-- the run ended and is not touched after that.
CREATE TABLE replays (
    -- The models are asked anew; else their answers are read from the record.
    live boolean NOT NULL,
    -- A live one whose summary is to take effect.
    apply boolean NOT NULL DEFAULT false,
    -- Of one from the record: whether everything came out the same. NULL: it has not ended, or is live.
    identical boolean,
    run text NOT NULL,
    original text NOT NULL,
    -- The call that it belongs to, NULL: it was asked for by itself.
    batch text,
    -- Artifact with what was found: how the two differ.
    comparison_sha256 bytea,
    CONSTRAINT replays_pkey PRIMARY KEY (run),
    CONSTRAINT replays_run_fkey FOREIGN KEY (run) REFERENCES runs (id),
    CONSTRAINT replays_original_fkey FOREIGN KEY (original) REFERENCES runs (id),
    CONSTRAINT replays_batch_fkey FOREIGN KEY (batch) REFERENCES replay_batches (id),
    -- However often a batch is started, it repeats a run once.
    CONSTRAINT replays_once_key UNIQUE (batch, original),
    CONSTRAINT replays_only_live_apply CHECK (live OR NOT apply)
);

CREATE INDEX replays_original_idx ON replays (original);

-- A replay that takes no effect ends as 'replayed'.
ALTER TABLE runs
    DROP CONSTRAINT runs_outcome_known,
    ADD CONSTRAINT runs_outcome_known CHECK (
        outcome IN ('applied', 'prepared', 'skipped', 'superseded', 'cancelled', 'failed', 'replayed')
    );
