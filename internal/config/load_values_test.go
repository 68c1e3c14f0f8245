package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
)

// loadedValue is a value as a source gives it, and as Config has it.
type loadedValue struct {
	name    string
	yaml    string
	environ []string
	args    []string
	get     func(Config) any
	want    any
}

var (
	selfAndName   = []pipeline.SummarizerSpec{{Model: "self"}, {Model: "anthropic/x"}}
	selfAndObject = []pipeline.SummarizerSpec{
		{Model: "self"},
		{Model: "openai/y", ContextWindow: 64000, MaxOutput: 4096},
	}
)

func summarizers(c Config) any { return c.Settings.Summarizers }

var loadedLists = []loadedValue{
	{
		name: "list of names in a variable", environ: []string{"PRECIS_SETTINGS__SUMMARIZERS=self, anthropic/x"},
		get: summarizers, want: selfAndName,
	},
	{
		name: "list with an object in a variable",
		environ: []string{`PRECIS_SETTINGS__SUMMARIZERS=["self",{"model":"openai/y","context_window":64000,` +
			`"max_output":4096}]`}, get: summarizers, want: selfAndObject,
	},
	{
		name: "list in the file", yaml: "settings: {summarizers: [self, anthropic/x]}", get: summarizers,
		want: selfAndName,
	},
	{name: "list with an object in the file", yaml: "settings:\n  summarizers:\n  - self\n  - model: " +
		"openai/y\n    context_window: 64_000\n    max_output: 4096\n", get: summarizers, want: selfAndObject},
	{name: "list in a flag", args: []string{"--summarizer=self,anthropic/x"}, get: summarizers, want: selfAndName},
	{
		name: "list in --set", args: []string{"--set", "settings.summarizers=self,anthropic/x"}, get: summarizers,
		want: selfAndName,
	},
	{
		name: "a later list replaces an earlier one", yaml: "settings: {summarizers: [a/b, c/d, e/f]}",
		environ: []string{"PRECIS_SETTINGS__SUMMARIZERS=self,anthropic/x"}, get: summarizers, want: selfAndName,
	},
}

var loadedScalars = []loadedValue{
	{
		name:    "nested number in a variable",
		environ: []string{"PRECIS_SETTINGS__TRIGGER__START__UNUSED_TOKENS=20000"},
		get:     func(c Config) any { return c.Settings.Trigger.Start.UnusedTokens }, want: 20000,
	},
	{
		name: "share in a variable", environ: []string{"PRECIS_SETTINGS__TRIGGER__FRACTION=0.75"},
		get: func(c Config) any { return c.Settings.Trigger.Fraction }, want: 0.75,
	},
	{
		name: "whole number for a share", yaml: "settings: {trigger: {fraction: 1}}",
		get: func(c Config) any { return c.Settings.Trigger.Fraction }, want: 1.0,
	},
	{
		name: "exponent for a whole number", yaml: "settings: {max_prompt_chars: 1e6}",
		get: func(c Config) any { return c.Settings.MaxPromptChars }, want: 1_000_000,
	},
	{
		name: "truth in a variable", environ: []string{"PRECIS_SETTINGS__TRIGGER__AUTO=false"},
		get: func(c Config) any { return c.Settings.Trigger.Auto }, want: false,
	},
	{
		name: "truth in a flag", args: []string{"--redact"}, get: func(c Config) any { return c.Settings.Redact },
		want: true,
	},
	{
		name: "named string", environ: []string{"PRECIS_SETTINGS__DIGEST=never"},
		get: func(c Config) any { return c.Settings.Digest }, want: pipeline.DigestNever,
	},
	{
		name: "number that is text", environ: []string{"PRECIS_TEMPORAL__NAMESPACE=0123"},
		get: func(c Config) any { return c.Temporal.Namespace }, want: "0123",
	},
	{
		name: "empty variable is unset", environ: []string{"PRECIS_HTTP__ADDR=", "TEMPORAL_ADDRESS="},
		get: func(c Config) any { return c.HTTP.Addr + c.Temporal.Address }, want: "127.0.0.1:8700",
	},
	{
		name: "empty section is unset", yaml: "settings:\n  trigger:\nlog:\n",
		get: func(c Config) any { return c.Settings.Trigger.Turns }, want: 1000,
	},
}

var loadedSections = []loadedValue{
	{
		name: "vendor of one's own in variables",
		environ: []string{
			"PRECIS_VENDORS__LOCAL__TYPE=openai", "PRECIS_VENDORS__LOCAL__BASE_URL=http://127.0.0.1:8000/v1",
			`PRECIS_VENDORS__LOCAL__HEADERS={"X-Team": "a"}`,
		},
		get: func(c Config) any { return c.Vendors["local"] },
		want: Vendor{
			Type: "openai", BaseURL: "http://127.0.0.1:8000/v1",
			Headers: map[string]string{"X-Team": "a"},
		},
	},
	{
		name: "a section in a variable, and one of its keys in another", environ: []string{
			"PRECIS_VENDORS__LOCAL={type: openai, base_url: 'http://127.0.0.1:1'}",
			"PRECIS_VENDORS__LOCAL__BASE_URL=http://127.0.0.1:2",
		},
		get:  func(c Config) any { return c.Vendors["local"] },
		want: Vendor{Type: "openai", BaseURL: "http://127.0.0.1:2"},
	},
	{
		name:    "prices of a model with dots",
		yaml:    "prices:\n  openai/gpt-4.1: {input: 2, cached_input: 0.5, output: 8}\n",
		environ: []string{"PRECIS_PRICES={openai/gpt-4.1: {output: 9}}"},
		get:     func(c Config) any { return c.Prices },
		want:    map[string]Price{"openai/gpt-4.1": {Input: 2, CachedInput: 0.5, Output: 9}},
	},
	{
		name:    "facts of a model with dots",
		yaml:    "models:\n  house/qwen-2.5: {window: 131072, native_compaction: [none]}\n",
		environ: []string{"PRECIS_MODELS={house/qwen-2.5: {thinking: 'yes'}}"},
		get:     func(c Config) any { return c.Models },
		want: map[string]Model{"house/qwen-2.5": {
			Window: 131072, NativeCompaction: []string{"none"},
			Thinking: "yes",
		}},
	},
}

var loadedOtherVariables = []loadedValue{
	{
		name: "usual names of Temporal", environ: []string{"TEMPORAL_TLS=true", "TEMPORAL_TLS_SERVER_NAME=x"},
		get: func(c Config) any { return c.Temporal.TLS }, want: TLS{Enabled: true, ServerName: "x"},
	},
	{
		name:    "variables that are not configuration",
		environ: []string{"PRECIS_CORPUS=/x", "PRECIS_TEST_ANYTHING=1"},
		get:     func(c Config) any { return c.Log.Level }, want: "info",
	},
	{
		name: "flag that is not configuration", args: []string{"--unbound=8"},
		get: func(c Config) any { return c.Log.Level }, want: "info",
	},
}

func TestValuesTakeTheirKeysType(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(loadedLists, loadedScalars, loadedSections, loadedOtherVariables) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _, err := load(t, tt.yaml, tt.environ, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.get(c)); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
		})
	}
}
