package changes

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/replies"
	"precis/internal/store/triggers"
)

// ReplyEnd is what comes with the end of a reply.
type ReplyEnd struct {
	Messages []conversations.NewMessage
	// Usage is the server's figure for the reply's request, nil: none. The reply determines its epoch and what it
	// covers.
	Usage *UsageReport
	// Input is the part of Usage.Tokens for the request without its answer; 0: not known.
	Input int
	// LearnWindow and Check are those of AppendOptions.
	LearnWindow int
	Check       triggers.Check
}

// EndReply ends a reply, appends its messages and checks the trigger, in one transaction. It also accepts the messages
// of an expired reply. If the reply has already ended, it returns ConflictReplyEnded, unless end is empty.
func (s *Store) EndReply(ctx context.Context, ref db.ConversationRef, reply string,
	end ReplyEnd,
) (replies.Reply, AppendResult, error) {
	var p replies.Reply
	var res AppendResult
	for i, m := range end.Messages {
		if err := m.Validate(); err != nil {
			return p, res, db.Failed("end a reply", fmt.Errorf("message %d: %w", i, err))
		}
	}
	err := s.db.Write(ctx, "end a reply", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		ended, err := db.One(ctx, tx, pgx.RowTo[bool],
			`SELECT coalesce(ended_at < expires_at, false) FROM replies WHERE cid = $1 AND id = $2`, c.CID,
			db.CleanText(reply))
		if err != nil {
			return fmt.Errorf("reply %q: %w", reply, err)
		}
		if ended && (len(end.Messages) > 0 || end.Usage != nil || end.LearnWindow > 0) {
			return db.Conflictf(db.ConflictReplyEnded, "reply %s has already ended", reply)
		}
		if p, err = replies.Close(ctx, tx, c.CID, reply); err != nil {
			return err
		}
		o := AppendOptions{Usage: replyUsage(p, end, c.HeadSeq), LearnWindow: end.LearnWindow}
		if res, err = appendLocked(ctx, tx, c, end.Messages, o); err != nil {
			return err
		}
		check := end.Check
		if check != nil {
			check = func(ctx context.Context, m triggers.State) (triggers.Decision, error) {
				m.Ended = &p
				return end.Check(ctx, m)
			}
		}
		res.Trigger, err = triggers.CheckLocked(ctx, s.db, tx, &res.Conversation, check)
		return err
	})
	return p, res, err
}
