package runs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/internal/store/seals"
)

// RecordFacts records facts of a run, finished or not.
func (s *Store) RecordFacts(ctx context.Context, ref db.RunRef, f Facts) error {
	return seals.ChangeRun(ctx, s.db, "record a run's facts", ref, func(ctx context.Context, tx seals.Tx) error {
		return recordFacts(ctx, tx, ref, f)
	})
}

func recordFacts(ctx context.Context, tx pgx.Tx, ref db.RunRef, f Facts) error {
	var chain []byte
	if !f.CoveredChain.IsZero() {
		chain = f.CoveredChain[:]
	}
	contextSum, err := db.OptionalHash(f.Context)
	if err != nil {
		return err
	}
	snapshot, err := db.OptionalHash(f.Snapshot)
	if err != nil {
		return err
	}
	verification, err := db.CleanJSON(f.Verification)
	if err != nil {
		return fmt.Errorf("verification: %w", err)
	}
	numbers, err := db.CleanJSON(f.Numbers)
	if err != nil {
		return fmt.Errorf("numbers: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE runs SET
			summarizer = coalesce(nullif($3, ''), summarizer),
			rung = coalesce(nullif($4, ''), rung),
			prompt_name = coalesce(nullif($5, ''), prompt_name),
			prompt_version = coalesce(nullif($6, ''), prompt_version),
			mode = coalesce(nullif($7, ''), mode),
			digest = digest OR $8,
			covers_from = coalesce(nullif($9::bigint, 0), covers_from),
			covers_to = coalesce(nullif($10::bigint, 0), covers_to),
			covered_messages = coalesce(nullif($11::bigint, 0), covered_messages),
			covered_chain = coalesce($12, covered_chain),
			tokens_before = coalesce(nullif($13::bigint, 0), tokens_before),
			tokens_after = coalesce(nullif($14::bigint, 0), tokens_after),
			context_sha256 = coalesce($15, context_sha256),
			verification = CASE WHEN $16::jsonb = '{}' THEN verification ELSE $16::jsonb END,
			numbers = numbers || $17::jsonb,
			snapshot_sha256 = coalesce($18, snapshot_sha256),
			head_seq = coalesce(nullif($19::bigint, 0), head_seq)
		WHERE tenant = $1 AND id = $2`,
		ref.Tenant, ref.ID, db.CleanText(f.Summarizer), string(f.Rung), db.CleanText(f.PromptName),
		db.CleanText(f.PromptVersion), string(f.Mode), f.Digest, f.CoversFrom, f.CoversTo, f.CoveredMessages, chain,
		f.TokensBefore, f.TokensAfter,
		contextSum, verification, numbers, snapshot, f.Head)
	return err
}
