package launch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"precis/internal/config"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/version"
	"precis/pipeline"
)

// Ask requests a run, a manual one unless the request has another kind. The run keeps the conversation's current
// settings and the versions of program and configuration. If the conversation has an active run, Ask returns that one
// and attached is true.
func Ask(ctx context.Context, s *store.Store, c config.Config, ref store.ConversationRef,
	req runs.Request,
) (run runs.Run, attached bool, err error) {
	conv, err := s.Conversations.Get(ctx, ref)
	if err != nil {
		return run, false, err
	}
	settings, _ := conversation.SettingsOf(c.Settings, conv) // a change of settings reports those that are not valid
	if req.Settings, err = json.Marshal(settings); err != nil {
		return run, false, fmt.Errorf("encode the settings: %w", err)
	}
	if req.Versions, err = Versions(c); err != nil {
		return run, false, err
	}
	if req.Kind == "" {
		req.Kind = pipeline.TriggerManual
	}
	return s.Runs.Request(ctx, ref, req)
}

// Versions returns the versions of program and configuration as a run records them. The hash of the configuration is of
// the masked values, so that it does not depend on secrets.
func Versions(c config.Config) (json.RawMessage, error) {
	masked, err := json.Marshal(c.Masked())
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	sum := sha256.Sum256(masked)
	return json.Marshal(map[string]string{"code": version.Code(), "config": fmt.Sprintf("%x", sum[:6])})
}
