package service

import (
	"context"
	"encoding/json"
	"math"

	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
	"precis/pipeline/transcript/request"
	"precis/pipeline/transcript/valid"
)

// ContextRequest has the options of a context.
type ContextRequest struct {
	// Format of the messages. If it is "", they are in the conversation's format (anthropic for claude-code).
	Format string
	// MaxInputTokens replaces the setting of that name unless it is 0.
	MaxInputTokens int
}

// Context returns what the model is sent next. Its cost does not depend on the covered messages.
func (s *Service) Context(ctx context.Context, ref store.ConversationRef, req ContextRequest) (wire.Context, error) {
	if err := req.check(); err != nil {
		return wire.Context{}, err
	}
	view, err := s.load(ctx, ref)
	if err != nil {
		return wire.Context{}, refused(err)
	}
	out, _, err := contextOf(ctx, view, req)
	return out, refused(err)
}

func (r ContextRequest) check() error {
	if r.MaxInputTokens < 0 {
		return invalid("max_input_tokens", "is %d; it is a number of tokens, 0 for the setting's", r.MaxInputTokens)
	}
	return nil
}

// contextOf returns a view's context in the requested format, and as it was built.
func contextOf(ctx context.Context, view conversation.View, req ContextRequest) (
	wire.Context, pipeline.Context, error,
) {
	if req.MaxInputTokens > 0 {
		view.Settings.MaxInputTokens = req.MaxInputTokens
	}
	built, err := view.Context(ctx)
	if err != nil {
		return wire.Context{}, built, err
	}
	meta := view.Meta()
	to := transcript.Format(req.Format)
	if to == "" {
		to = sendable(meta.Format)
	}
	converted, err := convert.Conversation(meta, built.Items, to)
	if err != nil {
		return wire.Context{}, built, &Error{Code: CodeInvalid, Field: "format", Detail: plain(err), Cause: err}
	}
	if err := valid.Messages(to, converted.Messages, meta.Continued); err != nil {
		return wire.Context{}, built, err
	}
	out := wire.Context{
		Format: string(to), System: converted.Meta.System, Tools: converted.Meta.Tools,
		Messages: make([]json.RawMessage, len(converted.Messages)),
		Stats: wire.Stats{
			ContextStats: view.Stats(built), Version: view.Conversation.Epoch, HeadSeq: view.Conversation.HeadSeq,
		},
	}
	for i, m := range converted.Messages {
		out.Messages[i] = m
	}
	for _, l := range converted.Losses {
		out.Losses = append(out.Losses, wire.Loss{Item: l.Item, What: l.What, Why: l.Why})
	}
	if to == transcript.Anthropic && view.Marker != nil && hasReasoning(built) {
		out.Options, out.Betas = request.ClearThinking(), []string{request.ThinkingBeta}
	}
	if form := view.NativeForm(); form != "" && to == meta.Format {
		// A native summary is sent with the beta that it was made with.
		if out.Options, err = llm.WithCompactionEdit(out.Options, form); err != nil {
			return wire.Context{}, built, err
		}
		if beta := llm.NativeBeta(form); beta != "" {
			out.Betas = append(out.Betas, beta)
		}
	}
	return out, built, nil
}

// sendable returns the default format of a context: the conversation's own, or for a format of session files that of
// the API which the agent calls.
func sendable(f transcript.Format) transcript.Format {
	switch f {
	case transcript.Anthropic, transcript.OpenAI, "openai-responses", "google", "vercel", "langchain":
		return f
	}
	return transcript.Format(conversation.APIType(f))
}

// hasReasoning reports whether a context has reasoning parts.
func hasReasoning(c pipeline.Context) bool {
	for _, item := range c.Items {
		if item.Message == nil {
			continue
		}
		for _, p := range item.Message.Parts {
			if p.Kind == pipeline.PartReasoning {
				return true
			}
		}
	}
	return false
}

// Messages returns the stored messages with a number greater than after, at most limit (1 to 1000); more reports
// whether there are further ones.
func (s *Service) Messages(ctx context.Context, ref store.ConversationRef, after int64,
	limit int,
) (list []wire.Message, more bool, err error) {
	const most = 1000
	if limit <= 0 || limit > most {
		limit = most
	}
	if after < 0 {
		return nil, false, invalid("after", "is %d; it is a message's number, 0 for the beginning", after)
	}
	covered, err := s.coverage(ctx, ref)
	if err != nil {
		return nil, false, refused(err)
	}
	after = min(after, math.MaxInt64-1) // after+1 must not overflow
	size := 0
	for m, err := range s.Store.Messages.Walk(ctx, ref, after+1, 0) {
		if err != nil {
			return nil, false, refused(err)
		}
		if size += len(m.Native); len(list) == limit || size > MaxPageBytes && len(list) > 0 {
			return list, true, nil
		}
		list = append(list, wire.Message{
			Seq: m.Seq, ID: m.ClientID, Native: m.Native, Role: m.Role, Kind: m.Kind, Genuine: m.Genuine,
			Tokens: m.Tokens, Covered: covered(m.Seq),
		})
	}
	return list, false, nil
}

// coverage returns a function that reports whether the active summary covers a message.
func (s *Service) coverage(ctx context.Context, ref store.ConversationRef) (func(int64) bool, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !c.ContentDeleted.IsZero() {
		return nil, store.ErrContentDeleted
	}
	if c.ActiveMarker == "" {
		return func(int64) bool { return false }, nil
	}
	m, err := s.Store.Markers.Get(ctx, ref, c.ActiveMarker)
	if err != nil {
		return nil, err
	}
	carried := make(map[int64]bool, len(m.Carried))
	for _, seq := range m.Carried {
		carried[seq] = true
	}
	return func(seq int64) bool { return seq <= m.CoversTo && !carried[seq] }, nil
}
