package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
)

type setSettingsInput struct {
	Payload payload[wire.NewSettingsInput]
}

type settingsOutput struct{ Body wire.TenantSettings }

const aboutBudget = " Only a trusted key may change tenant_daily_token_budget."

func (s *Server) settings() {
	path := "/v1/settings"
	register(s, huma.Operation{
		OperationID: "get-settings", Method: http.MethodGet, Path: path, Tags: []string{tagSettings},
		Summary:     "Read the tenant's settings",
		Description: "They override the settings of the installation; a conversation's own settings override them.",
	}, traits{}, func(ctx context.Context, q *request, _ *struct{}) (*settingsOutput, error) {
		got, err := s.service.TenantSettings(ctx, q.tenant)
		if err != nil {
			return nil, err
		}
		return &settingsOutput{Body: got}, nil
	})
	change := func(do func(context.Context, string, json.RawMessage, bool) (wire.TenantSettings,
		error),
	) func(context.Context, *request, *setSettingsInput) (*settingsOutput, error) {
		return func(ctx context.Context, q *request, in *setSettingsInput) (*settingsOutput, error) {
			got, err := do(ctx, q.tenant, json.RawMessage(in.Payload.value.Settings), q.trusted)
			if err != nil {
				return nil, err
			}
			return &settingsOutput{Body: got}, nil
		}
	}
	register(s, huma.Operation{
		OperationID: "put-settings", Method: http.MethodPut, Path: path, Tags: []string{tagSettings},
		Summary: "Replace the tenant's settings",
		Description: "An empty object removes all of them. Runs that were already requested keep the settings of " +
			"that time." + aboutBudget,
	}, traits{repeatable: true}, change(s.service.SetTenantSettings))
	register(s, huma.Operation{
		OperationID: "patch-settings", Method: http.MethodPatch, Path: path, Tags: []string{tagSettings},
		Summary:     "Change some of the tenant's settings",
		Description: "Merged as in RFC 7396: null removes a setting." + aboutBudget,
	}, traits{repeatable: true}, change(func(ctx context.Context, tenant string, patch json.RawMessage,
		trusted bool,
	) (wire.TenantSettings, error) {
		return s.service.PatchTenantSettings(ctx, tenant, []json.RawMessage{patch}, trusted)
	}))
}
