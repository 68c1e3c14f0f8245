package config

import (
	"errors"
	"fmt"
	"math"

	"precis/pipeline"
)

// Settings are the settings of a compaction: those of the library, and those that only a service acts on. Their JSON
// names are the ones of the API and of the section "settings" of the configuration file.
type Settings struct {
	// Squash and flatten tell koanf's libraries that the embedded fields are those of the struct around them.
	//lint:ignore SA5008 encoding/json ignores these options
	pipeline.Settings `json:",squash,flatten"`
	Breaker           BreakerSettings `json:"breaker"`
	// NudgeFraction is the share of the window at which a person is advised to compact. Default 0.8.
	NudgeFraction float64 `json:"nudge_fraction"`
	// Redact removes secrets from what is sent to a model for a summary, and from the summary.
	Redact bool `json:"redact"`
	// RunTimeBudgetSeconds bounds a run. Default 900.
	RunTimeBudgetSeconds int `json:"run_time_budget_seconds"`
	// RunTokenBudget bounds the tokens that a run may send and receive, 0: no bound.
	RunTokenBudget int `json:"run_token_budget,omitempty"`
	// TenantDailyTokenBudget bounds the tokens that all runs of a tenant may send and receive on one day (UTC), 0: no
	// bound. Runs beyond it use the digest. The installation and a tenant can set it, a conversation cannot.
	// Default 100 million.
	TenantDailyTokenBudget int `json:"tenant_daily_token_budget"`
}

// defaultDailyTokens is some 600 compactions of a context of 150,000 tokens.
const defaultDailyTokens = 100_000_000

// BreakerSettings say when automatic runs stop trying.
type BreakerSettings struct {
	// Failures is how many failures in a row open the breaker. Default 3.
	Failures int `json:"failures"`
	// CooldownSeconds is the time until one automatic attempt is allowed. Default 300.
	CooldownSeconds int `json:"cooldown_seconds"`
}

// DefaultSettings returns the settings of a conversation that configures nothing.
func DefaultSettings() Settings {
	return Settings{
		Settings:               pipeline.DefaultSettings(),
		Breaker:                BreakerSettings{Failures: 3, CooldownSeconds: 300},
		NudgeFraction:          0.8,
		RunTimeBudgetSeconds:   900,
		TenantDailyTokenBudget: defaultDailyTokens,
	}
}

// Validate checks every setting on its own. The error joins one *pipeline.SettingError for each invalid value, and is
// nil if all are valid.
func (s Settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.validateOwn())
}

// ValidateForWindow is Validate, and refuses limits above the model's window, in tokens, as well. A window of 0 is
// unknown and leaves those checks out.
func (s Settings) ValidateForWindow(window int) error {
	return errors.Join(s.Settings.ValidateForWindow(window), s.validateOwn())
}

// maxSeconds is the longest time that can be set, a year: far longer ones would overflow a time.Duration.
const maxSeconds = 365 * 24 * 3600

// validateOwn checks the settings that the library does not have.
func (s Settings) validateOwn() error {
	var faults []error
	fail := func(key, format string, args ...any) {
		faults = append(faults, &pipeline.SettingError{Key: key, Problem: fmt.Sprintf(format, args...)})
	}
	bounds := func(key string, value, least, most int) {
		switch {
		case value < least:
			fail(key, "is %d; it must be at least %d", value, least)
		case value > most:
			fail(key, "is %d; it must be at most %d", value, most)
		}
	}
	bounds("breaker.failures", s.Breaker.Failures, 1, math.MaxInt)
	bounds("breaker.cooldown_seconds", s.Breaker.CooldownSeconds, 0, maxSeconds)
	if share := s.NudgeFraction; !(share > 0 && share <= 1) { // NaN fails too
		fail("nudge_fraction", "is %v; it must be a share, over 0 up to 1", share)
	}
	bounds("run_time_budget_seconds", s.RunTimeBudgetSeconds, 1, maxSeconds)
	bounds("run_token_budget", s.RunTokenBudget, 0, math.MaxInt)
	bounds("tenant_daily_token_budget", s.TenantDailyTokenBudget, 0, math.MaxInt)
	return errors.Join(faults...)
}
