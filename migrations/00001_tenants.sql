-- +goose Up

-- A tenant owns conversations, and nothing is ever shared between two of them. The id goes into Temporal
-- workflow ids (at most 255 bytes together with the conversation's) and into fairness keys (at most 64
-- bytes), hence its length; it holds no slash, so that compaction/{tenant}/{conversation} reads one way only.
CREATE TABLE tenants (
    created_at timestamptz NOT NULL DEFAULT now(),
    id text NOT NULL,
    name text NOT NULL DEFAULT '',
    -- The tenant's own settings as the JSON that came, NULL: none. bytea, since jsonb would refuse or change it.
    settings bytea,
    CONSTRAINT tenants_pkey PRIMARY KEY (id),
    CONSTRAINT tenants_id_shape CHECK (id ~ '^[^/[:cntrl:]]+$' AND octet_length(id) <= 64)
);

-- With no API keys configured everything belongs to this one.
INSERT INTO tenants (id, name) VALUES ('default', 'default');

-- Only the SHA-256 of a key is kept: who reads this table can use none of them. A key is random and long,
-- so a plain hash is enough, and it can be looked up by index.
CREATE TABLE api_keys (
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at timestamptz,
    -- May this key report markers of the agent's own, and import trusted ones?
    trusted boolean NOT NULL DEFAULT false,
    id text NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL DEFAULT '',
    hash bytea NOT NULL,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenants (id),
    CONSTRAINT api_keys_hash_key UNIQUE (hash),
    CONSTRAINT api_keys_hash_length CHECK (octet_length(hash) = 32)
);

CREATE INDEX api_keys_tenant_idx ON api_keys (tenant);
