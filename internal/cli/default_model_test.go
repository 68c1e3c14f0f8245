package cli

import (
	"testing"

	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/llm"
)

func TestDefaultModelsAreKnown(t *testing.T) {
	t.Parallel()
	for _, d := range defaultModels {
		m, ok := llm.Models{}.Lookup(d.vendor, d.model)
		if !ok || m.Window == 0 || m.MaxOutput == 0 {
			t.Errorf("model %s/%s is not in the model table: %+v", d.vendor, d.model, m)
		}
		if _, ok := config.Defaults().Vendors[d.vendor]; !ok {
			t.Errorf("there is no vendor %q", d.vendor)
		}
	}
}

func TestDefaultSummarizers(t *testing.T) {
	t.Parallel()
	withKey := func(vendors ...string) config.Config {
		c := config.Defaults()
		for _, name := range vendors {
			v := c.Vendors[name]
			v.APIKey = "key"
			c.Vendors[name] = v
		}
		return c
	}
	own := withKey()
	own.Vendors["house"] = config.Vendor{Type: contract.ProtocolOpenAI, BaseURL: "http://127.0.0.1:8000/v1"}
	configured := config.Origins{"settings.summarizers": {Source: config.SourceFile, Name: "precis.yaml"}}

	for _, test := range []struct {
		name    string
		config  config.Config
		origins config.Origins
		agent   string
		want    string
	}{
		{"no key at all", withKey(), nil, "anthropic", ""},
		{"the agent's own vendor has one", withKey("anthropic", "openai"), nil, "anthropic", ""},
		{"another vendor has one", withKey("openai"), nil, "anthropic", "self,openai/gpt-6.1-sol"},
		{"nothing is known of the agent", withKey("openai", "anthropic"), nil, "", "self,anthropic/claude-sonnet-5-5"},
		{"the list is configured", withKey("openai"), configured, "anthropic", ""},
		{"the agent's vendor is a server of one's own", own, nil, "house", ""},
		{"a server of one's own has no default model", own, nil, "anthropic", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := defaultSummarizers(test.config, test.origins, test.agent); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
