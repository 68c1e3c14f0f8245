package llm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Model is what is known of a model.
type Model struct {
	Vendor string `json:"vendor"`
	// Pattern is the beginning of the model's name. The longest one that fits counts. What may follow it is a
	// date, a variant or a tag, but no further version number: "claude-opus-4" says nothing of a Claude Opus 4.9.
	Pattern string `json:"pattern"`
	// Window is the context window in tokens.
	Window int `json:"window"`
	// MaxOutput is the output limit in tokens.
	MaxOutput int `json:"max_output"`
	// NativeCompaction are the forms in which the vendor can compact for this model itself, best first.
	NativeCompaction []NativeForm `json:"native_compaction,omitempty"`
	// Thinking says that the model can reason before it answers.
	Thinking bool `json:"thinking,omitempty"`
	// TokenRatio returns how many tokens the model's own tokenizer makes of what pipeline.EstimateText counts as one,
	// where that is not the vendor's usual figure; 0: it is. See TokenRatio.
	TokenRatio float64 `json:"token_ratio,omitempty"`
}

// modelsJSON is the table of what is known, with the date of that knowledge in it. A configured window or
// output limit beats it, and so does the figure that a vendor's own overflow error names.
//
//go:embed models.json
var modelsJSON []byte

// modelTable is the table by vendor, vendorRatio the usual TokenRatio of a vendor's models.
var modelTable, vendorRatio = func() (map[string][]Model, map[string]float64) {
	var file struct {
		AsOf        string             `json:"as_of"`
		Sources     []string           `json:"sources"`
		TokenRatios map[string]float64 `json:"token_ratios"`
		Models      []Model            `json:"models"`
	}
	if err := json.Unmarshal(modelsJSON, &file); err != nil {
		panic("llm: models.json: " + err.Error())
	}
	table := map[string][]Model{}
	for _, m := range file.Models {
		table[m.Vendor] = append(table[m.Vendor], m)
	}
	return table, file.TokenRatios
}()

// Known replaces what the table says of one model: the fields that are set.
type Known struct {
	// Window and MaxOutput in tokens, 0: as the table has it.
	Window, MaxOutput int
	// NativeCompaction are the forms, nil: as the table has it; empty: none.
	NativeCompaction []NativeForm
	// Thinking, nil: as the table has it.
	Thinking *bool
	// TokenRatio, 0: as the table has it.
	TokenRatio float64
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

// TokenRatio returns how many tokens a model's own tokenizer makes of what pipeline.EstimateText, an o200k count, has as
// one: what an estimate is scaled by until the vendor's own figure for the conversation has come. 1 for a vendor of
// whom nothing is known. bench/estimate_test.go measures it, against figures that the vendors' servers gave.
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

func lookupTable(vendor, model string) (Model, bool) {
	models, known := modelTable[strings.ToLower(vendor)]
	if name, ok := bedrockModel(model); ok && !known {
		m, found := lookupTable(TypeAnthropic, name)
		// Bedrock serves the edit, and not the compaction on demand.
		m.NativeCompaction = slices.DeleteFunc(slices.Clone(m.NativeCompaction),
			func(f NativeForm) bool { return f == NativeOnDemand })
		return m, found
	}
	if !known {
		inner, rest, ok := strings.Cut(model, "/")
		switch {
		case ok:
			models, model = modelTable[strings.ToLower(inner)], rest
		case vendor == "": // names of different vendors do not begin alike
			for _, of := range modelTable {
				models = append(models, of...)
			}
		default:
			return Model{}, false
		}
	}
	name := normalName(model)
	var best Model
	for _, m := range models {
		if p := normalName(m.Pattern); len(p) > len(normalName(best.Pattern)) && fits(p, name) {
			best = m
		}
	}
	return best, best.Pattern != ""
}

// normalName makes one spelling of the several there are: OpenRouter writes claude-sonnet-4.5.
func normalName(s string) string { return strings.ReplaceAll(strings.ToLower(s), ".", "-") }

// fits reports whether a name is the pattern, or the pattern and then something that is no version number.
func fits(pattern, name string) bool {
	rest, ok := strings.CutPrefix(name, pattern)
	if !ok || rest == "" {
		return ok
	}
	if isAlphanumeric(rest[0]) {
		return false
	}
	digits := 1
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	number := digits - 1 // a version number has one digit or two, a date has more
	ends := digits == len(rest) || !isAlphanumeric(rest[digits])
	return number == 0 || number > 2 || !ends
}

func isAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// ParseModel splits "VENDOR/MODEL" at the first slash: a model's name may hold more of them.
func ParseModel(id string) (vendor, model string, err error) {
	vendor, model, ok := strings.Cut(id, "/")
	if !ok || vendor == "" || model == "" {
		return "", "", fmt.Errorf("model %q is not of the form VENDOR/MODEL, such as anthropic/claude-sonnet-4-5", id)
	}
	return vendor, model, nil
}

// maxOutput is the room for the answer that a request asks for: what the caller wants, brought into 1 to
// the model's limit; fallback when neither is known.
func maxOutput(v Vendor, c Call, fallback int) int {
	m, ok := v.Models.Lookup(v.Name, c.Model)
	if !ok && v.Type == TypeAnthropic {
		m, _ = v.Models.Lookup(TypeAnthropic, c.Model) // a gateway under a name of its own
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
