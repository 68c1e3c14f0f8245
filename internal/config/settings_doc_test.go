package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"precis/pipeline"
)

// groups are the parts of docs/settings.md: keys without "settings.", or sections that end in a dot.
var groups = []struct {
	title, text string
	keys        []string
}{
	{
		"When a compaction starts", "It starts at `eval_override`, else `token_limit`, else `fraction` of the " +
			"window; with as many turns; by hand; and when the agent reports that its call overflowed. Background " +
			"compaction needs `start`; what it prepares takes effect at `apply`, or at the limit if that comes first.",
		[]string{"trigger."},
	},
	{
		"Who writes the summary", "",
		[]string{
			"summarizers", "force_external", "mode", "prompt", "summary_max_tokens", "breaker.", "digest",
			"redact",
		},
	},
	{"What is summarised, what stays", "", []string{"preserve_last_user", "relaxed_split_guard", "tail_max_fraction"}},
	{
		"How the summarizer's input is made to fit", "",
		[]string{"max_prompt_chars", "strict_prompt_chars", "tool_drop_threshold", "min_useful_chars"},
	},
	{
		"What is trimmed from every context", "No model is asked for this, and what is stored stays as it is.",
		[]string{
			"tool_result_keep_turns", "tool_result_preview_chars", "max_tool_result_tokens", "max_input_tokens",
			"nudge_fraction",
		},
	},
	{
		"What it may cost", "Beyond a budget the digest stands in, which costs nothing, and the record says so.",
		[]string{"run_time_budget_seconds", "run_token_budget", "tenant_daily_token_budget"},
	},
}

// inGroup says whether a group names a key, by itself or by its section.
func inGroup(keys []string, key string) bool {
	return slices.ContainsFunc(keys,
		func(k string) bool { return k == key || strings.HasSuffix(k, ".") && strings.HasPrefix(key, k) })
}

// exampleSettings are of a conversation. A test takes them.
const exampleSettings = `{
  "trigger": {"fraction": 0.85, "start": {"unused_percent": 0.4}, "apply": {"unused_percent": 0.2}},
  "summarizers": ["self", {"model": "openai/gpt-4.1-mini", "max_output": 8000}],
  "max_tool_result_tokens": 10000
}`

func settingsPage() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("<!-- Generated from internal/config/keys.go by: go test ./internal/config -run TestDocumentation -update -->")
	line("# Settings of a compaction")
	line("")
	line("Every knob there is. Each can be set for all, for a tenant, for a conversation, and some for a single " +
		"run. The nearest one")
	line("counts, key by key:")
	line("")
	line("| for | where | beats |")
	line("| --- | --- | --- |")
	line("| all | the configuration: `settings.KEY` in the file, `PRECIS_SETTINGS__KEY`, `--set " +
		"settings.KEY=VALUE` ([configuration.md](configuration.md)) | the defaults below |")
	line("| a tenant | `PUT` or `PATCH /v1/settings`; `precis settings set KEY=VALUE --tenant ID` | those for all |")
	line("| a conversation | `settings` when it is made, and with `PATCH /v1/conversations/{id}`; null takes one " +
		"back | its tenant's |")
	line("| a run by hand | `summarizer`, `prompt`, `force_external`, `full` and `focus` of `POST " +
		"…/{id}/compactions` | its conversation's |")
	line("")
	line("An unknown key and a value that cannot work are refused with the key's name, and nothing is changed. A " +
		"change counts from the")
	line("next decision on; a run keeps the settings that counted when it was asked for. `precis settings " +
		"--tenant ID` shows what counts")
	line("and who set it. As JSON, for a tenant or a conversation:")
	line("")
	line("```json")
	line("%s", exampleSettings)
	line("```")
	for _, g := range groups {
		line("")
		line("## %s", g.title)
		line("")
		if g.text != "" {
			line("%s", g.text)
			line("")
		}
		line("| setting | default | unit | effect |")
		line("| --- | --- | --- | --- |")
		for _, k := range Describe() {
			if key, ok := strings.CutPrefix(k.Name, section); ok && inGroup(g.keys, key) {
				line("| `%s` | %s | %s | %s |", key, code(k.Default), kindOf(k),
					strings.ReplaceAll(strings.ReplaceAll(k.Effect, "|", `\|`), "`settings.", "`"))
			}
		}
	}
	return b.String()
}

func TestEverySettingIsInOneGroupOfThePage(t *testing.T) {
	t.Parallel()
	for _, k := range table {
		key, ok := strings.CutPrefix(k.Name, section)
		if !ok {
			continue
		}
		n := 0
		for _, g := range groups {
			if inGroup(g.keys, key) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d groups of docs/settings.md", key, n)
		}
	}
}

func TestTheExampleOfSettingsIsTaken(t *testing.T) {
	t.Parallel()
	s := pipeline.DefaultSettings()
	d := json.NewDecoder(strings.NewReader(exampleSettings))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if err := s.ValidateForWindow(128_000); err != nil || s.MaxToolResultTokens != 10_000 || len(s.Summarizers) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}
