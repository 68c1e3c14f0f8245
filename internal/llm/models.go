package llm

import (
	"fmt"
	"strings"
)

// Model is what is known of a model.
type Model struct {
	Vendor string `json:"vendor"`
	// Pattern is the beginning of the model's name. The longest one that fits counts.
	Pattern string `json:"pattern"`
	// Window is the context window in tokens.
	Window int `json:"window"`
	// MaxOutput is the output limit in tokens.
	MaxOutput int `json:"max_output"`
	// NativeCompaction says that the vendor can compact for this model itself.
	NativeCompaction bool `json:"native_compaction,omitempty"`
	// Thinking says that the model can reason before it answers.
	Thinking bool `json:"thinking,omitempty"`
}

// Lookup finds what is known of a vendor's model; false when nothing is.
func Lookup(vendor, model string) (Model, bool) { return Model{}, false }

// ParseModel splits "VENDOR/MODEL" at the first slash: a model's name may hold more of them.
func ParseModel(id string) (vendor, model string, err error) {
	vendor, model, ok := strings.Cut(id, "/")
	if !ok || vendor == "" || model == "" {
		return "", "", fmt.Errorf("model %q is not of the form VENDOR/MODEL, such as anthropic/claude-sonnet-4-5", id)
	}
	return vendor, model, nil
}
