package service

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/triggers"
	"precis/pipeline"
)

// DefaultReplyTTL is the lease of a reply that does not say how long it may take.
const DefaultReplyTTL = 10 * time.Minute

// MaxReplyTTL bounds the lease: a dead agent locks its conversation no longer.
const MaxReplyTTL = 24 * time.Hour

// smallestWindow is the least that is believed to be a model's window, in tokens: a smaller figure in an error is of
// something else.
const smallestWindow = 1024

// measureSlack is the share of the context by which running sums may be off before the exact size is kept.
const measureSlack = 50

// ReplyEnd is how a reply ended.
type ReplyEnd struct {
	// Messages, Meta and Usage are those of AppendRequest.
	Messages []json.RawMessage
	Meta     []Meta
	Usage    json.RawMessage
	// Error is the vendor's answer when the call failed, nil: it did not.
	Error *ReplyError
}

// ReplyError is a vendor's error answer.
type ReplyError struct {
	// Status is the HTTP status, 0 when no answer came.
	Status int
	// Body is the answer's body: text or JSON.
	Body []byte
}

// OpenReply says that the agent's model starts to generate, and gives the context that it reads. Until it is ended,
// or ttl has passed (0: DefaultReplyTTL), no compaction takes effect. With one open already: CodeReplyOpen. A prepared
// summary that is due takes effect before.
func (s *Service) OpenReply(ctx context.Context, ref store.ConversationRef, ttl time.Duration,
	req ContextRequest,
) (wire.Reply, error) {
	switch {
	case ttl == 0:
		ttl = DefaultReplyTTL
	case ttl < 0 || ttl > MaxReplyTTL:
		return wire.Reply{}, invalid("ttl_seconds", "is %d; it is over 0 and at most %d", int(ttl/time.Second),
			int(MaxReplyTTL/time.Second))
	}
	if err := req.check(); err != nil {
		return wire.Reply{}, err
	}
	if err := s.applyDue(ctx, ref); err != nil {
		return wire.Reply{}, refused(err)
	}
	lease, live, err := s.Store.Contexts.BeginReply(ctx, ref, ttl)
	if err != nil {
		return wire.Reply{}, refused(err)
	}
	out, err := s.openContext(ctx, ref, live, req)
	if err != nil { // nobody has the lease: it must not stand in the way
		if _, e := s.Store.Replies.Close(context.WithoutCancel(ctx), ref, lease.ID); e != nil {
			s.Log.Warn("a reply that was not given out is open until its lease expires", "reply", lease.ID, "error", e)
		}
		return wire.Reply{}, refused(err)
	}
	return wire.Reply{ID: lease.ID, Expires: lease.Expires.UTC(), Context: out}, nil
}

// applyDue makes a prepared summary take effect that became due when nobody looked: it was computed after the second
// threshold had been crossed, or a lease has expired.
func (s *Service) applyDue(ctx context.Context, ref store.ConversationRef) error {
	due := ""
	err := s.Store.Triggers.Inspect(ctx, ref, func(_ context.Context, m triggers.State) error {
		due = ""
		if m.Prepared != nil && !m.ReplyOpen {
			due = m.Prepared.ID
		}
		return nil
	})
	if err != nil || due == "" {
		return err
	}
	tc := &triggerCheck{s: s}
	_, result, err := s.Store.Triggers.Check(ctx, ref, tc.evaluate)
	if err != nil {
		return err
	}
	s.follow(ctx, ref, tc, result)
	return nil
}

// openContext writes what the reply reads, and keeps its exact size where the running sums are off.
func (s *Service) openContext(ctx context.Context, ref store.ConversationRef, live contexts.Source,
	req ContextRequest,
) (wire.Context, error) {
	view, err := conversation.NewView(live, s.installation())
	if err != nil {
		return wire.Context{}, err
	}
	out, built, err := contextOf(view, req)
	if err != nil || req.MaxInputTokens > 0 {
		return out, err
	}
	_, _, err = s.Store.Triggers.Check(ctx, ref, func(_ context.Context, m triggers.State) (triggers.Decision, error) {
		c := m.Conversation
		bound := m.Live.Tokens()
		if c.Measured != nil {
			bound = min(bound, c.Measured.Tokens+m.SinceMeasured)
		}
		exact := int64(built.Stats.Tokens) - m.Live.Enrichments
		if c.Epoch != live.Conversation.Epoch || c.HeadSeq != live.Conversation.HeadSeq || exact < 0 ||
			bound-exact <= bound/measureSlack {
			return triggers.Decision{}, nil
		}
		return triggers.Decision{Measured: &conversations.Measured{Tokens: exact, Seq: c.HeadSeq}}, nil
	})
	return out, err
}

// EndReply ends a reply, appends what came of it and looks whether a compaction is due. A context overflow starts one
// at once, and teaches the window where the error names it; other errors never do.
func (s *Service) EndReply(ctx context.Context, ref store.ConversationRef, reply string,
	end ReplyEnd,
) (wire.Appended, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	batch, err := s.decode(ctx, ref, end.Messages, end.Meta)
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	tc := &triggerCheck{s: s}
	in := changes.ReplyEnd{
		Messages: batch, Usage: usageReport(end.Usage, batch, nil), Input: readUsage(end.Usage).input,
		Check: tc.evaluate,
	}
	if end.Error != nil {
		tc.overflow, in.LearnWindow = overflow(c.Vendor, *end.Error)
	}
	_, res, err := s.Store.Changes.EndReply(ctx, ref, reply, in)
	if store.ConflictReasonOf(err) == store.ConflictReplyEnded {
		return wire.Appended{}, &Error{
			Code:   CodeReplyEnded,
			Detail: "the reply has been ended before: what it brought is there already, append what is new as messages",
			Cause:  err,
		}
	}
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	return s.appended(ctx, ref, res, tc), nil
}

// overflow says whether a vendor's error means that the context was too large, and which window it names, 0: none.
func overflow(vendor string, e ReplyError) (bool, int) {
	failure := llm.Classify(vendor, e.Status, nil, e.Body, nil)
	switch failure.Kind {
	case pipeline.InputTokensExceeded:
		// With a 429 the limit is the account's for a minute, and no window.
		if failure.LimitTokens < smallestWindow || e.Status == http.StatusTooManyRequests {
			return true, 0
		}
		return true, failure.LimitTokens
	case pipeline.InputTooLarge:
		return true, 0
	}
	return false, 0
}
