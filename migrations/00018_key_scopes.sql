-- +goose Up

-- What a key may do, and until when. Keys that exist may read and write, as before, and trusted ones everything.
ALTER TABLE api_keys
    ADD COLUMN scope text NOT NULL DEFAULT 'write',
    -- NULL: the key does not expire.
    ADD COLUMN expires_at timestamptz,
    ADD CONSTRAINT api_keys_scope_known CHECK (scope IN ('read', 'write', 'admin'));

-- Who holds the claim of a request: a claim that another caller has taken over no longer lets its first holder commit.
-- NULL: claimed by a release that does not know it.
ALTER TABLE idempotency_keys ADD COLUMN claimed_by text;
