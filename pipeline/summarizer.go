package pipeline

import (
	"fmt"
	"math"
	"strings"
)

// SummarizerKind is how a summary comes about.
type SummarizerKind string

// The kinds of summarizer.
const (
	SummarizerSelf     SummarizerKind = "self"     // the agent's own request plus one instruction
	SummarizerExternal SummarizerKind = "external" // a model with a compaction prompt and the slimmed rendering
	SummarizerNative   SummarizerKind = "native"   // the vendor compacts the agent's own request by itself
	SummarizerDigest   SummarizerKind = "digest"   // no model at all
)

// Split gives the vendor and the model of "VENDOR/MODEL"; the model's name may hold slashes itself.
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

// ChooseSummarizers makes the ladder in the order of the settings. "self" needs all of: listed, not forced
// external, allowed now, tools known, system prompt known. Where no other model is listed, the agent's own
// stands in as an external one, marked Fallback. The digest is last, unless the policy is never, or the
// policy is when_needed and a run by hand below the limit has a model to ask.
//
// The error has kind ModelNotFound and means that the ladder is empty.
func ChooseSummarizers(in SummarizerInput) (Choice, error) {
	c := &choosing{in: in}
	c.self()
	externals := 0
	for _, spec := range in.Settings.Summarizers {
		if spec.Model == "self" {
			if c.SelfReason == "" && !c.has(SummarizerSelf) {
				c.Ladder = append(c.Ladder, Summarizer{
					Kind: SummarizerSelf, Vendor: in.AgentVendor, Model: in.AgentModel,
					Window: in.AgentWindow, MaxOutput: in.AgentMaxOutput, Mode: in.Settings.Mode,
				})
			}
			continue
		}
		externals++
		c.external(spec, false)
	}
	if externals == 0 && in.AgentVendor != "" && in.AgentModel != "" {
		c.external(SummarizerSpec{
			Model: in.AgentVendor + "/" + in.AgentModel, ContextWindow: in.AgentWindow, MaxOutput: in.AgentMaxOutput,
		}, true)
	}

	needed := in.Settings.Digest == DigestAlways || !in.Manual || in.AtOrOverLimit || len(c.Ladder) == 0
	if in.Settings.Digest != DigestNever && needed {
		c.Ladder = append(c.Ladder, Summarizer{Kind: SummarizerDigest})
	}
	if len(c.Ladder) == 0 {
		return c.Choice, Errorf(ModelNotFound,
			"no summarizer can be asked (%s) and the digest is switched off; configure a vendor or set digest to %s",
			c.why(), DigestWhenNeeded)
	}
	return c.Choice, nil
}

type choosing struct {
	Choice
	in SummarizerInput
}

// self finds out why "self" cannot be used, if so.
func (c *choosing) self() {
	listed := false
	for _, spec := range c.in.Settings.Summarizers {
		listed = listed || spec.Model == "self"
	}
	switch {
	case c.in.Settings.ForceExternal:
		c.SelfReason = "an external summarizer is forced (force_external)"
	case !listed:
		c.SelfReason = `"self" is not among the configured summarizers`
	case !c.in.SelfAllowed:
		c.SelfReason = "it is not allowed now"
		if c.in.SelfDenied != "" {
			c.SelfReason += ": " + c.in.SelfDenied
		}
	case !c.in.ToolsKnown:
		c.SelfReason = "the agent's tools are not known"
	case !c.in.SystemKnown:
		c.SelfReason = "the agent's system prompt is not known"
	case c.breakerOpen(c.in.AgentVendor):
		c.SelfReason = "the breaker of " + c.in.AgentVendor + " is open"
	}
}

func (c *choosing) external(spec SummarizerSpec, fallback bool) {
	skip := func(reason string) {
		c.Skipped = append(c.Skipped, SkippedSummarizer{Model: spec.Model, Reason: reason})
	}
	s, err := c.resolve(spec)
	if err != nil {
		skip(err.Error())
		return
	}
	if c.breakerOpen(s.Vendor) {
		skip("the breaker of " + s.Vendor + " is open")
		return
	}
	s.Kind, s.Fallback = SummarizerExternal, fallback
	if s.Mode == "" {
		s.Mode = c.in.Settings.Mode
	}
	for _, have := range c.Ladder {
		if have.Kind == SummarizerExternal && have.String() == s.String() {
			skip("it is listed already")
			return
		}
	}
	c.Ladder = append(c.Ladder, s)
}

func (c *choosing) resolve(spec SummarizerSpec) (Summarizer, error) {
	if c.in.Resolve != nil {
		return c.in.Resolve(spec)
	}
	vendor, model, err := spec.Split()
	return Summarizer{Vendor: vendor, Model: model, Window: spec.ContextWindow, MaxOutput: spec.MaxOutput}, err
}

func (c *choosing) breakerOpen(vendor string) bool {
	return !c.in.Manual && c.in.BreakerOpen != nil && c.in.BreakerOpen(vendor)
}

func (c *choosing) has(kind SummarizerKind) bool {
	for _, s := range c.Ladder {
		if s.Kind == kind {
			return true
		}
	}
	return false
}

func (c *choosing) why() string {
	reasons := []string{"self: " + c.SelfReason}
	for _, s := range c.Skipped {
		reasons = append(reasons, s.Model+": "+s.Reason)
	}
	return strings.Join(reasons, "; ")
}

const (
	// outputMaxFraction is the largest share of a summarizer's window that its output may take.
	outputMaxFraction = 0.25
	// outputMinFraction is the room that a request must leave for an answer, as a share of the window, and
	// outputMinTokens the size at which more room is not asked for.
	outputMinFraction = 1.0 / 16
	outputMinTokens   = 1024
	// estimateMargin is the share of a window that is left for the error of the local estimate, which is
	// below a tenth.
	estimateMargin = 0.1
	// unknownCharsPerToken is the density that is assumed of a text that was not measured: Chinese and
	// Japanese are about one char a token, everything else has more.
	unknownCharsPerToken = 1.0
)

// InputBudgetChars is how many chars the rendered input for sum may have: the configured bound
// (StrictPromptChars where set, else MaxPromptChars), and never more than its window takes beside the
// promptTokens of the request's own text and the room for its output, with a margin for the estimate's
// error. charsPerToken is the density of the text, as measured; zero or less: unknown. 0 means that the
// summarizer cannot be asked at all.
func InputBudgetChars(s Settings, sum Summarizer, promptTokens int, charsPerToken float64) int {
	budget := s.MaxPromptChars
	if s.StrictPromptChars > 0 {
		budget = s.StrictPromptChars
	}
	if budget <= 0 {
		budget = MaxSummarizationPromptChars
	}
	if !(charsPerToken > 0) || math.IsInf(charsPerToken, 1) {
		charsPerToken = unknownCharsPerToken
	}
	window := windowOf(sum)
	room := window - floorShare(window, estimateMargin) - max(promptTokens, 0) - outputRoom(s, sum)
	if room <= 0 {
		return 0
	}
	return min(budget, floorShare(room, charsPerToken))
}

// MaxOutputFor is the output limit to ask for beside inputTokens of input: the summary's cap, within what the
// model may write and what its window has left. It is always from 1 to the model's limit.
func MaxOutputFor(s Settings, sum Summarizer, inputTokens int) int {
	return max(1, min(outputRoom(s, sum), windowOf(sum)-max(inputTokens, 0)))
}

// FitsWindow says whether sum can take a request of inputTokens and still have room for an answer. A request
// that does not fit is not sent.
func FitsWindow(s Settings, sum Summarizer, inputTokens int) bool {
	window := windowOf(sum)
	least := min(outputRoom(s, sum), outputMinTokens, max(1, floorShare(window, outputMinFraction)))
	return inputTokens+least <= window
}

// outputRoom is the output that is planned for, in tokens.
func outputRoom(s Settings, sum Summarizer) int {
	room := min(max(s.SummaryMaxTokens, 1), max(1, floorShare(windowOf(sum), outputMaxFraction)))
	if sum.MaxOutput > 0 {
		room = min(room, sum.MaxOutput)
	}
	return room
}

func windowOf(sum Summarizer) int {
	if sum.Window > 0 {
		return sum.Window
	}
	return DefaultContextWindow
}
