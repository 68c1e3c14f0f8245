-- +goose Up

-- Runs are looked for by what went wrong, and by the run that they repeat.
CREATE INDEX IF NOT EXISTS runs_error_kind_idx ON runs (tenant, error_kind, created_at DESC) WHERE error_kind <> '';
CREATE INDEX IF NOT EXISTS runs_replay_of_idx ON runs (replay_of) WHERE replay_of IS NOT NULL;
