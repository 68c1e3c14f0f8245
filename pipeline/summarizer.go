package pipeline

import (
	"fmt"
	"strings"
)

// SummarizerKind is how a summary comes about.
type SummarizerKind string

// The kinds of summarizer.
const (
	SummarizerSelf     SummarizerKind = "self"     // the agent's own request plus one instruction
	SummarizerExternal SummarizerKind = "external" // a model with a compaction prompt and the slimmed rendering
	SummarizerNative   SummarizerKind = "native"   // the vendor itself compacts the agent's own request
	SummarizerDigest   SummarizerKind = "digest"   // no model at all
)

// Split returns the vendor and the model of "VENDOR/MODEL"; the model's name may hold slashes itself.
func (s SummarizerSpec) Split() (vendor, model string, err error) {
	vendor, model, found := strings.Cut(s.Model, "/")
	if !found || vendor == "" || model == "" {
		return "", "", fmt.Errorf(`is %q; it is "self" or "VENDOR/MODEL"`, s.Model)
	}
	return vendor, model, nil
}

// Summarizer is one rung that writes summaries.
type Summarizer struct {
	Kind   SummarizerKind `json:"kind"`
	Vendor string         `json:"vendor,omitempty"`
	Model  string         `json:"model,omitempty"`
	// Window and MaxOutput in tokens, 0 when unknown.
	Window    int  `json:"window,omitempty"`
	MaxOutput int  `json:"max_output,omitempty"`
	Mode      Mode `json:"mode,omitempty"`
	// Fallback marks the agent's own model, asked as an external one because the settings name no other. It
	// helps where "self" could not be asked or its request did not fit; it does not where the model itself
	// failed.
	Fallback bool `json:"fallback,omitempty"`
	// Form is how a native one is asked for: a word of the vendor's client.
	Form string `json:"form,omitempty"`
}

// String is "self", "VENDOR/MODEL", "native" or "digest".
func (s Summarizer) String() string {
	if s.Kind == SummarizerExternal {
		return s.Vendor + "/" + s.Model
	}
	return string(s.Kind)
}

// SummarizerInput is what the choice rests on.
type SummarizerInput struct {
	Settings Settings
	// The agent's own model. Window and MaxOutput in tokens, 0 when unknown.
	AgentVendor, AgentModel     string
	AgentWindow, AgentMaxOutput int
	// ToolsKnown and SystemKnown: the agent's tool definitions and system prompt are stored, be they empty.
	ToolsKnown, SystemKnown bool
	// SelfAllowed says that "self" may be asked right now; SelfDenied says why not.
	SelfAllowed bool
	SelfDenied  string
	// Resolve fills in vendor, model, window and output limit of a listed model; an error leaves it out.
	Resolve func(spec SummarizerSpec) (Summarizer, error)
	// BreakerOpen says that a vendor is not to be asked by an automatic run; nil: none is open.
	BreakerOpen func(vendor string) bool
	// Manual: asked for by hand, so that breakers do not count.
	Manual bool
	// AtOrOverLimit is the trigger's OverLimit, or an overflow that was reported.
	AtOrOverLimit bool
}

// SkippedSummarizer is a listed model that is not on the ladder, and why.
type SkippedSummarizer struct {
	Model  string `json:"model"`
	Reason string `json:"reason"`
}

// Choice is the ladder of summarizers, best first.
type Choice struct {
	// Ladder ends in the digest where the digest policy allows it.
	Ladder []Summarizer `json:"ladder"`
	// SelfReason says why "self" is not on it, empty when it is.
	SelfReason string `json:"self_reason,omitempty"`
	// Skipped lists the models that were left out.
	Skipped []SkippedSummarizer `json:"skipped,omitempty"`
}
