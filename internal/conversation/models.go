package conversation

import (
	"precis/internal/config"
	"precis/internal/llm"
)

// TellModels makes what the configuration says of models count wherever a model is looked up in this process.
func TellModels(models map[string]config.Model) {
	known := make(map[string]llm.Known, len(models))
	for id, m := range models {
		k := llm.Known{Window: m.Window, MaxOutput: m.MaxOutput, TokenRatio: m.TokenRatio}
		for _, form := range m.NativeCompaction {
			k.NativeCompaction = append(k.NativeCompaction, llm.NativeForm(form))
			if form == "none" {
				k.NativeCompaction = []llm.NativeForm{}
				break
			}
		}
		if m.Thinking != "" {
			thinking := m.Thinking == "yes"
			k.Thinking = &thinking
		}
		known[id] = k
	}
	llm.Tell(known)
}
