package conversation

import (
	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/store/conversations"
)

// Installation is what the configuration says for all conversations.
type Installation struct {
	// Settings count where neither the tenant nor the conversation has its own.
	Settings config.Settings
	// Models is what is known of models.
	Models llm.Models
}

// InstallationOf returns what a configuration says for all conversations.
func InstallationOf(c config.Config) Installation {
	return Installation{Settings: c.Settings, Models: ModelsOf(c.Models)}
}

// ModelsOf returns what is known of models, with what the configuration says of some of them.
func ModelsOf(configured map[string]config.Model) llm.Models {
	known := make(map[string]llm.Known, len(configured))
	for id, m := range configured {
		k := llm.Known{Window: m.Window, MaxOutput: m.MaxOutput, TokenRatio: m.TokenRatio}
		for _, form := range m.NativeCompaction {
			k.NativeCompaction = append(k.NativeCompaction, contract.NativeForm(form))
			if form == "none" {
				k.NativeCompaction = []contract.NativeForm{}
				break
			}
		}
		if m.Thinking != "" {
			thinking := m.Thinking == "yes"
			k.Thinking = &thinking
		}
		known[id] = k
	}
	return llm.NewModels(known)
}

// Window returns the context window of the conversation's model in tokens: the client's own figure, else what is known
// of the model, and never more than what a vendor's overflow error has named. 0: unknown.
func Window(c conversations.Conversation, models llm.Models) int {
	window := c.Window
	if window == 0 {
		known, _ := models.Lookup(c.Vendor, c.Model)
		window = known.Window
	}
	if learned := c.LearnedWindow; learned > 0 && (window == 0 || learned < window) {
		return learned
	}
	return window
}

// Calibration returns how many real tokens one token of a local estimate of the conversation's context is: the ratio at
// the last figure of the server, and until there is one what is known of the model's tokenizer.
func Calibration(c conversations.Conversation, models llm.Models) float64 {
	if c.Usage.Calibration > 0 {
		return c.Usage.Calibration
	}
	return models.TokenRatio(c.Vendor, c.Model)
}
