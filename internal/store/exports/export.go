// Package exports exports every row of a conversation, and imports and verifies such exports.
package exports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/runs"
)

// Store exports and imports conversations.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Row is one exported row of a conversation: the columns as PostgreSQL writes them in JSON, without internal keys.
// Content is separate, byte for byte.
type Row struct {
	Table string
	Row   json.RawMessage
	// Content is the content of a message or an artifact, nil: the row has none, or it was pruned.
	Content []byte
}

// exportedTables are exported in this order, so that a row comes after those that it refers to.
var exportedTables = []struct{ name, sql string }{
	{"conversations", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM conversations t WHERE cid = $1`},
	{"artifacts", `SELECT to_jsonb(t) - 'data', t.data FROM artifacts t JOIN artifact_links l USING (tenant, ` +
		`sha256) WHERE l.cid = $1 ORDER BY t.sha256`},
	{"messages", `SELECT to_jsonb(t) - 'cid' - 'native', t.native FROM messages t WHERE cid = $1 ORDER BY seq`},
	{"runs", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM runs t WHERE cid = $1 ORDER BY created_at, id`},
	{"run_attempts", `SELECT to_jsonb(t) - 'id', NULL::bytea FROM run_attempts t WHERE run IN (SELECT id FROM runs ` +
		`WHERE cid = $1) ORDER BY t.id`},
	{"stage_results", `SELECT to_jsonb(t), NULL::bytea FROM stage_results t WHERE run IN (SELECT id FROM runs ` +
		`WHERE cid = $1) ORDER BY run, stage, call`},
	{"replays", `SELECT to_jsonb(t) - 'batch', NULL::bytea FROM replays t WHERE run IN (SELECT id FROM runs WHERE ` +
		`cid = $1) ORDER BY run`},
	{"usage_ledger", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM usage_ledger t WHERE cid = $1 ORDER BY run, ` +
		`call, attempt`},
	{"markers", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM markers t WHERE cid = $1 ORDER BY created_at, id`},
	{"enrichments", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM enrichments t WHERE cid = $1 ORDER BY key, version`},
	{"segments", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM segments t WHERE cid = $1 ORDER BY name`},
	{"events", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM events t WHERE cid = $1 ORDER BY seq`},
	{"seals", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM seals t WHERE cid = $1 ORDER BY n`},
}

// Tables lists the tables of an export in their order.
func Tables() []string {
	names := make([]string, len(exportedTables))
	for i, t := range exportedTables {
		names[i] = t.name
	}
	return names
}

// Export calls put with every row of a conversation and its runs, one at a time and from one snapshot, after one call
// of begin. It returns ErrRunActive if a run is unfinished, and ErrContentDeleted if the content was deleted.
func (s *Store) Export(ctx context.Context, ref db.ConversationRef, begin func(conversations.Conversation) error,
	put func(Row) error,
) error {
	return s.db.Snapshot(ctx, "export a conversation", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		if busy, err := runs.UnderWay(ctx, tx, c.CID); err != nil || busy {
			return errors.Join(err, map[bool]error{true: db.ErrRunActive}[busy])
		}
		if err := begin(c); err != nil {
			return err
		}
		for _, t := range exportedTables {
			rows, err := tx.Query(ctx, t.sql, c.CID)
			if err != nil {
				return err
			}
			var row, content []byte
			_, err = pgx.ForEachRow(rows, []any{&row, &content}, func() error {
				r := Row{Table: t.name, Row: slices.Clone(row), Content: slices.Clone(content)}
				if t.name == "artifacts" && content != nil {
					if r.Content, err = s.db.Decompress(content); err != nil {
						return fmt.Errorf("an artifact of the conversation is %w: %w", db.ErrDamaged, err)
					}
				}
				return put(r)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
