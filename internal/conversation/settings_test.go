package conversation

import (
	"encoding/json"
	"strings"
	"testing"

	"precis/pipeline"
)

// A key in other letters is none: what a conversation may not set would be set all the same.
func TestOverlayIsExact(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"Tenant_Daily_Token_Budget":5}`, `{"TRIGGER":{}}`, `{"nope":1}`} {
		if s, err := Overlay(pipeline.DefaultSettings(),
			json.RawMessage(raw)); pipeline.KindOf(err) != pipeline.BadRequest ||
			!strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: %d, %v", raw, s.TenantDailyTokenBudget, err)
		}
	}
	s, err := Overlay(pipeline.DefaultSettings(),
		json.RawMessage(`{"tenant_daily_token_budget":5,"trigger":{"fraction":0.5}}`))
	if err != nil || s.TenantDailyTokenBudget != 5 || s.Trigger.Fraction != 0.5 {
		t.Errorf("%+v, %v", s, err)
	}
}
