package cli

import (
	"context"

	"precis/internal/cli/fail"
	"precis/internal/conversation"
)

// forget removes what was said in conversations that are not to be kept. Their runs stay on record.
func (c *compaction) forget(ctx context.Context, list []conversation.Imported) {
	if !c.flags.keep {
		c.app.forget(ctx, c.s, list)
	}
}

func (a *app) forget(ctx context.Context, s *session, list []conversation.Imported) {
	if s.ephemeral {
		return // it goes as a whole
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	for _, im := range list {
		if err := s.store.Retention.DeleteContent(ctx, im.Conversation.Ref); err != nil {
			a.say("precis: the content of conversation %s was not deleted: %s", im.Conversation.Ref.ID,
				fail.Explain(err))
		}
	}
}
