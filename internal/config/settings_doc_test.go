package config

import (
	"encoding/json"
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
		"When a compaction starts", "When the context reaches `eval_override`, else `token_limit`, else " +
			"`fraction` of the window; when it has `turns` user messages; by hand; and when the agent reports an " +
			"overflow. " +
			"Background compaction needs `start`. The summary that it prepares is applied at `apply`, or at the " +
			"limit if " +
			"that comes first.",
		[]string{"trigger."},
	},
	{
		"Who writes the summary", "",
		[]string{
			"summarizers", "force_external", "mode", "prompt", "summary_max_tokens", "breaker.", "digest",
			"redact",
		},
	},
	{
		"What is summarized and what is kept", "",
		[]string{"preserve_last_user", "relaxed_split_guard", "tail_max_fraction"},
	},
	{
		"How the summarizer's input is made to fit", "",
		[]string{"max_prompt_chars", "strict_prompt_chars", "tool_drop_threshold", "min_useful_chars"},
	},
	{
		"What is trimmed from every context", "No model is called for this, and what is stored does not change.",
		[]string{
			"tool_result_keep_turns", "tool_result_preview_chars", "max_tool_result_tokens", "max_input_tokens",
			"nudge_fraction",
		},
	},
	{
		"What a run may cost", "Beyond a budget the digest is used, which costs nothing, and the record says so.",
		[]string{"run_time_budget_seconds", "run_token_budget", "tenant_daily_token_budget"},
	},
}

// inGroup reports whether a group has a key, by its name or by its section.
func inGroup(keys []string, key string) bool {
	return slices.ContainsFunc(keys,
		func(k string) bool { return k == key || strings.HasSuffix(k, ".") && strings.HasPrefix(key, k) })
}

// exampleSettings are those of a conversation. TestTheExampleOfSettingsIsTaken reads them.
const exampleSettings = `{
  "trigger": {"fraction": 0.85, "start": {"unused_percent": 0.4}, "apply": {"unused_percent": 0.2}},
  "summarizers": ["self", {"model": "openai/gpt-4.1-mini", "max_output": 8000}],
  "max_tool_result_tokens": 10000
}`

func settingsPage() string {
	p := newDocPage("Settings of a compaction")
	p.text("Every setting can be set for the installation, for a tenant and for a conversation, and some for a " +
		"single " +
		"run. Each of these overrides the ones before it, key by key:")
	p.list("- ",
		"the defaults below",
		"the installation: the configuration, as `settings.KEY` in the file, `PRECIS_SETTINGS__KEY` or `--set "+
			"settings.KEY=VALUE` ([configuration.md](configuration.md))",
		"a tenant: `PUT` or `PATCH /v1/settings`; `precis settings set KEY=VALUE --tenant ID`",
		"a conversation: `settings` when it is created, and `PATCH /v1/conversations/{id}`; null removes a setting",
		"a run by hand: `summarizer`, `prompt`, `force_external`, `full` and `focus` of `POST …/{id}/compactions`")
	p.text("An unknown key or a value that cannot work is refused with the name of the key, and nothing is changed. " +
		"A " +
		"change counts from the next decision; a run keeps the settings that were in force when it was requested. " +
		"`precis settings --tenant ID` shows the settings that are in force and who set each one. As JSON, for a " +
		"tenant or a conversation:")
	p.code("json", exampleSettings)
	for _, g := range groups {
		p.heading(g.title)
		p.text(g.text)
		p.keys(settingsPrefix, slices.DeleteFunc(keysUnder(settingsPrefix), func(k Key) bool {
			return !inGroup(g.keys, strings.TrimPrefix(k.Name, settingsPrefix))
		}))
	}
	return p.String()
}

func TestEverySettingIsInOneGroupOfThePage(t *testing.T) {
	t.Parallel()
	for _, k := range table {
		key, ok := strings.CutPrefix(k.Name, settingsPrefix)
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
