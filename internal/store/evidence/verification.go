package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/store/seals"
)

// CheckChain recomputes the chain over all messages of a conversation and returns it at a sequence number (0: the
// head), where a marker's CoveredChain must equal it. A message that does not fit the chain, or a head that is not the
// conversation's, is ErrTampered.
func (s *Store) CheckChain(ctx context.Context, ref db.ConversationRef, upTo int64) (db.Hash, error) {
	var chain db.Hash
	err := s.Verify(ctx, ref, func(ctx context.Context, v *Verification) error {
		if !v.Conversation.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		if upTo == 0 {
			upTo = v.Conversation.HeadSeq
		}
		f, chains, err := v.Messages(ctx, upTo)
		if err != nil {
			return err
		}
		for _, finding := range f.List {
			if finding.State != Pruned {
				return fmt.Errorf("conversation %q, message %s: %s: %w", ref.ID, finding.Key, finding.Detail,
					db.ErrTampered)
			}
		}
		chain = chains[upTo]
		return nil
	})
	return chain, err
}

// Verification compares one snapshot of a conversation with its chains, seals and hashes.
type Verification struct {
	Conversation conversations.Conversation

	db *db.DB
	tx pgx.Tx
	// pruned is what prunings have removed, read once.
	pruned *prunedSet
}

type prunedSet struct {
	messages  map[int64]prunedMessage
	artifacts map[db.Hash]prunedArtifact
}

// at is zero if the seal does not have the time.
type (
	prunedMessage struct {
		seals.PrunedMessage
		at time.Time
	}
	prunedArtifact struct {
		seals.PrunedArtifact
		at time.Time
	}
)

// Verify calls do with one snapshot of a conversation. do may be called more than once, so it must set its results and
// not add to them.
func (s *Store) Verify(ctx context.Context, ref db.ConversationRef,
	do func(context.Context, *Verification) error,
) error {
	return s.db.Snapshot(ctx, "verify a conversation", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		return do(ctx, Within(s.db, tx, c))
	})
}

// Within returns a Verification that reads a conversation within a transaction.
func Within(d *db.DB, tx pgx.Tx, c conversations.Conversation) *Verification {
	return &Verification{Conversation: c, db: d, tx: tx}
}

// day returns the day of a pruning as recorded in its seal, or else in the row.
func (v *Verification) day(recorded time.Time, row *time.Time) string {
	switch {
	case !recorded.IsZero():
		return recorded.UTC().Format(time.DateOnly)
	case row != nil:
		return row.UTC().Format(time.DateOnly)
	}
	return "an unknown day"
}

// prunings reads what was pruned of the conversation.
func (v *Verification) prunings(ctx context.Context) (*prunedSet, error) {
	if v.pruned != nil {
		return v.pruned, nil
	}
	set := &prunedSet{messages: map[int64]prunedMessage{}, artifacts: map[db.Hash]prunedArtifact{}}
	rows, err := v.tx.Query(ctx, `SELECT record FROM seals WHERE cid = $1 AND kind = 'prune' ORDER BY n`,
		v.Conversation.CID)
	if err != nil {
		return nil, err
	}
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		var r seals.Record
		if json.Unmarshal(raw, &r) != nil || r.Pruned == nil {
			return nil // the chain of the seals reports it
		}
		for _, m := range r.Pruned.Messages {
			set.messages[m.Seq] = prunedMessage{m, r.Pruned.At}
		}
		for _, a := range r.Pruned.Artifacts {
			set.artifacts[a.SHA256] = prunedArtifact{a, r.Pruned.At}
		}
		return nil
	})
	v.pruned = set
	return set, err
}

// Run reads one run of the conversation with its attempts. A run of another conversation is ErrNotFound.
func (v *Verification) Run(ctx context.Context, id string) (runs.Run, error) {
	r, err := runs.FindWithAttempts(ctx, v.tx, db.RunRef{Tenant: v.Conversation.Ref.Tenant, ID: id})
	if err == nil && r.Conversation != v.Conversation.Ref.ID {
		err = db.NotFoundf("run %q", id)
	}
	return r, err
}

// Marker reads one of the conversation's markers.
func (v *Verification) Marker(ctx context.Context, id string) (markers.Marker, error) {
	return markers.Find(ctx, v.tx, v.Conversation.CID, id)
}

// Runs lists the ids of the conversation's runs, oldest first.
func (v *Verification) Runs(ctx context.Context) ([]string, error) {
	return db.All(ctx, v.tx, pgx.RowTo[string], `SELECT id FROM runs WHERE cid = $1 ORDER BY created_at, id`,
		v.Conversation.CID)
}

// Context is contexts.Store.Read for the snapshot that is verified.
func (v *Verification) Context(ctx context.Context, o contexts.Options) (contexts.Source, error) {
	live, packed, err := contexts.ReadLocked(ctx, v.tx, v.Conversation, o)
	if err != nil {
		return live, err
	}
	return contexts.Unpack(v.db, live, packed)
}
