package contexts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/livestate"
	"precis/internal/store/markers"
)

// Sizes are the sizes of the parts of a context, without their content.
type Sizes struct {
	// Tail sums the messages after the active marker, Carried the tokens of those it carries, Summary the tokens of its
	// summary. Without a marker, Tail sums all messages.
	Tail                   conversations.Sums
	CarriedTokens, Summary int64
	// Enrichments are the tokens of the live state for the current turn.
	Enrichments int64
}

// Tokens returns the local estimate of the whole history before trimming, without live state.
func (l Sizes) Tokens() int64 { return l.Tail.Tokens + l.CarriedTokens + l.Summary }

// Sizes measures the context in constant time.
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

// SizesOf is Store.Sizes within a transaction or snapshot. It also returns the active marker, nil if there is none.
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
