package llm

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"precis/internal/contract"
)

// modelsJSON is the table of what is known of models, and when that was. A configured figure overrides it, and so does
// the figure in a vendor's overflow error.
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

func lookupTable(vendor, model string) (Model, bool) {
	models, known := modelTable[strings.ToLower(vendor)]
	if name, ok := bedrockModel(model); ok && !known {
		m, found := lookupTable(contract.ProtocolAnthropic, name)
		// Bedrock serves the edit, and not the compaction on demand.
		m.NativeCompaction = slices.DeleteFunc(slices.Clone(m.NativeCompaction),
			func(f contract.NativeForm) bool { return f == contract.NativeOnDemand })
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

// normalName returns one spelling for all: OpenRouter writes claude-sonnet-4.5.
func normalName(s string) string { return strings.ReplaceAll(strings.ToLower(s), ".", "-") }

// fits reports whether a name is the pattern, or the pattern followed by something that is not a version number.
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
