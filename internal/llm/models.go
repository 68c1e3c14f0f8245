package llm

import (
	"strings"

	"precis/internal/contract"
)

// Model is what is known of a model.
type Model struct {
	Vendor string `json:"vendor"`
	// Pattern is the beginning of the model's name. The longest one that fits counts. It may be followed by a date, a
	// variant or a tag, but not by a further version number: "claude-opus-4" does not describe a Claude Opus 4.9.
	Pattern string `json:"pattern"`
	// Window is the context window in tokens.
	Window int `json:"window"`
	// MaxOutput is the output limit in tokens.
	MaxOutput int `json:"max_output"`
	// NativeCompaction are the forms in which the vendor can compact for this model itself, best first.
	NativeCompaction []contract.NativeForm `json:"native_compaction,omitempty"`
	// Thinking says that the model can reason before it answers.
	Thinking bool `json:"thinking,omitempty"`
	// TokenRatio returns how many tokens the model's own tokenizer makes of what pipeline.EstimateText counts as one,
	// where that is not the vendor's usual figure; 0: it is. See TokenRatio.
	TokenRatio float64 `json:"token_ratio,omitempty"`
}

// Known overrides what the table says of one model. Zero values keep the figures of the table.
type Known struct {
	// Window and MaxOutput in tokens.
	Window, MaxOutput int
	// NativeCompaction are the forms; empty, but not nil: none.
	NativeCompaction []contract.NativeForm
	Thinking         *bool
	TokenRatio       float64
}

// Models answers what is known of models: the built-in table, and before it what the configuration says of some of
// them. The zero value is the table alone.
type Models struct {
	configured map[string]Known // by "VENDOR/MODEL" in lower case
}

// NewModels returns the table with what the configuration says of models, by "VENDOR/MODEL" in any case.
func NewModels(configured map[string]Known) Models {
	models := Models{configured: make(map[string]Known, len(configured))}
	for id, k := range configured {
		models.configured[strings.ToLower(id)] = k
	}
	return models
}

// Lookup returns what is known of a vendor's model, and false when nothing is. For a vendor without models of its own,
// such as a gateway, the model's name may be "VENDOR/MODEL" in turn. Without a vendor the name alone decides. Bedrock's
// names of Anthropic's models are known as such.
func (ms Models) Lookup(vendor, model string) (Model, bool) {
	m, ok := lookupTable(vendor, model)
	k, given := ms.configured[strings.ToLower(vendor+"/"+model)]
	if !given {
		return m, ok
	}
	if !ok {
		m = Model{Vendor: vendor, Pattern: model}
	}
	if k.Window > 0 {
		m.Window = k.Window
	}
	if k.MaxOutput > 0 {
		m.MaxOutput = k.MaxOutput
	}
	if k.NativeCompaction != nil {
		m.NativeCompaction = k.NativeCompaction
	}
	if k.Thinking != nil {
		m.Thinking = *k.Thinking
	}
	if k.TokenRatio > 0 {
		m.TokenRatio = k.TokenRatio
	}
	return m, true
}

// TokenRatio returns how many tokens a model's own tokenizer makes of what pipeline.EstimateText, an o200k count, has
// as one: what an estimate is scaled by until the vendor's own figure for the conversation has come. 1 for a vendor
// of whom nothing is known. bench/estimate_test.go measures it, against figures that the vendors' servers gave.
func (ms Models) TokenRatio(vendor, model string) float64 {
	m, _ := ms.Lookup(vendor, model)
	if m.TokenRatio > 0 {
		return m.TokenRatio
	}
	inner, _, _ := strings.Cut(model, "/")
	for _, v := range []string{m.Vendor, vendor, inner} {
		if r := vendorRatio[strings.ToLower(v)]; r > 0 {
			return r
		}
	}
	return 1
}

// maxOutput returns the limit of the answer that a request sets: the caller's, at least 1 and at most the model's
// limit; fallback when neither is known.
func maxOutput(v Vendor, c Call, fallback int) int {
	m, ok := v.Models.Lookup(v.Name, c.Model)
	if !ok && v.Type == contract.ProtocolAnthropic {
		m, _ = v.Models.Lookup(contract.ProtocolAnthropic, c.Model) // a gateway under a name of its own
	}
	limit := m.MaxOutput
	want := c.MaxOutput
	if want == 0 {
		if limit > 0 {
			return limit
		}
		return fallback
	}
	if limit > 0 {
		want = min(want, limit)
	}
	return max(1, want)
}
