package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/pipeline"
)

// Summarizer makes the ordered list of who may write the summary. Every choice of another than the agent's
// own model is told, with its reason, in run_steps and as an event.
func (a *Activities) Summarizer(ctx context.Context, req SummarizerRequest) (SummarizerResult, error) {
	return once(ctx, a, StageSummarizer, req.Ref, func(run store.Run) (SummarizerResult, error) {
		view, err := a.load(ctx, req.Ref, run, req.Head, false)
		if err != nil {
			return SummarizerResult{}, err
		}
		in, err := a.summarizerInput(ctx, run, view)
		if err != nil {
			return SummarizerResult{}, err
		}
		in.AtOrOverLimit = req.AtOrOverLimit
		choice, err := pipeline.ChooseSummarizers(in)
		if err != nil {
			return SummarizerResult{}, err
		}
		budget, err := a.tenantBudget(ctx, view)
		if err != nil {
			return SummarizerResult{}, err
		}
		if budget.spent() {
			if choice, err = a.withoutModels(ctx, req.Ref, choice, in.Settings.Digest, budget); err != nil {
				return SummarizerResult{}, err
			}
		}
		for _, s := range choice.Skipped {
			notesOf(ctx).number("skipped "+s.Model, s.Reason)
		}
		if choice.SelfReason != "" {
			if err := a.tellNotSelf(ctx, req.Ref, choice); err != nil {
				return SummarizerResult{}, err
			}
		}
		ladder, err := a.withNative(ctx, choice.Ladder, view)
		if err != nil {
			return SummarizerResult{}, err
		}
		return SummarizerResult{
			Ladder: ladder, SelfReason: choice.SelfReason,
			DigestForBudget: in.Settings.Digest != pipeline.DigestNever,
		}, nil
	})
}

// tellNotSelf puts into the timeline that another than the agent's own model is asked, and why: its prompt cache is
// not used then.
func (a *Activities) tellNotSelf(ctx context.Context, ref Ref, choice pipeline.Choice) error {
	var ladder []string
	for _, s := range choice.Ladder {
		ladder = append(ladder, s.String())
	}
	data, err := json.Marshal(map[string]any{
		"stage": StageSummarizer, "summarizers": ladder,
		"not_self": choice.SelfReason,
	})
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return a.tell(ctx, ref, store.Event{Kind: store.EventStage, Data: data})
}

// tell notes something in the conversation's timeline. What a replay finds is no news there.
func (a *Activities) tell(ctx context.Context, ref Ref, e store.Event) error {
	if notesOf(ctx).original != nil {
		return nil
	}
	e.Run = ref.Run
	_, err := a.Store.AppendEvent(ctx, ref.conversation(), e)
	return err
}

// limits are what is known of a model, and permission is whether it may be asked.
type (
	limits struct {
		Window    int `json:"window,omitempty"`
		MaxOutput int `json:"max_output,omitempty"`
	}
	permission struct {
		Allowed bool   `json:"allowed"`
		Why     string `json:"why,omitempty"`
	}
)

// resolution is what is known of a listed summarizer, or why it is left out.
type resolution struct {
	Summarizer pipeline.Summarizer `json:"summarizer"`
	Why        string              `json:"why,omitempty"`
}

func (a *Activities) summarizerInput(ctx context.Context, run store.Run,
	view conversation.View,
) (pipeline.SummarizerInput, error) {
	c := view.Conversation
	in := pipeline.SummarizerInput{
		Settings:    view.Settings,
		AgentVendor: c.Vendor, AgentModel: c.Model, AgentWindow: c.Window, AgentMaxOutput: c.MaxOutput,
		Manual: run.Kind == pipeline.TriggerManual,
	}
	known, err := given(ctx, "agent_model", func() (limits, error) {
		known, ok := a.installation.Models.Lookup(c.Vendor, c.Model)
		if !ok {
			known.MaxOutput = in.AgentMaxOutput
		}
		return limits{known.Window, known.MaxOutput}, nil
	})
	if err != nil {
		return in, err
	}
	if in.AgentWindow == 0 {
		in.AgentWindow = known.Window
	}
	in.AgentMaxOutput = known.MaxOutput
	if run.ForceExternal {
		in.Settings.ForceExternal = true
	}
	if run.Summarizer != "" {
		in.Settings.Summarizers = nil
		for _, model := range strings.Split(run.Summarizer, ",") {
			in.Settings.Summarizers = append(in.Settings.Summarizers,
				pipeline.SummarizerSpec{Model: strings.TrimSpace(model)})
		}
	}
	in.SystemKnown, in.ToolsKnown = requestKnown(view)
	self, err := given(ctx, "self", func() (permission, error) {
		allowed, why := a.selfAllowed(view)
		return permission{allowed, why}, nil
	})
	if err != nil {
		return in, err
	}
	in.SelfAllowed, in.SelfDenied = self.Allowed, self.Why
	open, err := given(ctx, "breakers", func() (map[string]bool, error) { return a.openBreakers(ctx, in) })
	if err != nil {
		return in, err
	}
	in.BreakerOpen = func(vendor string) bool { return open[vendor] }
	resolved, err := a.resolveAll(ctx, in)
	if err != nil {
		return in, err
	}
	in.Resolve = func(spec pipeline.SummarizerSpec) (pipeline.Summarizer, error) {
		r := resolved[nameOf(spec)]
		if r.Why != "" {
			return r.Summarizer, errors.New(r.Why)
		}
		return r.Summarizer, nil
	}
	return in, nil
}

// openBreakers are the vendors that are not to be asked just now.
func (a *Activities) openBreakers(ctx context.Context, in pipeline.SummarizerInput) (map[string]bool, error) {
	open := map[string]bool{}
	for _, vendor := range a.vendorsOf(in) {
		b, err := a.Store.GetBreaker(ctx, store.VendorBreaker(vendor),
			time.Duration(in.Settings.Breaker.CooldownSeconds)*time.Second)
		if err != nil {
			return nil, err
		}
		open[vendor] = b.Blocking
	}
	return open, nil
}

// resolveAll finds what is known of every summarizer that may be listed, the agent's own model among them.
func (a *Activities) resolveAll(ctx context.Context, in pipeline.SummarizerInput) (map[string]resolution, error) {
	specs := append([]pipeline.SummarizerSpec{{
		Model: in.AgentVendor + "/" + in.AgentModel, ContextWindow: in.AgentWindow, MaxOutput: in.AgentMaxOutput,
	}}, in.Settings.Summarizers...)
	return given(ctx, "summarizers", func() (map[string]resolution, error) {
		all := map[string]resolution{}
		for _, spec := range specs {
			s, err := a.resolve(spec)
			all[nameOf(spec)] = resolution{Summarizer: s}
			if err != nil {
				all[nameOf(spec)] = resolution{Why: err.Error()}
			}
		}
		return all, nil
	})
}

// nameOf tells two listed summarizers apart, which may be one model with two windows.
func nameOf(s pipeline.SummarizerSpec) string {
	return fmt.Sprintf("%s %d %d", s.Model, s.ContextWindow, s.MaxOutput)
}

// requestKnown says whether the agent's system prompt and tools are stored, be they empty: a recorded request
// tells both, also by what it has not.
func requestKnown(v conversation.View) (system, tools bool) {
	c := v.Conversation
	recorded := c.Envelope != nil && v.APIType() == c.Format
	system, tools = recorded || c.System != nil, recorded || c.Tools != nil
	for _, m := range v.Messages {
		system = system || m.Role == pipeline.RoleSystem
	}
	return system, tools
}

// selfAllowed says whether the agent's own model can be asked in the agent's own format.
func (a *Activities) selfAllowed(v conversation.View) (bool, string) {
	if v.Conversation.Vendor == "" || v.Conversation.Model == "" {
		return false, "the conversation's model is not known"
	}
	if _, why := a.client(v.Conversation.Vendor); why != "" {
		return false, why
	}
	if !llm.Speaks(a.vendor(v.Conversation.Vendor), v.Conversation.Format) {
		return false, "the conversation's messages are not in the format that the vendor takes"
	}
	return true, ""
}

// resolve finds a listed model's vendor, window and output limit.
func (a *Activities) resolve(spec pipeline.SummarizerSpec) (pipeline.Summarizer, error) {
	vendor, model, err := spec.Split()
	if err != nil {
		return pipeline.Summarizer{}, err
	}
	if _, why := a.client(vendor); why != "" {
		return pipeline.Summarizer{}, errors.New(why)
	}
	s := pipeline.Summarizer{Vendor: vendor, Model: model, Window: spec.ContextWindow, MaxOutput: spec.MaxOutput}
	known, _ := a.installation.Models.Lookup(vendor, model)
	if s.Window == 0 {
		s.Window = known.Window
	}
	if s.MaxOutput == 0 {
		s.MaxOutput = known.MaxOutput
	}
	return s, nil
}

// vendorsOf lists the vendors that might be asked.
func (a *Activities) vendorsOf(in pipeline.SummarizerInput) []string {
	vendors := []string{in.AgentVendor}
	for _, spec := range in.Settings.Summarizers {
		if vendor, _, err := spec.Split(); err == nil {
			vendors = append(vendors, vendor)
		}
	}
	return vendors
}
