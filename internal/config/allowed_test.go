package config

import (
	"testing"

	"precis/pipeline"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	c := Defaults()
	c.Vendors["own"] = Vendor{BaseURL: "http://10.0.0.1/v1"}
	c.Vendors["gateway"] = Vendor{BaseURL: "http://10.0.0.2/v1", Models: []string{"Meta/*", "exact"}}
	c.Settings.Summarizers = []pipeline.SummarizerSpec{{Model: "self"}, {Model: "openai/listed"}}
	c.Models = map[string]Model{"openai/Described": {Window: 5}}
	c.Prices = map[string]Price{"anthropic/priced": {Input: 1}}
	for _, test := range []struct {
		vendor, model string
		want          bool
	}{
		{"openai", "listed", true},
		{"openai", "described", true},
		{"openai", "expensive", false},
		{"openai", "priced", false},
		{"openai", "", false},
		{"anthropic", "priced", true},
		{"anthropic", "listed", false},
		{"own", "anything/at-all", true},
		{"gateway", "meta/llama/4", true},
		{"gateway", "EXACT", true},
		{"gateway", "exact2", false},
		{"gateway", "other/meta/llama", false},
	} {
		if got := c.Allows(test.vendor, test.model); got != test.want {
			t.Errorf("%s/%s: %t", test.vendor, test.model, got)
		}
	}
}
