package pipeline

import "strings"

// ChooseSummarizers returns the summarizers in the order of the settings. "self" must be listed, not excluded by
// force_external, and allowed now, and the tools and the system prompt must be known. Where no other model is listed,
// the agent's own is added as an external one, marked Fallback. The digest is last, except if the policy is never, or
// if it is when_needed and a run by hand below the limit has a model to ask.
//
// The error has kind ModelNotFound and means that the list is empty.
func ChooseSummarizers(in SummarizerInput) (Choice, error) {
	c := &choosing{in: in, listed: map[string]bool{}}
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
	listed map[string]bool // the external summarizers of the ladder
	in     SummarizerInput
}

// self sets SelfReason if "self" cannot be used.
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
	case c.breakerOpen(c.in.AgentVendor, c.in.AgentModel):
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
	if c.breakerOpen(s.Vendor, s.Model) {
		skip("the breaker of " + s.Vendor + " is open")
		return
	}
	s.Kind, s.Fallback = SummarizerExternal, fallback
	if s.Mode == "" {
		s.Mode = c.in.Settings.Mode
	}
	if c.listed[s.String()] {
		skip("it is listed already")
		return
	}
	c.listed[s.String()] = true
	c.Ladder = append(c.Ladder, s)
}

func (c *choosing) resolve(spec SummarizerSpec) (Summarizer, error) {
	if c.in.Resolve != nil {
		return c.in.Resolve(spec)
	}
	vendor, model, err := spec.Split()
	return Summarizer{Vendor: vendor, Model: model, Window: spec.ContextWindow, MaxOutput: spec.MaxOutput}, err
}

func (c *choosing) breakerOpen(vendor, model string) bool {
	return !c.in.Manual && c.in.BreakerOpen != nil && c.in.BreakerOpen(vendor, model)
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
