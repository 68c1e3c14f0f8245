package changes

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/markers"
	"precis/internal/store/replies"
)

// UsageReport is a server's own figure for one request and its answer.
type UsageReport struct {
	// Tokens is the total of input, cached input and output; 0 or less: no figure.
	Tokens int
	// Estimate is the local estimate of the same content in tokens, for the calibration; 0: not known.
	Estimate int
	// Epoch is Conversation.Epoch when the request began, nil: not known. Then the epoch of the open reply is used, or
	// else the current one, unless the figure fits the context before the last marker better (see late). A figure of an
	// earlier epoch is dropped.
	Epoch *int64
	// CoversSeq is the last message that the figure counts, 0: the last message appended with it.
	CoversSeq int64
	// Covers is the index of that message among the messages appended with it, nil: see CoversSeq.
	Covers *int

	// late is set if the figure was found to be of an earlier epoch.
	late bool
}

// judgeUsage determines which message a report covers and its epoch.
func judgeUsage(ctx context.Context, tx pgx.Tx, c *conversations.Conversation, r *UsageReport,
	appended []int64,
) (*UsageReport, error) {
	if r == nil || r.Tokens <= 0 {
		return nil, nil
	}
	u := *r
	switch {
	case u.Covers != nil && *u.Covers >= 0 && *u.Covers < len(appended):
		u.CoversSeq = appended[*u.Covers]
	case u.CoversSeq == 0 && len(appended) > 0:
		u.CoversSeq = appended[len(appended)-1]
	case u.CoversSeq == 0:
		u.CoversSeq = c.HeadSeq
	}
	u.CoversSeq = min(u.CoversSeq, c.HeadSeq)
	if u.Epoch != nil {
		return &u, nil
	}
	open, err := replies.Active(ctx, tx, c.CID)
	switch {
	case err == nil:
		u.Epoch = &open.Epoch
		return &u, nil
	case !db.IsNotFound(err):
		return nil, err
	}
	u.late, err = lateUsage(ctx, tx, c, u)
	return &u, err
}

// lateUsage reports whether a figure of unknown epoch belongs to a request that began before the active marker. That is
// so if it is the first figure since, and nearer to the size before the marker than to the size after it, each with the
// messages since.
func lateUsage(ctx context.Context, tx pgx.Tx, c *conversations.Conversation, u UsageReport) (bool, error) {
	if c.ActiveMarker == "" || c.Usage.Tokens > 0 && !c.Usage.Stale {
		return false, nil
	}
	m, err := markers.Find(ctx, tx, c.CID, c.ActiveMarker)
	if err != nil || m.TokensBefore <= m.TokensAfter {
		return false, err
	}
	seen := max(m.ValveUpTo, m.CoversTo)
	if c.Usage.CoversSeq > seen {
		return false, nil // one was dropped already: an agent sends one request at a time
	}
	then, err := conversations.SumsAt(ctx, tx, c.CID, min(seen, c.HeadSeq))
	if db.IsNotFound(err) { // seen is being appended now: there are no messages since
		then, err = c.Sums, nil
	}
	if err != nil {
		return false, err
	}
	since := int(c.Sums.Tokens - then.Tokens)
	return u.Tokens-since > (m.TokensBefore+m.TokensAfter)/2, nil
}

// takeUsage sets a server's figure, unless it is of a context that is no longer sent, or covers less than the current
// figure.
func takeUsage(c *conversations.Conversation, r *UsageReport) {
	switch {
	case r == nil, r.Epoch != nil && *r.Epoch != c.Epoch, !c.Usage.Stale && c.Usage.CoversSeq > r.CoversSeq:
		return
	case r.late: // so that the next figure is not found late too
		c.Usage.CoversSeq = max(c.Usage.CoversSeq, r.CoversSeq)
		return
	}
	c.Usage = conversations.Usage{
		Tokens: r.Tokens, CoversSeq: r.CoversSeq, Estimate: r.Estimate,
		Calibration: c.Usage.Calibration,
	}
	if r.Estimate > 0 {
		c.Usage.Calibration = float64(r.Tokens) / float64(r.Estimate)
	}
}

// RecordUsage records a server's figure without messages, and returns the conversation with its current figure.
func (s *Store) RecordUsage(ctx context.Context, ref db.ConversationRef,
	r UsageReport,
) (conversations.Conversation, error) {
	res, err := s.Append(ctx, ref, nil, AppendOptions{Usage: &r})
	return res.Conversation, err
}

// replyUsage returns a reply's figure with the epoch and messages that the reply has read. head is the conversation's
// head before the reply's own messages. The figure does not count messages that others appended during the reply.
func replyUsage(p replies.Reply, end ReplyEnd, head int64) *UsageReport {
	if end.Usage == nil {
		return nil
	}
	u := *end.Usage
	u.Epoch = &p.Epoch
	if p.HeadSeq > 0 && (head > p.HeadSeq || u.Covers == nil) {
		u.CoversSeq, u.Covers = p.HeadSeq, nil
		if end.Input > 0 {
			u.Tokens = end.Input // the answer comes after messages that are not counted, so it is estimated
		}
	}
	return &u
}
