package service

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"precis/internal/api/wire"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/pipeline/transcript"
)

// deleteTimeout bounds a deletion that also happens after the caller has disconnected.
const deleteTimeout = 30 * time.Second

// OneShotRequest is a list of messages to compact.
type OneShotRequest struct {
	// Format of the messages; "auto" or "" detects it.
	Format                  string
	Model                   wire.Model
	Messages                []json.RawMessage
	Meta                    []Meta
	System, Tools, Settings json.RawMessage
	// State is the live state by key.
	State map[string]wire.StateValue
	Focus string
	// Keep keeps the conversation. The run has its id.
	Keep bool
}

// CompactOnce compacts a list of messages and returns the new list. Unless req.Keep is set, the content is deleted
// afterwards, and only the record of the run is kept, without texts. If the context ends, the run is cancelled.
func (s *Service) CompactOnce(ctx context.Context, tenant string, req OneShotRequest) (out wire.OneShot, err error) {
	if len(req.Messages) == 0 {
		return out, invalid("messages", "is empty")
	}
	if req.Format == "" || req.Format == string(transcript.Auto) {
		if req.Format, err = detect(req.Messages); err != nil {
			return out, err
		}
	}
	c, err := s.create(ctx, tenant, NewConversation{
		Format: req.Format, Model: req.Model, System: req.System, Tools: req.Tools, Settings: req.Settings,
	}, !req.Keep)
	if err != nil {
		return out, refused(err)
	}
	if !req.Keep {
		defer s.deleteContent(ctx, c.Ref)
	}
	for key, value := range req.State {
		if _, err := s.PutState(ctx, c.Ref, key, value); err != nil {
			return out, within("state."+key, err)
		}
	}
	batch, err := s.decode(ctx, c.Ref, req.Messages, req.Meta)
	if err != nil {
		return out, refused(err)
	}
	if _, err := s.Store.Changes.Append(ctx, c.Ref, batch, changes.AppendOptions{}); err != nil {
		return out, refused(err)
	}
	run, view, err := s.compact(ctx, c.Ref, CompactRequest{Focus: req.Focus}, Follower{})
	if err != nil {
		return out, refused(err)
	}
	got, _, err := contextOf(ctx, view, ContextRequest{Format: req.Format})
	if err != nil {
		return out, refused(err)
	}
	return wire.OneShot{Messages: got.Messages, System: got.System, Stats: got.Stats, Run: runreport.Of(run)}, nil
}

// detect returns the format of a list of messages.
func detect(messages []json.RawMessage) (string, error) {
	list, err := json.Marshal(messages)
	if err != nil {
		return "", invalid("messages", "cannot be read: %s", err)
	}
	f, err := transcript.Detect(list)
	if err != nil {
		return "", invalid("format", "cannot be detected from the messages: %s", plain(err))
	}
	return string(f), nil
}

// within returns err as an error of the field, with the field that it had in its detail.
func within(field string, err error) error {
	e, ok := err.(*Error)
	if !ok {
		return refused(err)
	}
	inner := *e
	inner.Field = field
	if e.Field != "" {
		inner.Detail = fmt.Sprintf("%s: %s", e.Field, e.Detail)
	}
	return &inner
}

// deleteContent deletes the content of a conversation that is not to be kept, also after its caller has disconnected.
// If that fails for an ephemeral one, a worker deletes it later.
func (s *Service) deleteContent(ctx context.Context, ref store.ConversationRef) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	if err := s.Store.Retention.DeleteContent(ctx, ref); err != nil {
		s.Log.Warn("the content of a conversation was not deleted", "conversation", ref.String(), "error",
			err)
	}
}
