package service

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"precis/internal/api/wire"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/runs"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// forgetPatience is for removing what a one-shot call brought, also when its caller has gone.
const forgetPatience = 30 * time.Second

// OneShotRequest is a list to compact.
type OneShotRequest struct {
	// Format of the messages, or "auto".
	Format                  string
	Model                   wire.Model
	Messages                []json.RawMessage
	Meta                    []Meta
	System, Tools, Settings json.RawMessage
	// State by key.
	State map[string]wire.StateValue
	Focus string
	// Keep keeps the conversation: it can be read by the run's conversation id.
	Keep bool
}

// CompactOnce compacts a list of messages and gives the new one. Nothing of what was said is kept, unless asked: the
// record of the run stays, without texts. When the caller goes away the run is cancelled.
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
		defer s.forget(ctx, c.Ref)
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
	asked, _, err := launch.Ask(ctx, s.Store, s.Config, c.Ref,
		runs.Request{Kind: pipeline.TriggerManual, Focus: req.Focus})
	if err != nil {
		return out, refused(err)
	}
	run, err := s.wait(ctx, asked)
	if err != nil {
		if ctx.Err() != nil && s.Temporal != nil {
			s.cancel(ctx, asked)
		}
		return out, refused(err)
	}
	view, err := s.load(ctx, c.Ref)
	if err != nil {
		return out, refused(err)
	}
	got, _, err := contextOf(view, ContextRequest{Format: req.Format})
	if err != nil {
		return out, refused(err)
	}
	return wire.OneShot{Messages: got.Messages, System: got.System, Stats: got.Stats, Run: runreport.Of(run)}, nil
}

// detect tells the format of a list of messages.
func detect(messages []json.RawMessage) (string, error) {
	list, err := json.Marshal(messages)
	if err != nil {
		return "", invalid("messages", "cannot be read: %s", err)
	}
	f, err := transcript.Detect(list)
	if err != nil {
		return "", invalid("format", "cannot be told from the messages: %s", plain(err))
	}
	return string(f), nil
}

// within puts an error's field below another.
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

// cancel ends a run that nobody waits for any more.
func (s *Service) cancel(ctx context.Context, run runs.Run) {
	if _, err := s.launcher().Cancel(context.WithoutCancel(ctx), run); err != nil {
		s.Log.Warn("a run that nobody waits for was not cancelled", "run", run.Ref.ID, "error", err)
	}
}

// forget removes what was said. What cannot be removed now is removed by the next worker that looks for it.
func (s *Service) forget(ctx context.Context, ref store.ConversationRef) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetPatience)
	defer cancel()
	if err := s.Store.Retention.DeleteContent(ctx, ref); err != nil {
		s.Log.Warn("the content of a one-shot conversation was not removed yet", "conversation", ref.String(), "error",
			err)
	}
}
