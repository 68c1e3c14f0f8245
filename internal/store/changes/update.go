package changes

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/triggers"
)

// Update changes a conversation's configuration: its model, system prompt, tools, settings. Messages and markers stay
// as they are, and so does the body with which conversations.Store.Create compares.
func (s *Store) Update(ctx context.Context, ref db.ConversationRef,
	p conversations.Patch,
) (conversations.Conversation, error) {
	c, _, err := s.Change(ctx, ref, func(conversations.Conversation) (conversations.Patch, error) { return p, nil },
		nil)
	return c, err
}

// Change is Update with a patch that change makes from the locked conversation, followed by check, since a new model
// may make a compaction due. change and check may be called more than once.
func (s *Store) Change(ctx context.Context, ref db.ConversationRef,
	change func(conversations.Conversation) (conversations.Patch, error), check triggers.Check,
) (conversations.Conversation, triggers.Result, error) {
	var c conversations.Conversation
	var w triggers.Result
	err := s.db.Write(ctx, "change a conversation", func(ctx context.Context, tx pgx.Tx) (err error) {
		if c, err = conversations.Lock(ctx, tx, ref); err != nil {
			return err
		}
		p, err := change(c)
		if err != nil {
			return err
		}
		n := conversations.NewConversation{
			Format: "-", Vendor: db.Or(p.Vendor, ""), Model: db.Or(p.Model, ""), Window: db.Or(p.Window, 0),
			MaxOutput: db.Or(p.MaxOutput, 0),
		}
		if err := n.Validate(); err != nil {
			return err
		}
		if err := conversations.ApplyPatch(ctx, tx, &c, p); err != nil {
			return err
		}
		w, err = triggers.CheckLocked(ctx, s.db, tx, &c, check)
		return err
	})
	return c, w, err
}
