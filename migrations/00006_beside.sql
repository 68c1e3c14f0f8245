-- +goose Up

-- What lives beside the messages of a conversation.

-- One generation by the agent's model, held as a lease: nothing is applied while one is open, and a dead agent
-- does not lock its conversation, since the lease expires.
CREATE TABLE replies (
    cid bigint NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- What the reply reads: usage that it reports later is judged by this epoch.
    epoch bigint NOT NULL,
    head_seq bigint NOT NULL,
    id text NOT NULL,
    CONSTRAINT replies_pkey PRIMARY KEY (id),
    CONSTRAINT replies_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid)
);

CREATE UNIQUE INDEX replies_one_open_key ON replies (cid) WHERE ended_at IS NULL;
CREATE INDEX replies_cid_idx ON replies (cid);

-- State that is injected after every compaction: skills, todo list, plan, pins… Each write is a new version;
-- an empty text is a removal. after_seq and epoch say when it was set in the conversation's own time, since a
-- context takes the values of the start of its turn, or of its marker if that came later.
CREATE TABLE enrichments (
    cid bigint NOT NULL,
    version bigint NOT NULL,
    after_seq bigint NOT NULL,
    epoch bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    key text NOT NULL,
    value bytea COMPRESSION lz4 NOT NULL,
    CONSTRAINT enrichments_pkey PRIMARY KEY (cid, key, version),
    CONSTRAINT enrichments_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid),
    CONSTRAINT enrichments_key_shape CHECK (key ~ '^[a-z][a-z0-9_-]*$' AND octet_length(key) <= 64)
);

-- The out-of-band memory: what was summarised, readable, and an agent's own notes.
CREATE TABLE segments (
    cid bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The messages that it renders, 0: a note.
    covers_from bigint NOT NULL DEFAULT 0,
    covers_to bigint NOT NULL DEFAULT 0,
    name text NOT NULL,
    marker text,
    content bytea COMPRESSION lz4 NOT NULL,
    CONSTRAINT segments_pkey PRIMARY KEY (cid, name),
    CONSTRAINT segments_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid),
    CONSTRAINT segments_marker_fkey FOREIGN KEY (marker) REFERENCES markers (id),
    CONSTRAINT segments_name_shape CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' AND octet_length(name) <= 128)
);

-- The timeline. Numbered per conversation under the lock of its row, so that numbers appear in their order
-- and a reader who resumes after one misses none.
CREATE TABLE events (
    cid bigint NOT NULL,
    seq bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    kind text NOT NULL,
    run text,
    data jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT events_pkey PRIMARY KEY (cid, seq),
    CONSTRAINT events_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid)
);
