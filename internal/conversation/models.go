package conversation

import (
	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/store/conversations"
)

// Installation is the configuration that applies to all conversations.
type Installation struct {
	// Settings are the defaults of tenants and conversations.
	Settings config.Settings
	// Models has the known models.
	Models llm.Models
}

// InstallationOf returns the part of a configuration that applies to all conversations.
func InstallationOf(c config.Config) Installation {
	return Installation{Settings: c.Settings, Models: ModelsOf(c.Models)}
}

// ModelsOf returns the known models, with the values that the configuration has for some of them.
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

// Window returns the context window of the conversation's model in tokens: the one that the client has set, or else
// that of the known model, and at most the window learned from an overflow error. It returns 0 if the window is
// unknown.
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

// Calibration returns the ratio of real to locally estimated tokens of the conversation's context: that at the last
// reported usage, or before there is one that of the model's tokenizer.
func Calibration(c conversations.Conversation, models llm.Models) float64 {
	if c.Usage.Calibration > 0 {
		return c.Usage.Calibration
	}
	return models.TokenRatio(c.Vendor, c.Model)
}
