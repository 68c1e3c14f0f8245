// Package retention removes content: by age, and of conversations that are over. Hashes of all of it stay.
package retention

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"precis/internal/contract"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/store/seals"
)

// Store prunes and deletes content.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Rule says what may go.
type Rule struct {
	// Before is the age: what was written or used since stays.
	Before time.Time
	// ArtifactKinds are the kinds of artifacts that may go, ToolResults whether the content of tool results may.
	ArtifactKinds []contract.ArtifactKind
	ToolResults   bool
}

// Prunable is what may go of a conversation.
type Prunable struct {
	// Epoch is the conversation's: what is live has not changed while it is the same.
	Epoch int64
	// Busy says that a run is under way: nothing goes then.
	Busy bool
	// Artifacts and Messages may go. Size of the former are bytes of their content.
	Artifacts []seals.PrunedArtifact
	Messages  []PrunableMessage
}

// PrunableMessage is a tool result whose content may go.
type PrunableMessage struct{ Seq, Bytes int64 }

// minPrunedBytes is what a tool result has at least to be pruned: a placeholder has about half of it.
const minPrunedBytes = 400

// Prunable looks for what a rule lets go of a conversation. It never finds what the live context needs: what the
// active marker, the one that waits and the one below the active (which an undo brings back) show, the summaries and
// the vendors' own compactions of all markers, the contexts of the active and the prepared; and nothing while a run
// is under way.
func (s *Store) Prunable(ctx context.Context, ref db.ConversationRef, rule Rule) (Prunable, error) {
	var p Prunable
	err := s.db.Snapshot(ctx, "look for what can be pruned", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		p = Prunable{Epoch: c.Epoch}
		if !c.ContentDeleted.IsZero() {
			return nil
		}
		if p.Busy, err = runs.UnderWay(ctx, tx, c.CID); err != nil || p.Busy {
			return err
		}
		if p.Artifacts, err = prunableArtifacts(ctx, tx, c, rule, nil); err != nil || !rule.ToolResults {
			return err
		}
		floor, kept, err := pruneFloor(ctx, tx, c)
		if err != nil || floor == 0 {
			return err
		}
		p.Messages, err = db.All(ctx, tx, func(row pgx.CollectableRow) (m PrunableMessage, err error) {
			return m, row.Scan(&m.Seq, &m.Bytes)
		}, `SELECT seq, octet_length(native) FROM messages WHERE cid = $1 AND seq <= $2 AND role = 'tool'
			AND pruned_at IS NULL
			AND bytes >= $3 AND created_at < $4 AND seq <> ALL($5)
			ORDER BY seq`, c.CID, floor, minPrunedBytes, rule.Before, kept)
		return err
	})
	return p, err
}

// prunableArtifacts finds those that a rule lets go; only of them, nil: of all.
func prunableArtifacts(ctx context.Context, q db.Querier, c conversations.Conversation, rule Rule,
	only [][]byte,
) ([]seals.PrunedArtifact, error) {
	if len(rule.ArtifactKinds) == 0 {
		return nil, nil
	}
	lock := ""
	if only != nil {
		lock = ` FOR NO KEY UPDATE OF a`
	}
	return db.All(ctx, q, func(row pgx.CollectableRow) (a seals.PrunedArtifact, err error) {
		var sum []byte
		err = row.Scan(&sum, &a.Kind, &a.Size)
		a.SHA256 = db.ToHash(sum)
		return a, err
	}, `SELECT a.sha256, a.kind, a.size FROM artifact_links l JOIN artifacts a USING (tenant, sha256)
		WHERE l.cid = $1 AND a.pruned_at IS NULL AND a.kind = ANY($2) AND a.touched_at < $3
			AND ($4::bytea[] IS NULL OR a.sha256 = ANY($4))
			AND NOT EXISTS (SELECT FROM artifact_links o WHERE o.tenant = a.tenant AND o.sha256 = a.sha256
			AND o.cid <> $1)
			AND NOT EXISTS (SELECT FROM markers m WHERE m.cid = $1
				AND (m.summary_sha256 = a.sha256 OR m.native_sha256 = a.sha256
				OR m.draft ->> 'summary' = encode(a.sha256, 'hex')))
			AND NOT EXISTS (SELECT FROM markers m JOIN runs r ON r.id = m.run WHERE m.cid = $1
				AND (m.id = nullif($5, '') OR m.status = 'prepared') AND r.context_sha256 = a.sha256)
		ORDER BY a.sha256`+lock, c.CID, rule.ArtifactKinds, rule.Before, only, c.ActiveMarker)
}

// pruneFloor is the last message that no context needs, now or after one undo; kept are those below it that are
// carried.
func pruneFloor(ctx context.Context, q db.Querier,
	c conversations.Conversation,
) (floor int64, kept []int64, err error) {
	kept = []int64{}
	if c.ActiveMarker == "" {
		return 0, kept, nil
	}
	waits, err := db.All(ctx, q, markers.Scan,
		`SELECT `+markers.Columns+` FROM markers m WHERE m.cid = $1 AND m.status = 'prepared'`, c.CID)
	if err != nil {
		return 0, kept, err
	}
	for _, m := range waits {
		kept = append(kept, m.Carried...)
	}
	m, err := markers.Find(ctx, q, c.CID, c.ActiveMarker)
	if err != nil {
		return 0, kept, err
	}
	kept = append(kept, m.Carried...)
	// Below the active one, and through digests: a run replaces those from the messages beneath.
	for undone := false; !undone || m.Digest; undone = true {
		if m.Base == "" {
			return 0, kept, nil
		}
		if m, err = markers.Find(ctx, q, c.CID, m.Base); err != nil {
			return 0, kept, err
		}
		kept = append(kept, m.Carried...)
	}
	return m.CoversTo, kept, nil
}

// ErrBusy: the conversation is in use just now, and was left alone.
var ErrBusy = errors.New("the conversation is in use")

// prune runs one small transaction that takes something from a conversation, unless it is in use.
func (s *Store) prune(ctx context.Context, ref db.ConversationRef,
	do func(context.Context, pgx.Tx, conversations.Conversation) (seals.Pruned, error),
) (seals.Pruned, error) {
	var p seals.Pruned
	err := s.db.Write(ctx, "prune a conversation", func(ctx context.Context, tx pgx.Tx) error {
		// Whoever works with the conversation goes first.
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
			return err
		}
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		busy, err := runs.UnderWay(ctx, tx, c.CID)
		if err != nil {
			return err
		}
		if busy {
			return ErrBusy
		}
		if p, err = do(ctx, tx, c); err != nil || len(p.Artifacts) == 0 && len(p.Messages) == 0 {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&p.At); err != nil {
			return err
		}
		of := seals.Subject{Kind: seals.Pruning, ID: db.NewID()}
		return seals.Put(ctx, tx, c.CID, []seals.Subject{of}, []seals.Record{{Pruned: &p}})
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" { // lock_not_available
		return seals.Pruned{}, ErrBusy
	}
	return p, err
}

// PruneArtifacts takes the content of artifacts that a rule lets go; those that are needed meanwhile stay. Their rows,
// with hash, kind and size, stay too, and what went is sealed. A conversation that is in use is ErrBusy.
func (s *Store) PruneArtifacts(ctx context.Context, ref db.ConversationRef, rule Rule,
	hashes []db.Hash,
) (seals.Pruned, error) {
	only := make([][]byte, len(hashes))
	for i, h := range hashes {
		only[i] = h[:]
	}
	return s.prune(ctx, ref, func(ctx context.Context, tx pgx.Tx, c conversations.Conversation) (seals.Pruned, error) {
		list, err := prunableArtifacts(ctx, tx, c, rule, only)
		if err != nil {
			return seals.Pruned{}, err
		}
		gone := make([][]byte, len(list))
		for i := range list {
			gone[i] = list[i].SHA256[:]
		}
		_, err = tx.Exec(
			ctx, `UPDATE artifacts SET data = NULL, pruned_at = now() WHERE tenant = $1 AND sha256 = ANY($2)`,
			c.Ref.Tenant, gone)
		return seals.Pruned{Artifacts: list}, err
	})
}

// Placeholder is what stands in the place of a message's content.
type Placeholder struct {
	Seq int64
	// Was is the SHA-256 of the content that it stands for: another one is left alone.
	Was    db.Hash
	Native []byte
}

// PruneMessages puts placeholders in the place of tool results. epoch is Prunable.Epoch: when what is live has
// changed since, the conversation is ErrBusy. The chain over the messages stays as it is, and what went is sealed
// with its hash.
func (s *Store) PruneMessages(ctx context.Context, ref db.ConversationRef, epoch int64,
	list []Placeholder,
) (seals.Pruned, error) {
	return s.prune(ctx, ref, func(ctx context.Context, tx pgx.Tx, c conversations.Conversation) (seals.Pruned, error) {
		var p seals.Pruned
		if c.Epoch != epoch {
			return p, ErrBusy
		}
		floor, kept, err := pruneFloor(ctx, tx, c)
		if err != nil {
			return p, err
		}
		if _, err := tx.Exec(ctx, `SET LOCAL precis.maintenance = 'prune'`); err != nil {
			return p, err
		}
		for _, m := range list {
			var size int64
			err := tx.QueryRow(ctx, `SELECT octet_length(native) FROM messages
				WHERE cid = $1 AND seq = $2 AND seq <= $3 AND seq <> ALL($4) AND role = 'tool' AND pruned_at IS NULL
					AND sha256(native) = $5`, c.CID, m.Seq, floor, kept, m.Was[:]).Scan(&size)
			if errors.Is(err, pgx.ErrNoRows) {
				continue
			}
			if err == nil {
				_, err = tx.Exec(ctx, `UPDATE messages SET native = $3, pruned_at = now() WHERE cid = $1 AND seq = $2`,
					c.CID, m.Seq, m.Native)
			}
			if err != nil {
				return p, err
			}
			p.Messages = append(p.Messages, seals.PrunedMessage{
				Seq: m.Seq, Native: m.Was, Placeholder: sha256.Sum256(m.Native), Bytes: size,
			})
		}
		return p, nil
	})
}
