package pipeline

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// SettingError is one setting with an invalid value.
type SettingError struct {
	// Key is the setting's name as in the configuration file and the API, such as "trigger.fraction".
	Key string
	// Problem is what is wrong with the value and what would be right.
	Problem string
}

func (e *SettingError) Error() string { return e.Key + ": " + e.Problem }

// MaxSummarizers is the maximum number of summarizers that a run tries.
const MaxSummarizers = 20

// Validate checks every setting on its own. The error joins one *SettingError for each invalid value, in the order of
// the fields; it is nil if there is none. ValidateForWindow checks what depends on the model's window.
func (s Settings) Validate() error {
	c := &settingChecks{}

	c.atLeast("trigger.token_limit", s.Trigger.TokenLimit, 0)
	c.atLeast("trigger.eval_override", s.Trigger.EvalOverride, 0)
	c.share("trigger.fraction", s.Trigger.Fraction)
	c.atLeast("trigger.turns", s.Trigger.Turns, 1)
	c.threshold("trigger.start", s.Trigger.Start)
	c.threshold("trigger.apply", s.Trigger.Apply)
	if s.Trigger.Apply.Set() && !s.Trigger.Start.Set() {
		c.fail("trigger.apply", "is set, but trigger.start is not, so nothing would ever be prepared; set "+
			"trigger.start too")
	}

	if len(s.Summarizers) > MaxSummarizers {
		c.fail("summarizers", fmt.Sprintf("has %d entries; there are at most %d", len(s.Summarizers), MaxSummarizers))
	}
	for i, spec := range s.Summarizers[:min(len(s.Summarizers), MaxSummarizers)] {
		c.summarizer(fmt.Sprintf("summarizers[%d]", i), spec)
	}
	c.oneOf("mode", string(s.Mode), string(ModeExplicit), string(ModeBeta))
	if s.Prompt != "" {
		if _, err := PromptNamed(s.Prompt); err != nil {
			c.fail("prompt", err.Error())
		}
	}
	c.atLeast("summary_max_tokens", s.SummaryMaxTokens, 1)
	c.share("tail_max_fraction", s.TailMaxFraction)
	c.atLeast("max_prompt_chars", s.MaxPromptChars, 1)
	c.atLeast("strict_prompt_chars", s.StrictPromptChars, 0)
	if !(s.ToolDropThreshold >= 0) || math.IsInf(s.ToolDropThreshold, 1) { // NaN is not >= 0
		c.fail("tool_drop_threshold", fmt.Sprintf(
			"is %v; it is a share, from 0 up to 1, or any number over 1 for never", s.ToolDropThreshold))
	}
	c.atLeast("min_useful_chars", s.MinUsefulChars, 0)
	c.atLeast("tool_result_keep_turns", s.ToolResultKeepTurns, 0)
	c.atLeast("tool_result_preview_chars", s.ToolResultPreviewChars, 0)
	c.atLeast("max_tool_result_tokens", s.MaxToolResultTokens, 0)
	c.atLeast("max_input_tokens", s.MaxInputTokens, 0)
	c.oneOf("digest", string(s.Digest), string(DigestWhenNeeded), string(DigestAlways), string(DigestNever))
	return errors.Join(c.errs...)
}

// ValidateForWindow is Validate with the checks that depend on the model's window, in tokens: no limit may be above it.
// For a window of 0, unknown, it skips those checks.
func (s Settings) ValidateForWindow(window int) error {
	c := &settingChecks{}
	if window > 0 {
		c.withinWindow("trigger.token_limit", s.Trigger.TokenLimit, window)
		c.withinWindow("trigger.eval_override", s.Trigger.EvalOverride, window)
		c.withinWindow("max_input_tokens", s.MaxInputTokens, window)
		c.belowWindow("trigger.start.unused_tokens", s.Trigger.Start.UnusedTokens, window)
		c.belowWindow("trigger.apply.unused_tokens", s.Trigger.Apply.UnusedTokens, window)
	} else if window < 0 {
		c.fail("context_window", fmt.Sprintf("is %d; give the model's window in tokens, or leave it out", window))
	}
	return errors.Join(s.Validate(), errors.Join(c.errs...))
}

// settingChecks collects the errors.
type settingChecks struct{ errs []error }

func (c *settingChecks) fail(key, problem string) {
	c.errs = append(c.errs, &SettingError{Key: key, Problem: problem})
}

func (c *settingChecks) atLeast(key string, value, least int) {
	if value < least {
		c.fail(key, fmt.Sprintf("is %d; it must be at least %d", value, least))
	}
}

// share checks a part of a whole. The comparison is written so that NaN fails it.
func (c *settingChecks) share(key string, value float64) {
	if !(value > 0 && value <= 1) {
		c.fail(key, fmt.Sprintf("is %v; it must be a share, over 0 up to 1", value))
	}
}

func (c *settingChecks) threshold(key string, t Threshold) {
	c.atLeast(key+".unused_tokens", t.UnusedTokens, 0)
	if math.IsNaN(t.UnusedPercent) || t.UnusedPercent < 0 || t.UnusedPercent >= 1 {
		c.fail(key+".unused_percent", fmt.Sprintf(
			"is %v; it is the share of the window that is left, from 0 to below 1", t.UnusedPercent))
	}
}

func (c *settingChecks) oneOf(key, value string, allowed ...string) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	c.fail(key, fmt.Sprintf("is %q; it must be one of %s", value, strings.Join(allowed, ", ")))
}

func (c *settingChecks) summarizer(key string, spec SummarizerSpec) {
	if spec.Model != "self" {
		if _, _, err := spec.Split(); err != nil {
			c.fail(key+".model", err.Error())
		}
	}
	c.atLeast(key+".context_window", spec.ContextWindow, 0)
	c.atLeast(key+".max_output", spec.MaxOutput, 0)
	if spec.ContextWindow > 0 && spec.MaxOutput >= spec.ContextWindow {
		c.fail(key+".max_output", fmt.Sprintf("is %d, which leaves no room for input in the context_window of %d",
			spec.MaxOutput, spec.ContextWindow))
	}
}

func (c *settingChecks) withinWindow(key string, value, window int) {
	if value > window {
		c.fail(key, fmt.Sprintf("is %d, above the model's window of %d tokens; it could never be reached", value,
			window))
	}
}

func (c *settingChecks) belowWindow(key string, value, window int) {
	if value >= window {
		c.fail(key, fmt.Sprintf("is %d, the whole window of %d tokens or more; it would be reached at once", value,
			window))
	}
}
