package cli

import (
	"context"

	"precis/internal/cli/fail"
	"precis/internal/conversation"
)

// forget deletes the content of conversations that are not kept. The records of their runs stay.
func (c *compaction) forget(ctx context.Context, list []conversation.Imported) {
	if !c.flags.keep {
		c.app.forget(ctx, c.s, list)
	}
}

// forget deletes the content of conversations. An ephemeral store is deleted as a whole anyway.
func (a *app) forget(ctx context.Context, s *session, list []conversation.Imported) {
	if s.ephemeral {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, im := range list {
		if err := s.store.Retention.DeleteContent(ctx, im.Conversation.Ref); err != nil {
			a.say("precis: the content of conversation %s was not deleted: %s", im.Conversation.Ref.ID,
				fail.Explain(err))
		}
	}
}
