package livestate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// Tokens returns the estimated tokens of the live state for a conversation's current turn.
func Tokens(ctx context.Context, q db.Querier, c conversations.Conversation) (int64, error) {
	return db.One(ctx, q, pgx.RowTo[int64], `SELECT coalesce(sum(tokens), 0)::bigint FROM (
			SELECT DISTINCT ON (e.key) coalesce(e.tokens, octet_length(e.value) / 3) AS tokens FROM enrichments e
			WHERE e.cid = $1 AND (e.epoch < $2 OR e.after_seq < greatest(1, (SELECT max(seq) FROM messages
			WHERE cid = $1 AND genuine)))
			ORDER BY e.key, e.version DESC
		) e`, c.CID, c.Epoch)
}

// ForTurn returns the live state for a turn: the values that were set before its first message, or before the last
// change of the active marker if that is later. So they do not change within a turn between two markers, and each
// context is a prefix of the next one.
func ForTurn(ctx context.Context, q db.Querier, c conversations.Conversation, turnStart int64) ([]Enrichment, error) {
	list, err := db.All(ctx, q, scanEnrichment, `SELECT DISTINCT ON (e.key) `+enrichmentColumns+` FROM enrichments e
		WHERE e.cid = $1 AND (e.epoch < $2 OR e.after_seq < $3)
		ORDER BY e.key, e.version DESC`, c.CID, c.Epoch, max(turnStart, 1))
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

// Version names one version of a piece of live state.
type Version struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
}

// At reads the given versions of live state.
func At(ctx context.Context, q db.Querier, cid int64, versions []Version) ([]Enrichment, error) {
	if len(versions) == 0 {
		return nil, nil
	}
	keys, numbers := make([]string, len(versions)), make([]int64, len(versions))
	for i, v := range versions {
		keys[i], numbers[i] = v.Key, v.Version
	}
	list, err := db.All(ctx, q, scanEnrichment, `SELECT `+enrichmentColumns+`
		FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS f(key, version, n)
		JOIN enrichments e ON e.cid = $1 AND e.key = f.key AND e.version = f.version ORDER BY f.n`, cid, keys, numbers)
	if err == nil && len(list) != len(versions) {
		err = db.NotFoundf("a version of the conversation's state")
	}
	return list, err
}
