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

// Meta is what a client says about one message.
type Meta struct {
	// ID is the client's id, "" if none. A message with an id that the conversation already has is not added.
	ID string `json:"id,omitempty"`
	// Kind is user_info, reminder or synthetic, for a message that no person wrote. If it is "", the kind is derived
	// from the message.
	Kind pipeline.Kind `json:"kind,omitempty"`
}

// AppendRequest adds messages at the end of a conversation.
type AppendRequest struct {
	// Messages are native messages in the conversation's format, in order.
	Messages []json.RawMessage
	// Meta has an entry for each of Messages; it may be shorter.
	Meta []Meta
	// Usage is the vendor's usage object, unchanged, of the request whose answer is the last assistant message of
	// Messages; nil if there is none.
	Usage json.RawMessage
	// IfSeq, if set, is the number that the conversation's last message must have.
	IfSeq *int64
	// ContextVersion, if set, is Stats.Version of the context in the request of Usage. Without it, usage that fits the
	// context before the last compaction better is considered late and ignored.
	ContextVersion *int64
}

// Append adds messages and evaluates the trigger. A run that is due is requested in the transaction of the messages, so
// that a crash loses neither or both.
func (s *Service) Append(ctx context.Context, ref store.ConversationRef, req AppendRequest) (wire.Appended, error) {
	if len(req.Messages) == 0 && len(req.Usage) == 0 {
		return wire.Appended{}, invalid("messages", "is empty, and there is no usage either")
	}
	batch, err := s.decode(ctx, ref, req.Messages, req.Meta)
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	tc := &triggerCheck{s: s}
	res, err := s.Store.Changes.Append(ctx, ref, batch, changes.AppendOptions{
		IfSeq: req.IfSeq, Usage: usageReport(req.Usage, batch, req.ContextVersion), Check: tc.evaluate,
	})
	if err != nil {
		return wire.Appended{}, refused(err)
	}
	return s.appended(ctx, ref, res, tc), nil
}

// decode converts native messages to the form in which they are stored.
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
				Detail: fmt.Sprintf("is not a message in the %s format: %s", codec.Format(), plain(err)), Cause: err,
			}
		}
		m.ID = "" // an id in the message itself is the vendor's and may repeat
		if i < len(meta) {
			if err := applyMeta(&m, meta[i], fmt.Sprintf("meta[%d]", i)); err != nil {
				return nil, err
			}
		}
		batch = append(batch, conversation.Stored(m))
	}
	return batch, nil
}

// applyMeta sets the id and the kind that the client gave for a message.
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

// usageReport returns the usage with the message that it covers, the last assistant message of the batch. It returns
// nil if raw has no usable numbers.
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

// appended applies what follows from the trigger check and returns the result of the change. The change is committed,
// so failures from here on are logged and not returned.
func (s *Service) appended(ctx context.Context, ref store.ConversationRef, res changes.AppendResult,
	tc *triggerCheck,
) wire.Appended {
	applied, result := s.follow(ctx, ref, tc, res.Trigger)
	return wire.Appended{
		FirstSeq: res.FirstSeq, LastSeq: res.LastSeq, Seqs: res.Seqs, Duplicates: res.Duplicates,
		HeadSeq: res.Conversation.HeadSeq, UsedTokens: tc.decision.Used, Estimated: tc.decision.Estimated,
		Trigger: wire.Trigger{TriggerDecision: wire.TriggerDecision(tc.decision), Hold: tc.hold},
		Run:     s.runOf(ctx, ref, tc, result), Applied: applied,
	}
}

// runOf returns the run that a trigger check requested or found active, nil if none.
func (s *Service) runOf(ctx context.Context, ref store.ConversationRef, tc *triggerCheck, w triggers.Result) *wire.Run {
	if w.Run != nil {
		run := runreport.Of(*w.Run)
		return &run
	}
	if tc.active == "" {
		return nil
	}
	found, err := s.Store.Runs.Get(ctx, store.RunRef{Tenant: ref.Tenant, ID: tc.active})
	if err != nil {
		s.Log.Warn("the active run could not be read", "run", tc.active, "error", err)
		return nil
	}
	run := runreport.Of(found)
	run.Steps = nil
	return &run
}
