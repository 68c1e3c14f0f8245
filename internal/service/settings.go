package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/conversation"
	"precis/pipeline"
)

// TenantSettings gives a tenant's settings.
func (s *Service) TenantSettings(ctx context.Context, tenant string) (wire.TenantSettings, error) {
	own, err := s.Store.Tenants.Settings(ctx, tenant)
	if err != nil {
		return wire.TenantSettings{}, refused(err)
	}
	return s.tenantSettings(tenant, own)
}

// SetTenantSettings replaces what a tenant sets. What its token budget of a day is only an operator may say.
func (s *Service) SetTenantSettings(ctx context.Context, tenant string, settings json.RawMessage,
	operator bool,
) (wire.TenantSettings, error) {
	return s.changeTenantSettings(ctx, tenant, operator, func(json.RawMessage) (json.RawMessage, error) {
		return given(settings), nil
	})
}

// PatchTenantSettings merges patches into what a tenant sets (RFC 7396), one after another: a null takes a setting
// back. Only what all of them make together has to be right.
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
		if err != nil { // what cannot be read is replaced
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
		_, err = overlay(s.Config.Settings, after)
		return after, err
	})
	if err != nil {
		return wire.TenantSettings{}, refused(err)
	}
	return s.tenantSettings(tenant, after)
}

func (s *Service) tenantSettings(tenant string, own json.RawMessage) (wire.TenantSettings, error) {
	effective, err := conversation.Overlay(s.Config.Settings, own)
	if err != nil { // as after a change of versions: the installation's count then
		s.Log.Warn("a tenant's stored settings are not usable: those of the installation count", "tenant", tenant,
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

// settingsObject gives the parts of a settings object, nil for none.
func settingsObject(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, invalid("settings", "is no JSON object")
	}
	return keys, nil
}

// overlay is conversation.Overlay with errors that name the setting at fault.
func overlay(base config.Settings, raw json.RawMessage) (config.Settings, error) {
	settings, err := conversation.Overlay(base, raw)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, new(*pipeline.SettingError)):
		return settings, err
	case errors.As(err, &wrong) && wrong.Field != "":
		return settings, &Error{
			Code: CodeInvalid, Field: "settings." + wrong.Field,
			Detail: "cannot be a JSON " + wrong.Value, Cause: err,
		}
	}
	detail := strings.TrimPrefix(plain(err), "settings: ")
	if name, unknown := strings.CutPrefix(detail, "json: unknown field "); unknown {
		detail = "there is no setting " + name + ": docs/settings.md lists them"
	}
	return settings, &Error{Code: CodeInvalid, Field: "settings", Detail: detail, Cause: err}
}
