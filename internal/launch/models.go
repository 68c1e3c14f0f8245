package launch

import (
	"precis/internal/config"
)

// defaultModels are what is asked of a vendor when a key is there and no model was named: good enough to be
// trusted with a summary, and not the dearest. In the order in which they are tried. As of November 2026, from
// the vendors' own overviews: https://platform.claude.com/docs/en/about-claude/models/overview,
// https://developers.openai.com/api/docs/models, https://docs.x.ai/developers/models,
// https://ai.google.dev/gemini-api/docs/models.
var defaultModels = []struct{ vendor, model string }{
	{"anthropic", "claude-sonnet-5-5"},
	{"openai", "gpt-6.1-sol"},
	{"xai", "grok-4.7"},
	{"google", "gemini-3.8-flash"},
}

// DefaultModel names the model of the first vendor that can be asked, as "VENDOR/MODEL"; "" when there is none.
func DefaultModel(c config.Config) string {
	for _, d := range defaultModels {
		if Usable(c, d.vendor) {
			return d.vendor + "/" + d.model
		}
	}
	return ""
}

// Usable says whether a vendor can be asked: it has a key, or an address of the user's own that may ask for none.
func Usable(c config.Config, vendor string) bool {
	v, ok := c.Vendors[vendor]
	return ok && v.BaseURL != "" && (v.APIKey != "" || v.BaseURL != config.Defaults().Vendors[vendor].BaseURL)
}

// Summarizers are who writes the summary of a conversation whose agent's model cannot be asked, when the
// configuration names nobody: the agent's own first all the same, so that the record says why it was not used.
// "" leaves the choice to the settings.
func Summarizers(c config.Config, origins config.Origins, agentVendor string) string {
	if origins.Of("settings.summarizers").Source != config.SourceDefault || Usable(c, agentVendor) {
		return ""
	}
	if model := DefaultModel(c); model != "" {
		return "self," + model
	}
	return ""
}
