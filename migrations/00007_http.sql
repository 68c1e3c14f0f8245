-- +goose Up

-- What was answered to a write that carried an Idempotency-Key, so that the same request gets the same answer.
-- Rows live for a day.
CREATE TABLE idempotency_keys (
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Whoever works on the request holds it until then, and extends it while it works.
    claimed_until timestamptz NOT NULL,
    -- Set in the first transaction that the request commits: from then on it must not be done again by itself.
    effective_at timestamptz,
    -- NULL: not answered yet.
    answered_at timestamptz,
    status integer,
    tenant text NOT NULL,
    key text NOT NULL,
    -- Of method, path and body: the same key with another request is a mistake.
    request_sha256 bytea NOT NULL,
    headers jsonb NOT NULL DEFAULT '{}',
    -- zstd. Compressed already, so Postgres must not try again.
    body bytea,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, key),
    CONSTRAINT idempotency_keys_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenants (id),
    CONSTRAINT idempotency_keys_sha256_length CHECK (octet_length(request_sha256) = 32),
    CONSTRAINT idempotency_keys_answer_whole CHECK ((answered_at IS NULL) = (status IS NULL))
);

ALTER TABLE idempotency_keys ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX idempotency_keys_created_idx ON idempotency_keys (created_at);

-- The trace of the request that asked for the run, in the W3C's form: its workflow is started later, by another
-- process, and belongs to it. Empty: not traced.
ALTER TABLE outbox ADD COLUMN trace_parent text NOT NULL DEFAULT '';
