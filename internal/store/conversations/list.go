package conversations

import (
	"context"

	"precis/internal/store/db"
)

// Get reads a conversation.
func (s *Store) Get(ctx context.Context, ref db.ConversationRef) (Conversation, error) {
	return Get(ctx, s.db, ref)
}

// List returns at most limit (1 to 1000) of a tenant's conversations, newest first. cursor is "" for the first page,
// and next of the page before for the others; next is "" after the last page. They come without system prompt, tools,
// envelope and settings, and with metadata of at most 16 KiB.
func (s *Store) List(ctx context.Context, tenant, cursor string,
	limit int,
) (list []Conversation, next string, err error) {
	after, err := db.ParseCursor(cursor)
	if err != nil {
		return nil, "", db.Failed("list conversations", err)
	}
	limit = db.ClampLimit(limit)
	err = s.db.Read(ctx, "list conversations", func(ctx context.Context, q db.Querier) (err error) {
		list, err = db.All(ctx, q, scanConversation, `SELECT `+listColumns+` FROM conversations c
			WHERE c.tenant = $1 AND ($2::timestamptz IS NULL OR (c.created_at, c.id) < ($2, $3))
			ORDER BY c.created_at DESC, c.id DESC LIMIT $4`, tenant, after.At, after.ID, limit+1)
		return err
	})
	if len(list) > limit {
		list = list[:limit]
		next = db.MakeCursor(list[limit-1].Created, list[limit-1].Ref.ID)
	}
	return list, next, err
}
