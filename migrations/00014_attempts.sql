-- +goose NO TRANSACTION
-- +goose Up

-- Every statement can be run again, so that a migration that was interrupted is finished by running it once more. No
-- statement holds a lock that keeps readers waiting for longer than a moment: rows are filled in by one of their own.

-- What SQL read out of runs.numbers has columns of its own.
ALTER TABLE runs
    -- The last message of the conversation that the run worked on, 0: not known.
    ADD COLUMN IF NOT EXISTS head_seq bigint NOT NULL DEFAULT 0,
    -- The artifact with the snapshot that the run's context was built from, NULL: none was kept.
    ADD COLUMN IF NOT EXISTS snapshot_sha256 bytea;

-- numbers stays as it is: seals hold it.
UPDATE runs SET
    head_seq = CASE WHEN jsonb_typeof(numbers -> 'head') = 'number' THEN (numbers ->> 'head')::bigint ELSE 0 END,
    snapshot_sha256 = CASE WHEN numbers ->> 'state' ~ '^[0-9a-f]{64}$' THEN decode(numbers ->> 'state', 'hex') END
WHERE head_seq = 0 AND snapshot_sha256 IS NULL AND (numbers ? 'head' OR numbers ? 'state');

-- A row is one attempt at a stage. Seals and exports of earlier builds name the table run_steps.
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regclass('run_steps') IS NULL THEN
        RETURN;
    END IF;
    SET LOCAL lock_timeout = '10s';
    ALTER TABLE run_steps RENAME TO run_attempts;
    ALTER TABLE run_attempts RENAME CONSTRAINT run_steps_pkey TO run_attempts_pkey;
    ALTER TABLE run_attempts RENAME CONSTRAINT run_steps_run_fkey TO run_attempts_run_fkey;
    ALTER TABLE run_attempts RENAME CONSTRAINT run_steps_attempt_key TO run_attempts_attempt_key;
    ALTER TABLE run_attempts RENAME CONSTRAINT run_steps_attempt_positive TO run_attempts_attempt_positive;
    ALTER TABLE run_attempts RENAME CONSTRAINT run_steps_outcome_known TO run_attempts_outcome_known;
    ALTER SEQUENCE run_steps_id_seq RENAME TO run_attempts_id_seq;
END
$$;
-- +goose StatementEnd

-- Nothing has written or read this column since searches have a table of their own (search_texts). A message's record
-- of before commits to the hash of the empty text.
ALTER TABLE messages DROP COLUMN IF EXISTS search_text;

-- Written with each row.
ALTER TABLE usage_ledger ALTER COLUMN booked_under DROP DEFAULT;

-- Nothing reads it: why a workflow could not be started is in the dispatcher's log.
ALTER TABLE outbox DROP COLUMN IF EXISTS last_error;
