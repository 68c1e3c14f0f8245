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
	// Tokens in all: input, cached input and output. Not over 0: no figure.
	Tokens int
	// Estimate is the local estimate of the same content in tokens, for the calibration; 0: not known.
	Estimate int
	// Epoch is Conversation.Epoch when the request began, nil: not known. Then it is that of the reply that is open,
	// else now, unless the figure fits the context before the last marker better (see late). A figure of an earlier
	// epoch is dropped.
	Epoch *int64
	// CoversSeq is the last message that the figure counts, 0: the last one that is appended with it.
	CoversSeq int64
	// Covers is the index of that message among those that are appended with it, nil: CoversSeq counts.
	Covers *int

	// late says that it was found to be of an earlier epoch.
	late bool
}

// judgeUsage makes the report definite: which message it covers, and of which epoch it is.
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

// lateUsage reports whether a figure of unknown age is that of a request which began before the active marker: it is
// the first one since, and nearer to the size before the marker than to the size after it, with what came since added
// to both.
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
		return false, nil // one has been dropped already: an agent has one request under way at a time
	}
	then, err := conversations.SumsAt(ctx, tx, c.CID, min(seen, c.HeadSeq))
	if db.IsNotFound(err) { // seen is what is being appended: nothing came since
		then, err = c.Sums, nil
	}
	if err != nil {
		return false, err
	}
	since := int(c.Sums.Tokens - then.Tokens)
	return u.Tokens-since > (m.TokensBefore+m.TokensAfter)/2, nil
}

// takeUsage takes over a server's figure, unless it is of a context that is no longer sent or covers less than
// the figure that is there.
func takeUsage(c *conversations.Conversation, r *UsageReport) {
	switch {
	case r == nil, r.Epoch != nil && *r.Epoch != c.Epoch, !c.Usage.Stale && c.Usage.CoversSeq > r.CoversSeq:
		return
	case r.late: // the next one is not taken for late as well
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

// RecordUsage takes over a server's figure without messages. It returns the conversation with what now counts.
func (s *Store) RecordUsage(ctx context.Context, ref db.ConversationRef,
	r UsageReport,
) (conversations.Conversation, error) {
	res, err := s.Append(ctx, ref, nil, AppendOptions{Usage: &r})
	return res.Conversation, err
}

// replyUsage ties a reply's figure to what the reply has read. head is the conversation's before the reply's own
// messages: what somebody else said meanwhile is not in the figure.
func replyUsage(p replies.Reply, end ReplyEnd, head int64) *UsageReport {
	if end.Usage == nil {
		return nil
	}
	u := *end.Usage
	u.Epoch = &p.Epoch
	if p.HeadSeq > 0 && (head > p.HeadSeq || u.Covers == nil) {
		u.CoversSeq, u.Covers = p.HeadSeq, nil
		if end.Input > 0 {
			u.Tokens = end.Input // the answer stands behind what is not covered, or is still to come, and is estimated
		}
	}
	return &u
}
