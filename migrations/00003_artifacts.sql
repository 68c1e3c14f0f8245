-- +goose Up

-- Everything large that a run reads or writes: rendered inputs, requests, answers, summaries, contexts.
-- Addressed by the SHA-256 of the content, so that writing the same thing twice is one row and a reference
-- proves what it points at. Per tenant: equal content of two tenants is two rows, and nothing is cached across.
CREATE TABLE artifacts (
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Moved by each write of the same content, which also locks the row: what a run has just
    -- referred to is never pruned from under it.
    touched_at timestamptz NOT NULL DEFAULT now(),
    -- Bytes of the content, before compression.
    size bigint NOT NULL,
    tenant text NOT NULL,
    -- What it was first written as: 'summary', 'prompt', 'answer', 'context'… For people; not part of the key.
    kind text NOT NULL,
    sha256 bytea NOT NULL,
    -- zstd. Compressed already, so Postgres must not try again.
    data bytea NOT NULL,
    CONSTRAINT artifacts_pkey PRIMARY KEY (tenant, sha256),
    CONSTRAINT artifacts_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenants (id),
    CONSTRAINT artifacts_sha256_length CHECK (octet_length(sha256) = 32),
    CONSTRAINT artifacts_size_positive CHECK (size >= 0)
);

ALTER TABLE artifacts ALTER COLUMN data SET STORAGE EXTERNAL;

-- Which conversations an artifact belongs to. When the last of them lets go of it, it may go.
CREATE TABLE artifact_links (
    cid bigint NOT NULL,
    tenant text NOT NULL,
    sha256 bytea NOT NULL,
    CONSTRAINT artifact_links_pkey PRIMARY KEY (cid, sha256),
    CONSTRAINT artifact_links_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid),
    CONSTRAINT artifact_links_artifact_fkey FOREIGN KEY (tenant, sha256) REFERENCES artifacts (tenant, sha256)
);

CREATE INDEX artifact_links_artifact_idx ON artifact_links (tenant, sha256);
