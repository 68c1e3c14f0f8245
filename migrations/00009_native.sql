-- +goose Up

ALTER TABLE markers
    -- Artifact with what the vendor's own compaction gave: it goes back to that vendor unchanged. NULL: a model
    -- wrote the summary, or nothing did.
    ADD COLUMN native_sha256 bytea,
    -- Of which vendor, model family and format it is, and how it is used: a JSON object.
    ADD COLUMN native jsonb,
    ADD CONSTRAINT markers_native_together CHECK ((native IS NULL) = (native_sha256 IS NULL));
