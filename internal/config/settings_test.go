package config

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
)

// impossible has, by setting, changes that make it one that cannot work.
var impossible = map[string][]func(*Settings){
	"breaker.failures": {func(s *Settings) { s.Breaker.Failures = 0 }},
	"breaker.cooldown_seconds": {
		func(s *Settings) { s.Breaker.CooldownSeconds = -1 },
		func(s *Settings) { s.Breaker.CooldownSeconds = math.MaxInt },
	},
	"nudge_fraction": {
		func(s *Settings) { s.NudgeFraction = 0 },
		func(s *Settings) { s.NudgeFraction = 1.1 },
		func(s *Settings) { s.NudgeFraction = math.NaN() },
	},
	"run_time_budget_seconds": {
		func(s *Settings) { s.RunTimeBudgetSeconds = 0 },
		func(s *Settings) { s.RunTimeBudgetSeconds = math.MaxInt },
	},
	"run_token_budget":          {func(s *Settings) { s.RunTokenBudget = -1 }},
	"tenant_daily_token_budget": {func(s *Settings) { s.TenantDailyTokenBudget = -1 }},
	"summary_max_tokens":        {func(s *Settings) { s.SummaryMaxTokens = 0 }}, // one of the library's
}

func TestSettingsValidate(t *testing.T) {
	t.Parallel()
	if err := DefaultSettings().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for key, changes := range impossible {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			for _, change := range changes {
				s := DefaultSettings()
				change(&s)
				for name, err := range map[string]error{
					"Validate": s.Validate(), "ValidateForWindow": s.ValidateForWindow(100_000),
				} {
					var setting *pipeline.SettingError
					if !errors.As(err, &setting) || setting.Key != key {
						t.Errorf("%s gives %v, want an error for the setting", name, err)
					}
				}
			}
		})
	}
}

// The settings are one flat JSON object, whichever package a setting belongs to.
func TestSettingsAreOneObject(t *testing.T) {
	t.Parallel()
	given := DefaultSettings()
	given.SummaryMaxTokens, given.TenantDailyTokenBudget = 4000, 5
	encoded, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &keys); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"summary_max_tokens": "4000", "tenant_daily_token_budget": "5",
		"breaker": `{"failures":3,"cooldown_seconds":300}`,
	} {
		if got := string(keys[key]); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	var back Settings
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given, back); diff != "" {
		t.Errorf("JSON and back changes the settings (- before, + after):\n%s", diff)
	}
}
