package contexts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/livestate"
	"precis/internal/store/markers"
)

// Sizes are the sizes of what is live, without its content.
type Sizes struct {
	// Tail sums the messages after the active marker, Carried the tokens of those it carries, Summary the tokens of its
	// summary. Without a marker Tail is everything.
	Tail                   conversations.Sums
	CarriedTokens, Summary int64
	// Enrichments are the tokens of the state that counts for the turn.
	Enrichments int64
}

// Tokens is the local estimate of the whole history as it would be sent, before trimming, without state.
func (l Sizes) Tokens() int64 { return l.Tail.Tokens + l.CarriedTokens + l.Summary }

// Sizes measures what is live in constant time, for a trigger that is looked at with every append.
func (s *Store) Sizes(ctx context.Context, ref db.ConversationRef) (Sizes, error) {
	var l Sizes
	err := s.db.Snapshot(ctx, "measure what is live", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		l = Sizes{Tail: c.Sums}
		if !c.ContentDeleted.IsZero() {
			return nil
		}
		l, _, err = SizesOf(ctx, tx, c)
		return err
	})
	return l, err
}

// SizesOf measures a conversation, and gives its active marker.
func SizesOf(ctx context.Context, q db.Querier, c conversations.Conversation) (Sizes, *markers.Marker, error) {
	l := Sizes{Tail: c.Sums}
	var err error
	if l.Enrichments, err = livestate.Tokens(ctx, q, c); err != nil || c.ActiveMarker == "" {
		return l, nil, err
	}
	m, err := markers.Find(ctx, q, c.CID, c.ActiveMarker)
	if err != nil {
		return l, nil, err
	}
	covered, err := conversations.SumsAt(ctx, q, c.CID, m.CoversTo)
	if err != nil {
		return l, nil, err
	}
	l.Tail, l.Summary = c.Sums.Minus(covered), int64(m.SummaryTokens)
	l.CarriedTokens, err = db.One(ctx, q, pgx.RowTo[int64], `SELECT coalesce(sum(tokens), 0)::bigint FROM messages
		WHERE cid = $1 AND seq = ANY($2)`, c.CID, m.Carried)
	return l, &m, err
}
