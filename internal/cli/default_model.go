package cli

import (
	"precis/internal/config"
)

// defaultModels are the models that are called if a vendor has a key and no model is named: good enough to write a
// summary, and not the most expensive. They are in the order in which they are tried. As of November 2026, from the
// vendors' own overviews: https://platform.claude.com/docs/en/about-claude/models/overview,
// https://developers.openai.com/api/docs/models, https://docs.x.ai/developers/models,
// https://ai.google.dev/gemini-api/docs/models.
var defaultModels = []struct{ vendor, model string }{
	{"anthropic", "claude-sonnet-5-5"},
	{"openai", "gpt-6.1-sol"},
	{"xai", "grok-4.7"},
	{"google", "gemini-3.8-flash"},
}

// defaultModel returns the model of the first vendor that can be called, as "VENDOR/MODEL"; "" if there is none.
func defaultModel(c config.Config) string {
	for _, d := range defaultModels {
		if canBeCalled(c, d.vendor) {
			return d.vendor + "/" + d.model
		}
	}
	return ""
}

// canBeCalled reports whether a vendor can be called: it has a key, or the address of the user's own server, which may
// need none.
func canBeCalled(c config.Config, vendor string) bool {
	v, ok := c.Vendors[vendor]
	return ok && v.BaseURL != "" && (v.APIKey != "" || v.BaseURL != config.Defaults().Vendors[vendor].BaseURL)
}

// defaultSummarizers returns the summarizers of a conversation whose agent's model cannot be called, if the
// configuration names none. The agent's own model is the first all the same, so that the record says why it was not
// used. "" leaves the choice to the settings.
func defaultSummarizers(c config.Config, origins config.Origins, agentVendor string) string {
	if origins.Of("settings.summarizers").Source != config.SourceDefault || canBeCalled(c, agentVendor) {
		return ""
	}
	if model := defaultModel(c); model != "" {
		return "self," + model
	}
	return ""
}
