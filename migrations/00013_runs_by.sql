-- +goose Up

-- Runs are looked for by what went wrong, by the run that they repeat, and by the end of an id, which is all of it that
-- a list has room for.
CREATE INDEX IF NOT EXISTS runs_error_kind_idx ON runs (tenant, error_kind, created_at DESC) WHERE error_kind <> '';
CREATE INDEX IF NOT EXISTS runs_replay_of_idx ON runs (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_short_id_idx ON runs (tenant, right(id, 12));
