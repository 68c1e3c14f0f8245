package pipeline

import (
	"errors"
	"math"
	"testing"
)

// refusedSettings has, by setting, changes that make it one that cannot work.
var refusedSettings = map[string][]func(*Settings){
	"trigger.token_limit":   {func(s *Settings) { s.Trigger.TokenLimit = -1 }},
	"trigger.eval_override": {func(s *Settings) { s.Trigger.EvalOverride = -1 }},
	"trigger.fraction": {
		func(s *Settings) { s.Trigger.Fraction = 0 },
		func(s *Settings) { s.Trigger.Fraction = -0.5 },
		func(s *Settings) { s.Trigger.Fraction = 1.01 },
		func(s *Settings) { s.Trigger.Fraction = math.NaN() },
		func(s *Settings) { s.Trigger.Fraction = math.Inf(1) },
	},
	"trigger.turns":               {func(s *Settings) { s.Trigger.Turns = 0 }},
	"trigger.start.unused_tokens": {func(s *Settings) { s.Trigger.Start.UnusedTokens = -1 }},
	"trigger.start.unused_percent": {
		func(s *Settings) { s.Trigger.Start.UnusedPercent = 1 },
		func(s *Settings) { s.Trigger.Start.UnusedPercent = math.NaN() },
		func(s *Settings) { s.Trigger.Start.UnusedPercent = -0.1 },
	},
	"trigger.apply": {func(s *Settings) { s.Trigger.Apply.UnusedPercent = 0.1 }},
	"trigger.apply.unused_tokens": {func(s *Settings) {
		s.Trigger.Start.UnusedTokens, s.Trigger.Apply.UnusedTokens = 1, -1
	}},
	"summarizers[1].model": {
		func(s *Settings) { s.Summarizers = []SummarizerSpec{{Model: "self"}, {Model: "gpt"}} },
		func(s *Settings) { s.Summarizers = []SummarizerSpec{{Model: "self"}, {Model: "openai/"}} },
		func(s *Settings) { s.Summarizers = []SummarizerSpec{{Model: "self"}, {}} },
	},
	"summarizers[0].context_window": {func(s *Settings) { s.Summarizers[0].ContextWindow = -1 }},
	"summarizers[0].max_output": {func(s *Settings) {
		s.Summarizers[0].ContextWindow,
			s.Summarizers[0].MaxOutput = 10, 10
	}},
	"mode": {func(s *Settings) { s.Mode = "native" }, func(s *Settings) { s.Mode = "" }},
	"prompt": {
		func(s *Settings) { s.Prompt = "mine" },
		func(s *Settings) { s.Prompt = "rules" },
	},
	"summary_max_tokens": {func(s *Settings) { s.SummaryMaxTokens = 0 }},
	"tail_max_fraction": {
		func(s *Settings) { s.TailMaxFraction = math.NaN() },
		func(s *Settings) { s.TailMaxFraction = 2 },
	},
	"max_prompt_chars":    {func(s *Settings) { s.MaxPromptChars = 0 }},
	"strict_prompt_chars": {func(s *Settings) { s.StrictPromptChars = -1 }},
	"tool_drop_threshold": {
		func(s *Settings) { s.ToolDropThreshold = math.NaN() },
		func(s *Settings) { s.ToolDropThreshold = -0.1 }, func(s *Settings) { s.ToolDropThreshold = math.Inf(1) },
	},
	"min_useful_chars":          {func(s *Settings) { s.MinUsefulChars = -1 }},
	"tool_result_keep_turns":    {func(s *Settings) { s.ToolResultKeepTurns = -1 }},
	"tool_result_preview_chars": {func(s *Settings) { s.ToolResultPreviewChars = -1 }},
	"max_tool_result_tokens":    {func(s *Settings) { s.MaxToolResultTokens = -1 }},
	"max_input_tokens":          {func(s *Settings) { s.MaxInputTokens = -1 }},
	"digest":                    {func(s *Settings) { s.Digest = "sometimes" }},
}

func TestSettingsValidate(t *testing.T) {
	t.Parallel()
	if err := DefaultSettings().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for key, changes := range refusedSettings {
		for _, change := range changes {
			s := DefaultSettings()
			change(&s)
			err := s.Validate()
			var setting *SettingError
			if !errors.As(err, &setting) || setting.Key != key {
				t.Errorf("want an error of %s, got %v", key, err)
			}
		}
	}
}

// Over 1 tools are never dropped, which is what such a setting is for.
func TestToolDropThresholdForNever(t *testing.T) {
	t.Parallel()
	ms := workday(8, 20_000)
	for threshold, dropped := range map[float64]bool{0: true, 0.5: false, 1: false, 1.1: false, 100: false} {
		s := DefaultSettings()
		s.ToolDropThreshold = threshold
		if err := s.Validate(); err != nil {
			t.Errorf("%v: %v", threshold, err)
		}
		out := slim(nil, SlimInput{
			Messages: ms, BudgetChars: 20_000, ToolDropThreshold: threshold,
			MinUsefulChars: 200,
		})
		if (out.DroppedTools > 0) != dropped {
			t.Errorf("%v: %d messages lost their tools", threshold, out.DroppedTools)
		}
	}
}

// No limit may be above the window.
func TestSettingsValidateForWindow(t *testing.T) {
	t.Parallel()
	for key, change := range map[string]func(*Settings){
		"trigger.token_limit":         func(s *Settings) { s.Trigger.TokenLimit = 1001 },
		"trigger.eval_override":       func(s *Settings) { s.Trigger.EvalOverride = 1001 },
		"max_input_tokens":            func(s *Settings) { s.MaxInputTokens = 1001 },
		"trigger.start.unused_tokens": func(s *Settings) { s.Trigger.Start.UnusedTokens = 1000 },
		"trigger.apply.unused_tokens": func(s *Settings) {
			s.Trigger.Start.UnusedTokens,
				s.Trigger.Apply.UnusedTokens = 1, 1000
		},
	} {
		s := DefaultSettings()
		change(&s)
		var setting *SettingError
		if err := s.ValidateForWindow(1000); !errors.As(err, &setting) || setting.Key != key {
			t.Errorf("want an error of %s, got %v", key, err)
		}
		if err := s.ValidateForWindow(2000); err != nil {
			t.Errorf("%s in a larger window: %v", key, err)
		}
		if err := s.ValidateForWindow(0); err != nil {
			t.Errorf("%s in an unknown window: %v", key, err)
		}
	}
	var setting *SettingError
	if err := DefaultSettings().ValidateForWindow(-1); !errors.As(err, &setting) || setting.Key != "context_window" {
		t.Errorf("a negative window: %v", err)
	}
	s := DefaultSettings()
	s.Mode = "x"
	if err := s.ValidateForWindow(1000); !errors.As(err, &setting) || setting.Key != "mode" {
		t.Errorf("Validate's own checks are left out: %v", err)
	}
}
