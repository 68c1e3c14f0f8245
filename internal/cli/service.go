package cli

import (
	"errors"

	"precis/internal/cli/fail"
	"precis/internal/service"
	"precis/internal/telemetry"
)

// service returns the service of the HTTP API, so that validation, defaults and budgets are the same for both.
func (a *app) service(s *session) *service.Service {
	return s.Service(telemetry.Logger(a.err, s.Config.Log), nil)
}

// checkSummarizers returns an error for a value of --summarizer that names a vendor which is not configured.
func (a *app) checkSummarizers(s *session, list string) error {
	err := a.service(s).CheckSummarizers(list)
	var refusal *service.Error
	if errors.As(err, &refusal) {
		return fail.Usagef("--%s: %s", refusal.Field, refusal.Detail)
	}
	return err
}
