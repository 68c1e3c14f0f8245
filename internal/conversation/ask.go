package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"precis/internal/config"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/version"
	"precis/pipeline"
)

// Ask asks for a run, by hand unless the request says otherwise. The settings that count for the conversation now, and
// the versions of program and configuration, are kept with it. While a run of the conversation is unfinished it gives
// that one instead (attached).
func Ask(ctx context.Context, s *store.Store, c config.Config, ref store.ConversationRef,
	req runs.Request,
) (run runs.Run, attached bool, err error) {
	conv, err := s.Conversations.Get(ctx, ref)
	if err != nil {
		return run, false, err
	}
	settings, _ := SettingsOf(c.Settings, conv) // whoever changes them is told of those that do not fit
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

// Versions tells program and configuration, for a run's record. The configuration's hash is over the masked
// values: two that differ in a secret alone are the same.
func Versions(c config.Config) (json.RawMessage, error) {
	masked, err := json.Marshal(c.Masked())
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	sum := sha256.Sum256(masked)
	return json.Marshal(map[string]string{"code": version.Code(), "config": fmt.Sprintf("%x", sum[:6])})
}
