package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/service"
)

func (a *app) undoCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "undo CONVERSATION",
		GroupID: groupMain,
		Short:   "Take the newest compaction of a conversation back",
		Long: `Takes the newest compaction back: the context is what it was before, plus the messages that came
since. A second undo takes back the compaction before that, down to the full history. No automatic compaction
starts until the next user message.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd, func(ctx context.Context, s *session) error { return a.undo(ctx, s, args[0]) })
		},
	}
}

// undone is the JSON of `precis undo`.
type undone struct {
	Conversation string `json:"conversation"`
	// Undone was taken back. Marker is in effect now; nil means the full history.
	Undone *wire.MarkerStats `json:"undone"`
	Marker *wire.MarkerStats `json:"marker"`
}

func (a *app) undo(ctx context.Context, s *session, id string) error {
	u, err := a.service(s).Undo(ctx, service.ConversationRef{Tenant: a.tenant, ID: id})
	switch {
	case service.CodeOf(err) == service.CodeNothingToUndo:
		return fmt.Errorf("nothing to undo: conversation %s has no compaction in effect", id)
	case err != nil:
		return noConversation(err, id)
	}
	out := undone{Conversation: id, Undone: &u.Undone.MarkerStats}
	if u.Marker != nil {
		out.Marker = &u.Marker.MarkerStats
	}
	if a.json {
		return a.printJSON(out)
	}
	text := fmt.Sprintf("undone: messages %d to %d are in the context again", u.Undone.CoversFrom, u.Undone.CoversTo)
	if u.Marker == nil {
		return a.print(text + "; it is the full history now\n")
	}
	return a.print(fmt.Sprintf("%s; the compaction of messages %d to %d is in effect now\n", text, u.Marker.CoversFrom,
		u.Marker.CoversTo))
}

// noConversation turns a not-found error into one that names the conversation and says where to find ids.
func noConversation(err error, id string) error {
	if service.CodeOf(err) == service.CodeNotFound && !service.ContentDeleted(err) {
		return fmt.Errorf("there is no conversation %q; `precis runs` shows the ids", id)
	}
	return err
}

// conversationExists returns an error if there is no conversation with this id. An empty id means that none was
// given, which is not an error.
func (a *app) conversationExists(ctx context.Context, s *session, id string) error {
	if id == "" {
		return nil
	}
	_, err := a.service(s).FindConversation(ctx, service.ConversationRef{Tenant: a.tenant, ID: id})
	return noConversation(err, id)
}
