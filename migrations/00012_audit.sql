-- +goose Up

-- What proves afterwards that nothing was changed, and what tells content that was pruned from content that was
-- tampered with. docs/audit.md says what is proved and what is not.

-- The append-only record of what a conversation's runs were when they ended, of its markers, its state and its
-- configuration. Each row commits to the one before it, and the conversation to the last one: a row that is changed,
-- left out or cut off shows. It is written in the transaction of what it records.
CREATE TABLE seals (
    cid bigint NOT NULL,
    -- From 1 in each conversation, without gaps.
    n bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- 'conversation', 'run', 'marker', 'state', 'prune'.
    kind text NOT NULL,
    -- Which of that kind: a run's or marker's id, key@version of the state.
    subject text NOT NULL,
    -- SHA-256 of record; and SHA-256(chain of n-1 ‖ n ‖ kind ‖ subject ‖ sha256), see store.SealChain.
    sha256 bytea NOT NULL,
    chain bytea NOT NULL,
    -- The rows as they were, column by column, as JSON.
    record bytea COMPRESSION lz4 NOT NULL,
    CONSTRAINT seals_pkey PRIMARY KEY (cid, n),
    CONSTRAINT seals_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid),
    CONSTRAINT seals_kind_known CHECK (kind IN ('conversation', 'run', 'marker', 'state', 'prune')),
    CONSTRAINT seals_hash_lengths CHECK (octet_length(sha256) = 32 AND octet_length(chain) = 32)
);

CREATE INDEX seals_subject_idx ON seals (cid, kind, subject, n DESC);

-- +goose StatementBegin
CREATE FUNCTION seals_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'seals are append-only: % of seals is refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER seals_append_only_row BEFORE UPDATE OR DELETE ON seals
    FOR EACH ROW EXECUTE FUNCTION seals_append_only();

CREATE TRIGGER seals_append_only_truncate BEFORE TRUNCATE ON seals
    FOR EACH STATEMENT EXECUTE FUNCTION seals_append_only();

ALTER TABLE conversations
    -- The last seal: its number and chain.
    ADD COLUMN seal_seq bigint NOT NULL DEFAULT 0,
    ADD COLUMN seal_chain bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    -- events.chain of the last event.
    ADD COLUMN event_chain bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    ADD CONSTRAINT conversations_audit_chain_lengths CHECK (octet_length(seal_chain) = 32 AND octet_length(event_chain) = 32);

ALTER TABLE messages
    -- SHA-256 over what chain does not commit to, see store's messageRecord. NULL: written by a version that kept none.
    ADD COLUMN record bytea,
    -- When its content gave way to a placeholder. The seal of that time holds the hash of what was there.
    ADD COLUMN pruned_at timestamptz,
    ADD CONSTRAINT messages_record_length CHECK (octet_length(record) = 32);

-- SHA-256 over the chain of the event before it and this one, see eventChain in the store.
ALTER TABLE events ADD COLUMN chain bytea;

-- A pruned artifact keeps its row: its hash, kind and size are still evidence.
ALTER TABLE artifacts
    ALTER COLUMN data DROP NOT NULL,
    ADD COLUMN pruned_at timestamptz,
    ADD CONSTRAINT artifacts_data_or_pruned CHECK ((data IS NULL) = (pruned_at IS NOT NULL));

CREATE INDEX artifacts_prunable_idx ON artifacts (touched_at) WHERE pruned_at IS NULL;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION messages_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('precis.maintenance', true) = 'delete-content' THEN
        RETURN OLD;
    END IF;
    -- Pruning takes the content and nothing else, once.
    IF TG_OP = 'UPDATE' AND current_setting('precis.maintenance', true) = 'prune'
        AND OLD.pruned_at IS NULL AND NEW.pruned_at IS NOT NULL
        AND (NEW.cid, NEW.seq, NEW.tokens_sum, NEW.chars_sum, NEW.turns_sum, NEW.created_at, NEW.chars, NEW.tokens, NEW.bytes,
            NEW.genuine, NEW.role, NEW.kind, NEW.chain)
            = (OLD.cid, OLD.seq, OLD.tokens_sum, OLD.chars_sum, OLD.turns_sum, OLD.created_at, OLD.chars, OLD.tokens, OLD.bytes,
            OLD.genuine, OLD.role, OLD.kind, OLD.chain)
        AND (NEW.client_id, NEW.record, NEW.sync_chain) IS NOT DISTINCT FROM (OLD.client_id, OLD.record, OLD.sync_chain) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'messages are append-only: % of messages is refused', TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
-- +goose StatementEnd

-- How far `precis verify --all` and `precis prune` have come, so that an interrupted one goes on. A row goes when its job is
-- done.
CREATE TABLE audit_jobs (
    started_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The last conversation that is done, 0: none.
    cid bigint NOT NULL DEFAULT 0,
    -- What is done: the command with what it was asked for.
    name text NOT NULL,
    -- What it has found so far, a JSON object.
    progress jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT audit_jobs_pkey PRIMARY KEY (name)
);
