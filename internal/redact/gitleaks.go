package redact

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
)

// skipped are rules of gitleaks that are not used. scan does the work of the generic one with fewer false hits, and
// without its cost.
var skipped = map[string]bool{"generic-api-key": true}

// sharper are keywords in the place of those that a rule has, where these are in words of every text.
var sharper = map[string][]string{"jwt": {"eyj", "eya", "ewo"}}

// Windows of the rules of gitleaks: their patterns begin with at most 50 characters before a keyword.
const (
	gitleaksBefore = 128
	gitleaksAfter  = 768
)

// gitleaksRules returns the default rules of gitleaks, with its lists of what is not a secret. It panics if the library
// cannot read its own rules, which any test would show.
func gitleaksRules() []rule {
	v := viper.New()
	v.SetConfigType("toml")
	if err := v.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		panic(fmt.Sprintf("redact: read the rules of gitleaks: %v", err))
	}
	var raw config.ViperConfig
	if err := v.Unmarshal(&raw); err != nil {
		panic(fmt.Sprintf("redact: read the rules of gitleaks: %v", err))
	}
	cfg, err := raw.Translate()
	if err != nil {
		panic(fmt.Sprintf("redact: read the rules of gitleaks: %v", err))
	}
	var rules []rule
	for _, id := range cfg.OrderedRules {
		r := cfg.Rules[id]
		if r.Regex == nil || r.Path != nil || len(r.Keywords) == 0 || skipped[id] {
			continue // rules about files alone
		}
		if words := sharper[id]; words != nil {
			r.Keywords = words
		}
		rules = append(rules, rule{
			keywords: r.Keywords, pattern: r.Regex, group: r.SecretGroup, before: gitleaksBefore, after: gitleaksAfter,
			accept: func(match, secret string) bool {
				return entropy(secret) >= r.Entropy && !allowed(cfg.Allowlists, match, secret) &&
					!allowed(r.Allowlists, match, secret)
			},
		})
	}
	return rules
}

// allowed reports whether a list of gitleaks says that a match is not a secret.
func allowed(lists []*config.Allowlist, match, secret string) bool {
	for _, l := range lists {
		if l.MatchCondition == config.AllowlistMatchAnd {
			continue // those also ask for a path or a commit
		}
		target := secret
		if l.RegexTarget == "match" {
			target = match
		}
		if l.RegexTarget != "line" && l.RegexAllowed(target) {
			return true
		}
		if found, _ := l.ContainsStopWord(secret); found {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
