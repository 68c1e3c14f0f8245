package pipeline

import (
	"fmt"
	"strings"
)

// SummarizerKind is the way in which a summary is written.
type SummarizerKind string

// The kinds of summarizer.
const (
	SummarizerSelf     SummarizerKind = "self"     // the agent's own request plus one instruction
	SummarizerExternal SummarizerKind = "external" // a model with a compaction prompt and the slimmed rendering
	SummarizerNative   SummarizerKind = "native"   // the vendor compacts the agent's own request
	SummarizerDigest   SummarizerKind = "digest"   // no model at all
)

// Split returns the vendor and the model of "VENDOR/MODEL"; the model's name may contain slashes.
func (s SummarizerSpec) Split() (vendor, model string, err error) {
	vendor, model, found := strings.Cut(s.Model, "/")
	if !found || vendor == "" || model == "" {
		return "", "", fmt.Errorf(`is %q; it must be "self" or "VENDOR/MODEL"`, s.Model)
	}
	return vendor, model, nil
}

// Summarizer is one entry of the list of summarizers.
type Summarizer struct {
	Kind   SummarizerKind `json:"kind"`
	Vendor string         `json:"vendor,omitempty"`
	Model  string         `json:"model,omitempty"`
	// Window and MaxOutput are in tokens, 0 if unknown.
	Window    int  `json:"window,omitempty"`
	MaxOutput int  `json:"max_output,omitempty"`
	Mode      Mode `json:"mode,omitempty"`
	// Fallback marks the agent's own model when it is asked as an external one because the settings name no other. It
	// helps where "self" could not be asked or its request did not fit, but not where the model itself failed.
	Fallback bool `json:"fallback,omitempty"`
	// Form is the way in which a native compaction is requested: a word of the vendor's client.
	Form string `json:"form,omitempty"`
}

// String returns "self", "VENDOR/MODEL", "native" or "digest".
func (s Summarizer) String() string {
	if s.Kind == SummarizerExternal {
		return s.Vendor + "/" + s.Model
	}
	return string(s.Kind)
}

// SummarizerInput is what the choice is based on.
type SummarizerInput struct {
	Settings Settings
	// The agent's own model. Window and MaxOutput are in tokens, 0 if unknown.
	AgentVendor, AgentModel     string
	AgentWindow, AgentMaxOutput int
	// ToolsKnown and SystemKnown report whether the agent's tool definitions and system prompt are stored, even if they
	// are empty.
	ToolsKnown, SystemKnown bool
	// SelfAllowed reports whether "self" may be asked now. SelfDenied is the reason if not.
	SelfAllowed bool
	SelfDenied  string
	// Resolve fills in vendor, model, window and output limit of a listed model; a model with an error is left out.
	Resolve func(spec SummarizerSpec) (Summarizer, error)
	// BreakerOpen reports whether automatic runs must not ask a vendor's model; nil means that no breaker is open.
	BreakerOpen func(vendor, model string) bool
	// Manual means requested by hand: breakers are ignored.
	Manual bool
	// AtOrOverLimit is the trigger's OverLimit, or true after a reported overflow.
	AtOrOverLimit bool
}

// SkippedSummarizer is a listed model that was left out, with the reason.
type SkippedSummarizer struct {
	Model  string `json:"model"`
	Reason string `json:"reason"`
}

// Choice is the list of summarizers, best first.
type Choice struct {
	// Ladder ends with the digest where the digest policy allows it.
	Ladder []Summarizer `json:"ladder"`
	// SelfReason is the reason why "self" is not in the list, empty if it is.
	SelfReason string `json:"self_reason,omitempty"`
	// Skipped lists the models that were left out.
	Skipped []SkippedSummarizer `json:"skipped,omitempty"`
}
