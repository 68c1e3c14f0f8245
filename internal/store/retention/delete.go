package retention

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/runs"
	"precis/internal/store/seals"
)

// DeleteContent deletes the content of a conversation: its messages, system prompt, tools, live state, segments, and
// every artifact that no other conversation refers to. Its row, markers, runs, attempts and ledger stay, with their
// hashes. It returns ErrRunActive if a run is unfinished. Called again, it does nothing.
func (s *Store) DeleteContent(ctx context.Context, ref db.ConversationRef) error {
	return s.db.Write(ctx, "delete a conversation's content", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil || !c.ContentDeleted.IsZero() {
			return err
		}
		active, err := runs.UnderWay(ctx, tx, c.CID)
		if err != nil {
			return err
		}
		if active {
			return db.ErrRunActive
		}
		// This setting allows it in spite of the trigger that keeps messages append-only.
		if _, err := tx.Exec(ctx, `SET LOCAL precis.maintenance = 'delete-content'`); err != nil {
			return err
		}
		subjects := []seals.Subject{seals.OfConversation()}
		ids, err := db.All(ctx, tx, pgx.RowTo[string], `SELECT id FROM runs WHERE cid = $1 ORDER BY created_at, id`,
			c.CID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			subjects = append(subjects, seals.OfRun(id))
		}
		for _, sql := range []string{
			`DELETE FROM messages WHERE cid = $1`,
			`DELETE FROM enrichments WHERE cid = $1`,
			`DELETE FROM segments WHERE cid = $1`,
			`DELETE FROM search_texts WHERE cid = $1`,
			`DELETE FROM replies WHERE cid = $1`,
			`DELETE FROM stage_results WHERE run IN (SELECT id FROM runs WHERE cid = $1)`,
			`UPDATE runs SET focus = NULL WHERE cid = $1 AND focus IS NOT NULL`,
			`UPDATE conversations SET system = NULL, tools = NULL, envelope = NULL, metadata = NULL,
				active_marker = NULL,
				epoch = epoch + 1, content_deleted_at = now(), updated_at = now(), memory_due_at = NULL WHERE cid = $1`,
			// Lock the artifacts in one order before the statements below read them. A transaction that writes the same
			// content for another conversation has either linked it by then, or waits and writes it again.
			`SELECT FROM artifacts a JOIN artifact_links l USING (tenant, sha256) WHERE l.cid = $1 ORDER BY ` +
				`a.tenant, a.sha256 FOR UPDATE OF a`,
			`WITH mine AS (DELETE FROM artifact_links WHERE cid = $1 RETURNING tenant, sha256)
				DELETE FROM artifacts a USING mine WHERE a.tenant = mine.tenant AND a.sha256 = mine.sha256
				AND NOT EXISTS (
					SELECT FROM artifact_links o WHERE o.tenant = a.tenant AND o.sha256 = a.sha256 AND o.cid <> $1)`,
		} {
			if _, err := tx.Exec(ctx, sql, c.CID); err != nil {
				return err
			}
		}
		return bury(ctx, tx, c, subjects)
	})
}

// bury seals the subjects after a deletion, and the conversation, which is the first of them, with its tombstone.
func bury(ctx context.Context, tx pgx.Tx, c conversations.Conversation, subjects []seals.Subject) error {
	rows, err := seals.ReadRows(ctx, tx, c.CID, subjects...)
	if err != nil {
		return err
	}
	records := make([]seals.Record, len(subjects))
	for i := range subjects {
		records[i].Rows = rows[i]
	}
	stone := &seals.Tombstone{
		Messages: c.HeadSeq, HeadChain: c.HeadChain, Tokens: c.Sums.Tokens, Chars: c.Sums.Chars, Turns: c.Sums.Turns,
	}
	if err := tx.QueryRow(ctx, `SELECT content_deleted_at FROM conversations WHERE cid = $1`,
		c.CID).Scan(&stone.At); err != nil {
		return err
	}
	records[0].Deleted = stone
	return seals.Put(ctx, tx, c.CID, subjects, records)
}

// ForgetAbandoned deletes the content of at most limit ephemeral conversations that have not changed for the time
// silent and have no unfinished run, and returns how many. It cleans up after processes that ended before they deleted
// the content themselves.
func (s *Store) ForgetAbandoned(ctx context.Context, silent time.Duration, limit int) (int, error) {
	var refs []db.ConversationRef
	err := s.db.Read(ctx, "look for abandoned conversations", func(ctx context.Context, q db.Querier) (err error) {
		refs, err = db.All(ctx, q, func(row pgx.CollectableRow) (r db.ConversationRef, err error) {
			return r, row.Scan(&r.Tenant, &r.ID)
		}, `SELECT c.tenant, c.id FROM conversations c
			WHERE c.ephemeral AND c.content_deleted_at IS NULL AND c.created_at < now() - $1::interval
			AND c.updated_at < now() - $1::interval
				AND NOT EXISTS (SELECT FROM runs r WHERE r.cid = c.cid
					AND (r.outcome IS NULL OR r.finished_at >= now() - $1::interval))
			ORDER BY c.created_at LIMIT $2`, silent, db.ClampLimit(limit))
		return err
	})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, ref := range refs {
		if err := s.DeleteContent(ctx, ref); err != nil && !errors.Is(err, db.ErrRunActive) {
			return n, err
		}
		n++
	}
	return n, nil
}
