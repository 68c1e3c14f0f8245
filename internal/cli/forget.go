package cli

import (
	"context"

	"precis/internal/cli/connect"
	"precis/internal/cli/fail"
	"precis/internal/service"
)

// forget deletes the content of conversations, also after the command was interrupted. The records of their runs are
// kept. An ephemeral store is deleted as a whole anyway.
func (a *app) forget(ctx context.Context, s *session, refs ...service.ConversationRef) {
	if s.Ephemeral {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connect.CloseTimeout)
	defer cancel()
	for _, ref := range refs {
		if err := a.service(s).DeleteContent(ctx, ref); err != nil {
			a.say("precis: the content of conversation %s was not deleted: %s", ref.ID, fail.Explain(err))
		}
	}
}
