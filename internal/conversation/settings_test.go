package conversation

import (
	"encoding/json"
	"errors"
	"testing"

	"precis/internal/config"
	"precis/pipeline"
)

// A key that differs from a setting's name in upper and lower case is unknown. Otherwise a conversation could set what
// only an operator may set.
func TestOverlayIsExact(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"Tenant_Daily_Token_Budget":5}`, `{"TRIGGER":{}}`, `{"nope":1}`,
		`{"trigger":{"nope":1}}`,
	} {
		s, err := Overlay(config.DefaultSettings(), json.RawMessage(raw))
		if pipeline.KindOf(err) != pipeline.BadRequest || !errors.As(err, new(*UnknownSettingError)) {
			t.Errorf("%s: %d, %v", raw, s.TenantDailyTokenBudget, err)
		}
	}
	s, err := Overlay(config.DefaultSettings(),
		json.RawMessage(`{"tenant_daily_token_budget":5,"trigger":{"fraction":0.5}}`))
	if err != nil || s.TenantDailyTokenBudget != 5 || s.Trigger.Fraction != 0.5 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A value of the wrong type is an error for its key as named in the API.
func TestOverlayNamesTheKeyOfAWrongType(t *testing.T) {
	t.Parallel()
	for raw, key := range map[string]string{
		`{"summary_max_tokens":"many"}`:        "summary_max_tokens",
		`{"trigger":{"fraction":"half"}}`:      "trigger.fraction",
		`{"tenant_daily_token_budget":"none"}`: "tenant_daily_token_budget",
	} {
		var wrong *json.UnmarshalTypeError
		if _, err := Overlay(config.DefaultSettings(), json.RawMessage(raw)); !errors.As(err, &wrong) ||
			wrong.Field != key {
			t.Errorf("%s: %v, want an error for %s", raw, err, key)
		}
	}
}
