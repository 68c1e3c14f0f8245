package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// DiscardPreparedOf is DiscardPrepared for the marker of a run, and does nothing when another one waits.
func (s *Store) DiscardPreparedOf(ctx context.Context, ref ConversationRef, run, why string) error {
	return s.write(ctx, "discard a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		waits, err := one(ctx, tx, pgx.RowTo[bool],
			`SELECT EXISTS (SELECT FROM markers WHERE cid = $1 AND status = 'prepared' AND run = $2)`,
			c.cid, cleanText(run))
		if err != nil || !waits {
			return err
		}
		return discardPrepared(ctx, tx, c.cid, "", cleanText(why))
	})
}
