package contexts

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/replies"
)

// BeginReply opens a reply, as replies.Store.Open does, and reads the context for the model in the same transaction.
func (s *Store) BeginReply(ctx context.Context, ref db.ConversationRef,
	ttl time.Duration,
) (replies.Reply, Source, error) {
	var p replies.Reply
	var v Source
	var packed []byte
	err := s.db.Write(ctx, "open a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		if p, err = replies.Open(ctx, tx, c, ttl); err != nil {
			return err
		}
		v, packed, err = ReadLocked(ctx, tx, c, Options{})
		return err
	})
	if err != nil {
		return p, v, err
	}
	v, err = Unpack(s.db, v, packed)
	return p, v, err
}
