package config

import (
	"path"
	"slices"
	"strings"
)

// Allows reports whether a vendor's model may be called: whether vendors.NAME.models lists it or, where that is empty,
// the vendor is at an address of the installation's own or the installation names the model somewhere. A tenant's
// settings and those of a request do not count, so c is the configuration as it was loaded.
func (c Config) Allows(vendor, model string) bool {
	v := c.Vendors[vendor]
	if len(v.Models) > 0 {
		return slices.ContainsFunc(v.Models, func(pattern string) bool { return standsFor(pattern, model) })
	}
	if public := Defaults().Vendors[vendor].BaseURL; public == "" || public != v.BaseURL {
		return true
	}
	id := strings.ToLower(vendor + "/" + model)
	for _, spec := range c.Settings.Summarizers {
		if strings.ToLower(spec.Model) == id {
			return true
		}
	}
	return has(c.Models, id) || has(c.Prices, id)
}

func has[V any](named map[string]V, id string) bool {
	for name := range named {
		if strings.ToLower(name) == id {
			return true
		}
	}
	return false
}

// standsFor reports whether a pattern stands for a model. A slash is a character like any other, so that a * reaches
// across the parts of a gateway's names.
func standsFor(pattern, model string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(flat.Replace(strings.ToLower(pattern)), flat.Replace(strings.ToLower(model)))
	return ok && err == nil
}

// modelPattern is what is wrong with an entry of vendors.NAME.models, "" for nothing.
func modelPattern(pattern string) string {
	if _, err := path.Match(pattern, ""); err != nil || strings.TrimSpace(pattern) == "" {
		return "has an entry that is neither the name of a model nor a pattern such as gpt-5*"
	}
	return ""
}
