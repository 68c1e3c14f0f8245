package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// Enrichment is one version of a piece of live state.
type Enrichment struct {
	Key string
	// Version counts the writes of the key, from 1.
	Version int64
	// Value is any bytes; empty: removed.
	Value []byte
	// Source is what was set, where Value is its rendering: a JSON object. Nil: Value is all there is.
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

// SetEnrichment writes a new version of a piece of state; an empty value removes it. Setting what is there already
// makes no new version.
func (s *Store) SetEnrichment(ctx context.Context, ref ConversationRef, key string, value []byte) (Enrichment, error) {
	return s.SetRenderedEnrichment(ctx, ref, key, value, nil)
}

// SetRenderedEnrichment is SetEnrichment for a value that is the rendering of source, a JSON object.
func (s *Store) SetRenderedEnrichment(ctx context.Context, ref ConversationRef, key string, value []byte,
	source json.RawMessage,
) (Enrichment, error) {
	var e Enrichment
	if !enrichmentKey.MatchString(key) {
		return e, fmt.Errorf("store: set state: %w",
			invalidf("key %q: lower-case letters, digits, _ and -, at most 64", key))
	}
	if value == nil {
		value = []byte{}
	}
	err := s.write(ctx, "set state", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		last, err := one(ctx, tx, scanEnrichment, `SELECT `+enrichmentColumns+` FROM enrichments e
			WHERE e.cid = $1 AND e.key = $2 ORDER BY e.version DESC LIMIT 1`, c.cid, key)
		if err != nil && !isNotFound(err) {
			return err
		}
		if err == nil && string(last.Value) == string(value) && string(last.Source) == string(source) {
			e = last
			return nil
		}
		e, err = one(ctx, tx, scanEnrichment, `INSERT INTO enrichments AS e (cid, key, version, value, after_seq, epoch, source, tokens)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING `+enrichmentColumns, c.cid, key, last.Version+1, value, c.HeadSeq, c.Epoch,
			[]byte(source), pipeline.EstimateText(string(value)))
		if err != nil {
			return err
		}
		return seal(ctx, tx, c.cid, ofState(e))
	})
	return e, err
}

// GetEnrichment reads the current version, also before it counts for a context. One that was never set, or was removed,
// is ErrNotFound.
func (s *Store) GetEnrichment(ctx context.Context, ref ConversationRef, key string) (Enrichment, error) {
	var e Enrichment
	err := s.read(ctx, "read state", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		e, err = one(ctx, q, scanEnrichment, `SELECT `+enrichmentColumns+` FROM enrichments e
			WHERE e.cid = $1 AND e.key = $2 ORDER BY e.version DESC LIMIT 1`, cid, cleanText(key))
		if isNotFound(err) || err == nil && len(e.Value) == 0 {
			return notFoundf("state %q", key)
		}
		return err
	})
	return e, err
}

// Enrichments gives the current version of every key that is set, by key, also before it counts for a context.
func (s *Store) Enrichments(ctx context.Context, ref ConversationRef) ([]Enrichment, error) {
	var list []Enrichment
	err := s.read(ctx, "read state", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = all(ctx, q, scanEnrichment, `SELECT * FROM (SELECT DISTINCT ON (e.key) `+enrichmentColumns+` FROM enrichments e
			WHERE e.cid = $1 ORDER BY e.key, e.version DESC) e WHERE octet_length(value) > 0 ORDER BY key`, cid)
		return err
	})
	return list, err
}

// enrichmentTokens sums the values that count for the turn that a conversation is in.
func enrichmentTokens(ctx context.Context, q querier, c Conversation) (int64, error) {
	return one(ctx, q, pgx.RowTo[int64], `SELECT coalesce(sum(tokens), 0)::bigint FROM (
			SELECT DISTINCT ON (e.key) coalesce(e.tokens, octet_length(e.value) / 3) AS tokens FROM enrichments e
			WHERE e.cid = $1 AND (e.epoch < $2 OR e.after_seq < greatest(1, (SELECT max(seq) FROM messages WHERE cid = $1 AND genuine)))
			ORDER BY e.key, e.version DESC
		) e`, c.cid, c.Epoch)
}

// enrichmentsFor picks the values that count for a turn: those set before its first message, or before the last change
// of the marker if that came later. Between two markers and within a turn they never change, so that the context stays
// a prefix of the next one.
func enrichmentsFor(ctx context.Context, q querier, c Conversation, turnStart int64) ([]Enrichment, error) {
	list, err := all(ctx, q, scanEnrichment, `SELECT DISTINCT ON (e.key) `+enrichmentColumns+` FROM enrichments e
		WHERE e.cid = $1 AND (e.epoch < $2 OR e.after_seq < $3) ORDER BY e.key, e.version DESC`, c.cid, c.Epoch, max(turnStart, 1))
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for _, e := range list {
		if len(e.Value) > 0 {
			kept = append(kept, e)
		}
	}
	return kept, nil
}
