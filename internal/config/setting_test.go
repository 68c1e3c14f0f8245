package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"precis/pipeline"
)

var acme = Origin{Source: SourceTenant, Name: "acme"}

func TestSettingPatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, value, want string }{
		{"trigger.fraction", "0.5", `{"trigger":{"fraction":0.5}}`},
		{"settings.trigger.fraction", "0.5", `{"trigger":{"fraction":0.5}}`},
		{"digest", "never", `{"digest":"never"}`},
		{"redact", "true", `{"redact":true}`},
		{"summarizers", "self,openai/gpt-4.1", `{"summarizers":["self","openai/gpt-4.1"]}`},
		{
			"trigger.start", "{unused_percent: 0.4, unused_tokens: 9000}",
			`{"trigger":{"start":{"unused_percent":0.4,"unused_tokens":9000}}}`,
		},
	} {
		patch, err := SettingPatch(tt.key, tt.value, acme)
		got, _ := json.Marshal(patch)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s=%s: %s, %v", tt.key, tt.value, got, err)
		}
	}
	for _, tt := range []struct{ key, value, says string }{
		{"trigger.fractoin", "0.5", "settings.trigger.fractoin (tenant acme): unknown key"},
		{"trigger.fraction", "much", "settings.trigger.fraction (tenant acme): "},
		{"", "1", "settings. (tenant acme): unknown key"},
	} {
		_, err := SettingPatch(tt.key, tt.value, acme)
		if !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s=%s: %v", tt.key, tt.value, err)
		}
	}
}

func TestUnsetPatch(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"digest": `{"digest":null}`, "settings.trigger.fraction": `{"trigger":{"fraction":null}}`,
		"trigger": `{"trigger":null}`,
	} {
		patch, err := UnsetPatch(key, acme)
		got, _ := json.Marshal(patch)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", key, got, err)
		}
	}
	if _, err := UnsetPatch("trigger.nosuch", acme); !errors.As(err, new(*Error)) ||
		!strings.Contains(err.Error(), "settings.trigger.nosuch (tenant acme)") {
		t.Errorf("error %v", err)
	}
}

func TestSettingValuesSayWhoSetThem(t *testing.T) {
	t.Parallel()
	c, origins, err := load(t, "settings: {digest: always, trigger: {turns: 7}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Settings.Digest, c.Settings.Trigger.Fraction = pipeline.DigestNever, 0.5
	from := map[string]string{}
	for _, v := range SettingValues(c, origins,
		map[string]any{"digest": "never", "trigger": map[string]any{"fraction": 0.5}}, acme) {
		from[v.Key] = v.Value + " " + v.From.String()
	}
	for key, want := range map[string]string{
		"settings.digest": "never tenant acme", "settings.trigger.fraction": "0.5 tenant acme",
		"settings.mode": "explicit default",
	} {
		if from[key] != want {
			t.Errorf("%s is %q, want %q", key, from[key], want)
		}
	}
	if got := from["settings.trigger.turns"]; !strings.HasPrefix(got, "7 ") || !strings.Contains(got, FileName) {
		t.Errorf("settings.trigger.turns is %q", got)
	}
	if _, ok := from["http.addr"]; ok {
		t.Error("it lists a key that is not a setting")
	}
}
