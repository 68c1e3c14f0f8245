package llm_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"precis/internal/llm"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vendor, model string
		window        int // 0: not found
	}{
		"Exact":            {"anthropic", "claude-sonnet-4-5", 200_000},
		"Dated":            {"anthropic", "claude-sonnet-4-5-20250929", 200_000},
		"LongestPrefix":    {"openai", "gpt-5.4-mini-2026-03-17", 400_000},
		"ShorterPrefix":    {"openai", "gpt-5.4-2026-03-05", 1_050_000},
		"Snapshot":         {"openai", "gpt-5-2025-08-07", 400_000},
		"NewerIsUnknown":   {"anthropic", "claude-opus-4-9", 0},
		"NewerMajor":       {"openai", "gpt-7", 0},
		"NewerMinor":       {"openai", "gpt-5.9", 0},
		"OtherWord":        {"openai", "gpt-5000", 0},
		"Case":             {"Anthropic", "Claude-Sonnet-5-5", 1_000_000},
		"DotsForDashes":    {"anthropic", "claude-sonnet-4.5", 200_000},
		"Gateway":          {"openrouter", "anthropic/claude-sonnet-5.5", 1_000_000},
		"GatewayOther":     {"openrouter", "nobody/model", 0},
		"GatewayBare":      {"openrouter", "claude-sonnet-4-5", 0},
		"UnknownVendor":    {"acme", "gpt-4o", 0},
		"XAI":              {"xai", "grok-4.7", 500_000},
		"Google":           {"google", "gemini-3.1-pro-preview", 1_048_576},
		"Empty":            {"", "", 0},
		"Bedrock":          {"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000},
		"BedrockNewer":     {"bedrock", "anthropic.claude-opus-5", 1_000_000},
		"BedrockUnknown":   {"bedrock", "anthropic.claude-opus-9", 0},
		"BedrockOther":     {"bedrock", "amazon.nova-pro-v1:0", 0},
		"NameAlone":        {"", "gemini-3.1-pro-preview", 1_048_576},
		"NameAloneUnknown": {"", "nobody-1", 0},
		"OpusFourPlain":    {"anthropic", "claude-opus-4-20250514", 200_000},
		"TurboPreview":     {"openai", "gpt-4-1106-preview", 128_000},
		"AncientSnapshot":  {"openai", "gpt-4-0613", 8192},
		"WrongVendorsName": {"openai", "claude-sonnet-4-5", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ok := llm.Models{}.Lookup(c.vendor, c.model)
			if ok != (c.window > 0) || m.Window != c.window {
				t.Errorf("%+v, %v; want window %d", m, ok, c.window)
			}
		})
	}
}

// TestModelTable checks the file: a date, sources, no impossible or double row, and each row found by its name.
func TestModelTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("models.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		AsOf    string      `json:"as_of"`
		Sources []string    `json:"sources"`
		Models  []llm.Model `json:"models"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, file.AsOf); err != nil || len(file.Sources) == 0 {
		t.Errorf("as_of %q, %d sources", file.AsOf, len(file.Sources))
	}
	seen := map[string]bool{}
	for _, m := range file.Models {
		key := m.Vendor + "/" + m.Pattern
		if seen[key] {
			t.Errorf("%s is in the table twice", key)
		}
		seen[key] = true
		if m.Window < 4096 || m.MaxOutput < 1024 || m.MaxOutput > m.Window {
			t.Errorf("%s: window %d, output %d", key, m.Window, m.MaxOutput)
		}
		if got, ok := (llm.Models{}).Lookup(m.Vendor, m.Pattern); !ok || !reflect.DeepEqual(got, m) {
			t.Errorf("%s finds %+v", key, got)
		}
		if got, ok := (llm.Models{}).Lookup("", m.Pattern); !ok || got.Vendor != m.Vendor {
			t.Errorf("%s finds %+v by its name alone", key, got)
		}
	}
}

// TestTokenRatio checks that the ratio is the model's, else its vendor's, else 1.
func TestTokenRatio(t *testing.T) {
	t.Parallel()
	// The ratio of each VENDOR/MODEL.
	for name, want := range map[string]float64{
		"anthropic/claude-sonnet-4-5":           1.22,
		"anthropic/claude-of-tomorrow":          1.22, // not in the table: the vendor's
		"anthropic/claude-opus-4-7":             1.62, // a tokenizer of its own
		"anthropic/claude-fable-5-20260801":     1.62,
		"/claude-opus-5":                        1.62, // found by its name alone
		"openrouter/anthropic/claude-opus-4.8":  1.62, // by a gateway
		"openrouter/google/gemini-of-tomorrow":  1.17,
		"aws/eu.anthropic.claude-opus-4-7-v1:0": 1.62,
		"openai/gpt-5.5":                        1.05,
		"acme/own":                              1,
		"/":                                     1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor, model, _ := strings.Cut(name, "/")
			if got := (llm.Models{}).TokenRatio(vendor, model); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
