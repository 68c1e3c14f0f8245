-- +goose Up

-- What the service needs to decide about a compaction with every append, in constant time. All of it is optional:
-- rows that an older program wrote have none of it, and are measured anew where that matters.

ALTER TABLE conversations
    -- The window that a vendor's overflow error named, in tokens, 0: none. context_window stays the client's own.
    ADD COLUMN learned_window integer NOT NULL DEFAULT 0,
    -- Estimated tokens of system and tools. NULL: not measured.
    ADD COLUMN overhead_tokens integer,
    -- What the history was when its context was built last: estimated tokens after trimming, up to which message, in
    -- which epoch. An upper bound of what is sent now is that and all that came since. NULL: not measured.
    ADD COLUMN measured_tokens bigint,
    ADD COLUMN measured_seq bigint,
    ADD COLUMN measured_epoch bigint,
    -- SHA-256 chain over the messages' JSON values up to sync_seq: with it a client's whole list is compared in one
    -- look. It counts only while sync_seq is the head; an older program leaves sync_seq behind.
    ADD COLUMN sync_seq bigint NOT NULL DEFAULT 0,
    ADD COLUMN sync_chain bytea,
    ADD CONSTRAINT conversations_learned_window_positive CHECK (learned_window >= 0),
    ADD CONSTRAINT conversations_sync_chain_length CHECK (octet_length(sync_chain) = 32),
    ADD CONSTRAINT conversations_measured_together CHECK (
        (measured_tokens IS NULL) = (measured_seq IS NULL) AND (measured_tokens IS NULL) = (measured_epoch IS NULL)
    );

-- The same chain at each message. NULL: not known.
ALTER TABLE messages ADD COLUMN sync_chain bytea;

ALTER TABLE enrichments
    -- Estimated tokens of value, NULL: not measured.
    ADD COLUMN tokens integer,
    -- What was set, where value is its rendering: a JSON object. NULL: value is all there is.
    ADD COLUMN source bytea;

-- What the text of the summary was made from, a JSON object of references and numbers, so that a prepared one can be
-- put into the words of the moment in which it takes effect. NULL: not kept.
ALTER TABLE markers ADD COLUMN draft jsonb;

-- One-shot conversations whose content is still there: what a caller that died has left is found without a search.
CREATE INDEX conversations_ephemeral_idx ON conversations (created_at) WHERE ephemeral AND content_deleted_at IS NULL;
