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

// DefaultReplyTTL is the lease of a reply without a TTL of its own.
const DefaultReplyTTL = 10 * time.Minute

// MaxReplyTTL bounds the lease, and so how long a crashed agent blocks its conversation.
const MaxReplyTTL = 24 * time.Hour

// smallestWindow is the smallest number of tokens in an error that is taken for a model's window. Smaller numbers mean
// something else.
const smallestWindow = 1024

// measureSlack is the share of the context, as a divisor, by which running sums may be off before the exact size is
// stored.
const measureSlack = 50

// ReplyEnd is the end of a reply.
type ReplyEnd struct {
	// Messages, Meta and Usage are those of AppendRequest.
	Messages []json.RawMessage
	Meta     []Meta
	Usage    json.RawMessage
	// Error is the vendor's answer if the call failed, else nil.
	Error *ReplyError
}

// ReplyError is a vendor's error answer.
type ReplyError struct {
	// Status is the HTTP status, 0 if there was no answer.
	Status int
	// Body is the answer's body: text or JSON.
	Body []byte
}

// OpenReply opens a reply, the lease under which the agent's model generates, and returns it with the context to
// send. Until it is ended or ttl (0: DefaultReplyTTL) has passed, no compaction takes effect. A prepared summary that
// is due is applied first. The error has CodeReplyOpen if a reply is open already.
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
	if err != nil { // nobody has the lease: close it, so that it does not block the conversation
		if _, e := s.Store.Replies.Close(context.WithoutCancel(ctx), ref, lease.ID); e != nil {
			s.Log.Warn("a reply without an owner stays open until its lease expires", "reply", lease.ID, "error", e)
		}
		return wire.Reply{}, refused(err)
	}
	return wire.Reply{ID: lease.ID, Expires: lease.Expires.UTC(), Context: out}, nil
}

// applyDue applies a prepared summary that became due without a change of the conversation: because it was ready only
// after the second threshold had been crossed, or because a lease has expired.
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

// openContext returns the context of a reply, and stores its exact size if the running sums are off.
func (s *Service) openContext(ctx context.Context, ref store.ConversationRef, live contexts.Source,
	req ContextRequest,
) (wire.Context, error) {
	view, err := conversation.NewView(live, s.installation())
	if err != nil {
		return wire.Context{}, err
	}
	out, built, err := contextOf(ctx, view, req)
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

// EndReply ends a reply, appends its messages and evaluates the trigger. A context overflow starts a compaction at
// once, and sets the learned window if the error has it; other errors do neither.
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
			Detail: "the reply was ended before and its messages are stored: append new messages without a reply",
			Cause:  err,
		}
	}
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	return s.appended(ctx, ref, res, tc), nil
}

// overflow reports whether a vendor's error means that the context was too large, and returns the window in it, 0 if
// there is none.
func overflow(vendor string, e ReplyError) (bool, int) {
	failure := llm.Classify(vendor, e.Status, nil, e.Body, nil)
	switch failure.Kind {
	case pipeline.InputTokensExceeded:
		// The limit in a 429 is that of the account per minute, not a window.
		if failure.LimitTokens < smallestWindow || e.Status == http.StatusTooManyRequests {
			return true, 0
		}
		return true, failure.LimitTokens
	case pipeline.InputTooLarge:
		return true, 0
	}
	return false, 0
}
