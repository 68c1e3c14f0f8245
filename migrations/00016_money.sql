-- +goose NO TRANSACTION
-- +goose Up

-- Every statement can be run again. Builds before this one write neither the new columns nor the new scope, and run on
-- beside it: their calls count what they used.

-- What a call is counted with against budgets until its tokens are known: the estimate of its input, and the output
-- that it is allowed.
ALTER TABLE usage_ledger
    ADD COLUMN IF NOT EXISTS reserved_tokens bigint NOT NULL DEFAULT 0
        CONSTRAINT usage_ledger_reserved_positive CHECK (reserved_tokens >= 0),
    -- What earlier requests under the same key count, whose answers were lost.
    ADD COLUMN IF NOT EXISTS lost_tokens bigint NOT NULL DEFAULT 0
        CONSTRAINT usage_ledger_lost_positive CHECK (lost_tokens >= 0);

-- Requests of one run are looked for by their bytes, so that none is sent twice.
CREATE INDEX CONCURRENTLY IF NOT EXISTS usage_ledger_request_idx ON usage_ledger (run, request_sha256)
    WHERE state = 'complete';

-- A breaker of scope model is a tenant's own, of a model at a vendor under a credential. Those of scope vendor were
-- everybody's; builds before this one still read and write them.
-- +goose StatementBegin
DO $$
BEGIN
    SET LOCAL lock_timeout = '10s';
    ALTER TABLE breakers DROP CONSTRAINT IF EXISTS breakers_scope_known;
    ALTER TABLE breakers ADD CONSTRAINT breakers_scope_known CHECK (scope IN ('conversation', 'vendor', 'model'));
END
$$;
-- +goose StatementEnd

-- False: another tenant had an answer during the row's failures, so that they say nothing about the vendor.
ALTER TABLE breakers ADD COLUMN IF NOT EXISTS shared boolean NOT NULL DEFAULT true;

-- A breaker of scope model is looked for in the rows of all tenants.
CREATE INDEX CONCURRENTLY IF NOT EXISTS breakers_model_idx ON breakers (name) WHERE scope = 'model';
