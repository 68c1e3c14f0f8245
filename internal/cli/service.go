package cli

import (
	"errors"

	"precis/internal/cli/fail"
	"precis/internal/service"
	"precis/internal/telemetry"
)

// service acts on conversations and runs as the HTTP API does: validation, defaults and budgets are the same.
func (a *app) service(s *session) *service.Service {
	return &service.Service{
		Store: s.store, Temporal: s.client, Config: s.config, Log: telemetry.Logger(a.err, s.config.Log),
	}
}

// checkSummarizers refuses a value of --summarizer that names a vendor which is not configured.
func (a *app) checkSummarizers(s *session, list string) error {
	err := a.service(s).CheckSummarizers(list)
	var refusal *service.Error
	if errors.As(err, &refusal) {
		return fail.Usagef("--%s: %s", refusal.Field, refusal.Detail)
	}
	return err
}
