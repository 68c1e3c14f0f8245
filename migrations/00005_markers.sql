-- +goose Up

-- An applied compaction: from here on the model sees the summary and everything after covers_to, and of what
-- is at or before it only the carried messages. conversations.active_marker points at the one that counts;
-- base is the one that was active before, where an undo goes back to.
CREATE TABLE markers (
    cid bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    applied_at timestamptz,
    -- When it was undone or discarded.
    ended_at timestamptz,
    -- conversations.epoch after it was applied.
    epoch bigint,
    -- The first and last message that this run summarised. What base covers is folded in.
    covers_from bigint NOT NULL,
    covers_to bigint NOT NULL,
    covered_messages bigint NOT NULL,
    tokens_before bigint NOT NULL DEFAULT 0,
    tokens_after bigint NOT NULL DEFAULT 0,
    -- Estimated tokens of the summary message.
    summary_tokens bigint NOT NULL DEFAULT 0,
    -- How far the tail is squeezed, and up to which message: kept here so that every read gives the same bytes.
    valve_up_to bigint NOT NULL DEFAULT 0,
    -- Real tokens divided by estimated ones when it was made, 0: not known. Kept here since sizes of the tail are
    -- judged by it, and every read must give the same bytes.
    calibration double precision NOT NULL DEFAULT 0,
    -- The summary is a digest: no model wrote it, a later run replaces it.
    digest boolean NOT NULL DEFAULT false,
    id text NOT NULL,
    tenant text NOT NULL,
    base text,
    -- NULL: reported by the agent or read from a file, not made by a run.
    run text,
    status text NOT NULL,
    reason text NOT NULL DEFAULT '',
    -- 'ours', 'agent' (its own runtime compacted and said so), 'imported' (recorded in a file).
    origin text NOT NULL,
    valve text NOT NULL DEFAULT '',
    -- messages.chain at covers_to: commits to all that was said up to there.
    covered_chain bytea NOT NULL,
    -- Artifact with the summary's text. NULL: nothing is covered, the marker only squeezes the tail.
    summary_sha256 bytea,
    -- Messages at or before covers_to that stay verbatim: system, user info, what the user last said.
    carried bigint[] NOT NULL DEFAULT '{}',
    CONSTRAINT markers_pkey PRIMARY KEY (id),
    CONSTRAINT markers_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid),
    CONSTRAINT markers_base_fkey FOREIGN KEY (base) REFERENCES markers (id),
    CONSTRAINT markers_run_fkey FOREIGN KEY (run) REFERENCES runs (id),
    -- A run writes one marker, however often its last step is tried.
    CONSTRAINT markers_run_key UNIQUE (run),
    CONSTRAINT markers_covers_order CHECK (
        (covers_from >= 1 AND covers_to >= covers_from AND covered_messages >= 0 AND summary_sha256 IS NOT NULL)
        OR (covers_from = 0 AND covers_to = 0 AND covered_messages = 0 AND summary_sha256 IS NULL AND valve <> '')
    ),
    CONSTRAINT markers_status_known CHECK (status IN ('prepared', 'applied', 'undone', 'discarded')),
    CONSTRAINT markers_origin_known CHECK (origin IN ('ours', 'agent', 'imported')),
    CONSTRAINT markers_valve_known CHECK (valve IN ('', 'previews', 'head_tail')),
    CONSTRAINT markers_chain_length CHECK (octet_length(covered_chain) = 32),
    CONSTRAINT markers_applied_has_epoch CHECK (status <> 'applied' OR (epoch IS NOT NULL AND applied_at IS NOT NULL))
);

CREATE INDEX markers_cid_idx ON markers (cid, created_at DESC, id DESC);
-- A newer prepared summary replaces the one before.
CREATE UNIQUE INDEX markers_one_prepared_key ON markers (cid) WHERE status = 'prepared';

ALTER TABLE conversations
    ADD CONSTRAINT conversations_active_marker_fkey FOREIGN KEY (active_marker) REFERENCES markers (id);
