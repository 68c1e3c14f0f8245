package service

import (
	"context"
	"encoding/json"
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/triggers"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// Meta goes with one message.
type Meta struct {
	// ID is the client's own; the same one again adds nothing. "": none.
	ID string `json:"id,omitempty"`
	// Kind is user_info, reminder or synthetic, for what no person said; "": as the message itself says.
	Kind pipeline.Kind `json:"kind,omitempty"`
}

// AppendRequest adds messages at the end of a conversation.
type AppendRequest struct {
	// Messages are native, in the conversation's format, in order.
	Messages []json.RawMessage
	// Meta belongs to Messages one by one; it may be shorter.
	Meta []Meta
	// Usage is the vendor's own usage object of the request whose answer is the last assistant message of Messages, as
	// it came; nil: none.
	Usage json.RawMessage
	// IfSeq, when set, is the head that the caller believes in.
	IfSeq *int64
	// ContextVersion, when set, is Stats.Version of the context that the request of Usage was made of. Without it a
	// figure that fits the context before the last compaction better is taken for a late one, and dropped.
	ContextVersion *int64
}

// Append adds messages and looks whether a compaction is due. A run that it starts is asked for in the transaction
// of the messages: a crash loses neither or both.
func (s *Service) Append(ctx context.Context, ref store.ConversationRef, req AppendRequest) (wire.Appended, error) {
	if len(req.Messages) == 0 && len(req.Usage) == 0 {
		return wire.Appended{}, invalid("messages", "is empty, and there is no usage either")
	}
	batch, err := s.decode(ctx, ref, req.Messages, req.Meta)
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	l := &look{s: s}
	res, err := s.Store.Changes.Append(ctx, ref, batch, changes.AppendOptions{
		IfSeq: req.IfSeq, Usage: usageReport(req.Usage, batch, req.ContextVersion), Check: l.watch,
	})
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	return s.appended(ctx, ref, res, l), nil
}

// decode reads native messages as they go into the store.
func (s *Service) decode(ctx context.Context, ref store.ConversationRef, natives []json.RawMessage,
	meta []Meta,
) ([]conversations.NewMessage, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	if err != nil {
		return nil, err
	}
	return decodeAll(codec, natives, meta)
}

func decodeAll(codec transcript.Codec, natives []json.RawMessage, meta []Meta) ([]conversations.NewMessage, error) {
	if len(meta) > len(natives) {
		return nil, invalid("meta", "has %d entries for %d messages", len(meta), len(natives))
	}
	batch := make([]conversations.NewMessage, 0, len(natives))
	for i, native := range natives {
		field := fmt.Sprintf("messages[%d]", i)
		if len(native) > conversations.MaxMessageBytes {
			return nil, &Error{
				Code: CodeTooLarge, Field: field,
				Detail: fmt.Sprintf("has %d bytes, a message has at most %d", len(native),
					conversations.MaxMessageBytes),
			}
		}
		m, err := codec.Decode(native)
		if err != nil {
			return nil, &Error{
				Code: CodeInvalid, Field: field,
				Detail: fmt.Sprintf("is no %s message: %s", codec.Format(), plain(err)), Cause: err,
			}
		}
		m.ID = "" // an id inside of a message is the vendor's, and may repeat
		if i < len(meta) {
			if err := applyMeta(&m, meta[i], fmt.Sprintf("meta[%d]", i)); err != nil {
				return nil, err
			}
		}
		batch = append(batch, conversation.Stored(m))
	}
	return batch, nil
}

// applyMeta takes over what the client says of a message.
func applyMeta(m *pipeline.Message, meta Meta, field string) error {
	m.ID = meta.ID
	switch meta.Kind {
	case pipeline.KindOrdinary:
		return nil
	case pipeline.KindUserInfo, pipeline.KindReminder, pipeline.KindSynthetic:
		if m.Role != pipeline.RoleUser {
			return invalid(field+".kind", "is %q for a message of role %s; only messages of role user are told apart",
				meta.Kind, m.Role)
		}
		m.Kind = meta.Kind
		return nil
	}
	return invalid(field+".kind", "is %q; it is %s, %s or %s, or left out", meta.Kind, pipeline.KindUserInfo,
		pipeline.KindReminder, pipeline.KindSynthetic)
}

// usageReport ties a figure to the message that it covers: the last of the assistant's among those that come with it.
func usageReport(raw json.RawMessage, batch []conversations.NewMessage, version *int64) *changes.UsageReport {
	f := readUsage(raw)
	if f.total == 0 {
		return nil
	}
	report := &changes.UsageReport{Tokens: f.total, Epoch: version}
	for i := len(batch) - 1; i >= 0; i-- {
		if batch[i].Role == pipeline.RoleAssistant {
			report.Covers = &i
			break
		}
	}
	return report
}

// appended is the answer to a change that was watched, with what follows of it. The change is done: nothing that fails
// from here on is an error of it.
func (s *Service) appended(ctx context.Context, ref store.ConversationRef, res changes.AppendResult,
	l *look,
) wire.Appended {
	applied, watched := s.follow(ctx, ref, l, res.Trigger)
	return wire.Appended{
		FirstSeq: res.FirstSeq, LastSeq: res.LastSeq, Seqs: res.Seqs, Duplicates: res.Duplicates,
		HeadSeq: res.Conversation.HeadSeq, UsedTokens: l.decision.Used, Estimated: l.decision.Estimated,
		Trigger: wire.Trigger{TriggerDecision: wire.TriggerDecision(l.decision), Hold: l.hold},
		Run:     s.runOf(ctx, ref, l, watched), Applied: applied,
	}
}

// runOf gives the run that a look started or found under way.
func (s *Service) runOf(ctx context.Context, ref store.ConversationRef, l *look, w triggers.Result) *wire.Run {
	if w.Run != nil {
		run := runreport.Of(*w.Run)
		return &run
	}
	if l.active == "" {
		return nil
	}
	found, err := s.Store.Runs.Get(ctx, store.RunRef{Tenant: ref.Tenant, ID: l.active})
	if err != nil {
		s.Log.Warn("the run under way could not be read", "run", l.active, "error", err)
		return nil
	}
	run := runreport.Of(found)
	run.Steps = nil
	return &run
}
