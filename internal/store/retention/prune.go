// Package retention removes content: it prunes by age, and deletes all content of a conversation. The hashes stay.
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

// Rule is what may be pruned.
type Rule struct {
	// Before bounds the age: what was written or used since then stays.
	Before time.Time
	// ArtifactKinds are the kinds of artifacts to prune; ToolResults is set to prune the content of tool results.
	ArtifactKinds []contract.ArtifactKind
	ToolResults   bool
}

// Prunable is what can be pruned of a conversation.
type Prunable struct {
	// Epoch is the conversation's. While it is the same, the live context has not changed.
	Epoch int64
	// Busy is set if a run is unfinished, so that nothing can be pruned.
	Busy bool
	// Artifacts and Messages can be pruned. The Size of an artifact is the size of its content in bytes.
	Artifacts []seals.PrunedArtifact
	Messages  []PrunableMessage
}

// PrunableMessage is a tool result whose content can be pruned.
type PrunableMessage struct{ Seq, Bytes int64 }

// minPrunedBytes is the minimum size of a tool result to prune. A placeholder has about half of it.
const minPrunedBytes = 400

// Prunable returns what a rule allows to prune of a conversation. It excludes what a context needs: the messages in the
// contexts of the active marker, of the prepared one and of the active one's base (which an undo makes active again),
// the summaries and native compactions of all markers, and the contexts of the active and the prepared marker. While a
// run is unfinished, nothing can be pruned, and neither for 30 days after a run that failed by a fault of ours.
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
		if evidence, err := runs.FailedByFault(ctx, tx, c.CID); err != nil || evidence {
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

// prunableArtifacts returns the artifacts that a rule allows to prune, among the hashes in only; nil: among all.
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

// pruneFloor returns the last message that no context needs, now or after one undo. kept are the carried messages below
// it.
func pruneFloor(ctx context.Context, q db.Querier,
	c conversations.Conversation,
) (floor int64, kept []int64, err error) {
	kept = []int64{}
	if c.ActiveMarker == "" {
		return 0, kept, nil
	}
	prepared, err := db.All(ctx, q, markers.Scan,
		`SELECT `+markers.Columns+` FROM markers m WHERE m.cid = $1 AND m.status = 'prepared'`, c.CID)
	if err != nil {
		return 0, kept, err
	}
	for _, m := range prepared {
		kept = append(kept, m.Carried...)
	}
	m, err := markers.Find(ctx, q, c.CID, c.ActiveMarker)
	if err != nil {
		return 0, kept, err
	}
	kept = append(kept, m.Carried...)
	// Go down to the active marker's base, and further through digests, which a run may replace by a summary of their
	// messages.
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

// ErrBusy: the conversation is in use, and nothing was pruned.
var ErrBusy = errors.New("the conversation is in use")

// prune runs one small transaction that prunes a conversation, or returns ErrBusy if it is in use.
func (s *Store) prune(ctx context.Context, ref db.ConversationRef,
	do func(context.Context, pgx.Tx, conversations.Conversation) (seals.Pruned, error),
) (seals.Pruned, error) {
	var p seals.Pruned
	err := s.db.Write(ctx, "prune a conversation", func(ctx context.Context, tx pgx.Tx) error {
		// Other transactions have priority: wait for a lock only briefly.
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

// PruneArtifacts removes the content of artifacts that a rule allows to prune, except those that have become needed
// since. It keeps their rows with hash, kind and size, and seals what it removed. It returns ErrBusy if the
// conversation is in use.
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
		removed := make([][]byte, len(list))
		for i := range list {
			removed[i] = list[i].SHA256[:]
		}
		_, err = tx.Exec(
			ctx, `UPDATE artifacts SET data = NULL, pruned_at = now() WHERE tenant = $1 AND sha256 = ANY($2)`,
			c.Ref.Tenant, removed)
		return seals.Pruned{Artifacts: list}, err
	})
}

// Placeholder replaces a message's content.
type Placeholder struct {
	Seq int64
	// Was is the SHA-256 of the content to replace. Other content stays.
	Was    db.Hash
	Native []byte
}

// PruneMessages replaces tool results by placeholders. epoch is Prunable.Epoch: if the live context has changed since,
// PruneMessages returns ErrBusy. The chain over the messages does not change, and the hashes of the removed content are
// sealed.
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
