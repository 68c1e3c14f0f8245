package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/conversation"
	"precis/pipeline"
)

// TenantSettings returns a tenant's settings.
func (s *Service) TenantSettings(ctx context.Context, tenant string) (wire.TenantSettings, error) {
	own, err := s.Store.Tenants.Settings(ctx, tenant)
	if err != nil {
		return wire.TenantSettings{}, refused(err)
	}
	return s.tenantSettings(tenant, own)
}

// SetTenantSettings replaces a tenant's settings. Only an operator may change its daily token budget.
func (s *Service) SetTenantSettings(ctx context.Context, tenant string, settings json.RawMessage,
	operator bool,
) (wire.TenantSettings, error) {
	return s.changeTenantSettings(ctx, tenant, operator, func(json.RawMessage) (json.RawMessage, error) {
		return given(settings), nil
	})
}

// PatchTenantSettings merges patches into a tenant's settings (RFC 7396), one after another: null removes a setting.
// Only the result of all patches is validated.
func (s *Service) PatchTenantSettings(ctx context.Context, tenant string, patches []json.RawMessage,
	operator bool,
) (wire.TenantSettings, error) {
	return s.changeTenantSettings(ctx, tenant, operator, func(own json.RawMessage) (json.RawMessage, error) {
		for _, patch := range patches {
			after, err := merged(own, patch, "settings")
			if err != nil {
				return nil, err
			}
			if after != nil {
				own = *after
			}
		}
		return own, nil
	})
}

func (s *Service) changeTenantSettings(ctx context.Context, tenant string, operator bool,
	change func(own json.RawMessage) (json.RawMessage, error),
) (wire.TenantSettings, error) {
	var after json.RawMessage
	err := s.Store.Tenants.ChangeSettings(ctx, tenant, func(own json.RawMessage) (json.RawMessage, error) {
		var err error
		if after, err = change(own); err != nil {
			return nil, err
		}
		keys, err := settingsObject(after)
		if err != nil {
			return nil, err
		}
		had, err := settingsObject(own)
		if err != nil { // unreadable settings are replaced
			had = nil
		}
		for _, key := range tenantOnly {
			if !operator && !bytes.Equal(keys[key], had[key]) {
				return nil, &Error{
					Code: CodeForbidden, Field: "settings." + key,
					Detail: "is for an operator to set: a trusted key, or `precis settings set`",
				}
			}
		}
		if err := checkMerged("settings", own, after); err != nil {
			return nil, err
		}
		effective, err := overlay(s.Config.Settings, after)
		if err != nil {
			return after, err
		}
		return after, s.checkBounds(effective)
	})
	if err != nil {
		return wire.TenantSettings{}, refused(err)
	}
	return s.tenantSettings(tenant, after)
}

// checkBounds returns an error for a setting beyond what the installation allows tenants and conversations.
func (s *Service) checkBounds(settings config.Settings) error {
	asked := settings.RunTimeBudgetSeconds
	if most := s.Config.BoundRunSeconds(asked); asked > most {
		return invalid("settings.run_time_budget_seconds", "is %d; the installation allows at most %d "+
			"(worker.max_run_seconds)", asked, most)
	}
	return nil
}

func (s *Service) tenantSettings(tenant string, own json.RawMessage) (wire.TenantSettings, error) {
	effective, err := conversation.Overlay(s.Config.Settings, own)
	if err != nil { // as after an upgrade: the settings of the installation apply
		s.Log.Warn("a tenant's stored settings are not valid; the settings of the installation apply", "tenant", tenant,
			"error", err)
	}
	out := wire.TenantSettings{Tenant: tenant, Settings: own}
	if len(own) == 0 {
		out.Settings = json.RawMessage(`{}`)
	}
	if out.Effective, err = json.Marshal(effective); err != nil {
		return out, refused(fmt.Errorf("encode the settings: %w", err))
	}
	return out, nil
}

// settingsObject returns the values of a settings object by key, nil if raw is empty.
func settingsObject(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, invalid("settings", "is not a JSON object")
	}
	return keys, nil
}

// overlay is conversation.Overlay with errors that name the setting at fault.
func overlay(base config.Settings, raw json.RawMessage) (config.Settings, error) {
	settings, err := conversation.Overlay(base, raw)
	var wrong *json.UnmarshalTypeError
	var unknown *conversation.UnknownSettingError
	var p *pipeline.Error
	switch {
	case err == nil, errors.As(err, new(*pipeline.SettingError)):
		return settings, err
	case errors.As(err, &wrong) && wrong.Field != "":
		return settings, &Error{
			Code: CodeInvalid, Field: "settings." + wrong.Field,
			Detail: "cannot be a JSON " + wrong.Value, Cause: err,
		}
	}
	detail := err.Error()
	switch {
	case errors.As(err, &unknown):
		detail = fmt.Sprintf("there is no setting %q: docs/settings.md lists them", unknown.Name)
	case errors.As(err, &p) && p.Cause != nil:
		detail = p.Cause.Error()
	}
	return settings, &Error{Code: CodeInvalid, Field: "settings", Detail: detail, Cause: err}
}
