// Package livestate keeps the live state of conversations: versioned pieces such as a todo list or a plan, which are
// injected again after a compaction.
package livestate

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/pipeline"
)

// Store sets and reads pieces of live state.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Enrichment is one version of a piece of live state.
type Enrichment struct {
	Key string
	// Version counts the writes of the key, from 1.
	Version int64
	// Value is any bytes; empty: removed.
	Value []byte
	// Source is the JSON object that Value was rendered from, nil: Value was set as it is.
	Source json.RawMessage
	// AfterSeq and Epoch are the conversation's head and epoch when it was set.
	AfterSeq, Epoch int64
	Created         time.Time
}

const enrichmentColumns = `e.key, e.version, e.value, e.after_seq, e.epoch, e.created_at, e.source`

func scanEnrichment(row pgx.CollectableRow) (e Enrichment, err error) {
	return e, row.Scan(&e.Key, &e.Version, &e.Value, &e.AfterSeq, &e.Epoch, &e.Created, (*[]byte)(&e.Source))
}

var enrichmentKey = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// ErrKeys: the conversation has contract.MaxStateKeys keys that are set.
var ErrKeys = errors.New("the conversation has as many keys of live state as it can have")

// checkKeys returns ErrKeys if the conversation can have no further key.
func checkKeys(ctx context.Context, q db.Querier, cid int64) error {
	n, err := db.One(ctx, q, pgx.RowTo[int], `SELECT count(*) FROM (
		SELECT DISTINCT ON (e.key) octet_length(e.value) AS size FROM enrichments e WHERE e.cid = $1
		ORDER BY e.key, e.version DESC) k WHERE size > 0`, cid)
	if err == nil && n >= contract.MaxStateKeys {
		err = ErrKeys
	}
	return err
}

// Set writes a new version of a piece of state; an empty value removes it. Setting the current value again writes no
// new version.
func (s *Store) Set(ctx context.Context, ref db.ConversationRef, key string, value []byte) (Enrichment, error) {
	return s.SetRendered(ctx, ref, key, value, nil)
}

// SetRendered is Set for a value that was rendered from source, a JSON object.
func (s *Store) SetRendered(ctx context.Context, ref db.ConversationRef, key string, value []byte,
	source json.RawMessage,
) (Enrichment, error) {
	var e Enrichment
	if !enrichmentKey.MatchString(key) {
		return e, db.Failed("set state", db.Invalidf("key %q: lower-case letters, digits, _ and -, at most 64", key))
	}
	if value == nil {
		value = []byte{}
	}
	err := s.db.Write(ctx, "set state", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		last, err := db.One(ctx, tx, scanEnrichment, `SELECT `+enrichmentColumns+` FROM enrichments e
			WHERE e.cid = $1 AND e.key = $2 ORDER BY e.version DESC LIMIT 1`, c.CID, key)
		if err != nil && !db.IsNotFound(err) {
			return err
		}
		if err == nil && string(last.Value) == string(value) && string(last.Source) == string(source) {
			e = last
			return nil
		}
		if len(last.Value) == 0 && len(value) > 0 {
			if err := checkKeys(ctx, tx, c.CID); err != nil {
				return err
			}
		}
		e, err = db.One(ctx, tx, scanEnrichment, `INSERT INTO enrichments AS e (cid, key, version, value, after_seq,
			epoch, source, tokens)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			RETURNING `+enrichmentColumns, c.CID, key, last.Version+1, value, c.HeadSeq, c.Epoch,
			[]byte(source), pipeline.EstimateText(string(value)))
		if err != nil {
			return err
		}
		return seals.Write(ctx, tx, c.CID, seals.OfLiveState(e.Key, e.Version))
	})
	return e, err
}

// Get reads the current version, even if it is not in a context yet. A key that was never set, or was removed, is
// ErrNotFound.
func (s *Store) Get(ctx context.Context, ref db.ConversationRef, key string) (Enrichment, error) {
	var e Enrichment
	err := s.db.Read(ctx, "read state", func(ctx context.Context, q db.Querier) error {
		cid, err := conversations.Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		e, err = db.One(ctx, q, scanEnrichment, `SELECT `+enrichmentColumns+` FROM enrichments e
			WHERE e.cid = $1 AND e.key = $2 ORDER BY e.version DESC LIMIT 1`, cid, db.CleanText(key))
		if db.IsNotFound(err) || err == nil && len(e.Value) == 0 {
			return db.NotFoundf("state %q", key)
		}
		return err
	})
	return e, err
}

// List returns the current version of every key that is set, by key, even if it is not in a context yet.
func (s *Store) List(ctx context.Context, ref db.ConversationRef) ([]Enrichment, error) {
	var list []Enrichment
	err := s.db.Read(ctx, "read state", func(ctx context.Context, q db.Querier) error {
		cid, err := conversations.Readable(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = db.All(ctx, q, scanEnrichment, `SELECT * FROM (SELECT DISTINCT ON (e.key) `+enrichmentColumns+`
			FROM enrichments e
			WHERE e.cid = $1 ORDER BY e.key, e.version DESC) e WHERE octet_length(value) > 0 ORDER BY key`, cid)
		return err
	})
	return list, err
}
