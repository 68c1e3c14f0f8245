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
	return once(ctx, a, StageSummarizer, req.Ref, func() (SummarizerResult, error) {
		run, err := a.Store.GetRun(ctx, req.run())
		if err != nil {
			return SummarizerResult{}, err
		}
		view, err := a.view(ctx, req.Ref, run, req.Head)
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
		return SummarizerResult{
			Ladder: a.withNative(ctx, choice.Ladder, view), SelfReason: choice.SelfReason,
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
	data, err := json.Marshal(map[string]any{"stage": StageSummarizer, "summarizers": ladder, "not_self": choice.SelfReason})
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	_, err = a.Store.AppendEvent(ctx, ref.conversation(), store.Event{Kind: store.EventStage, Run: ref.Run, Data: data})
	return err
}

func (a *Activities) summarizerInput(ctx context.Context, run store.Run, view conversation.View) (pipeline.SummarizerInput, error) {
	c := view.Conversation
	in := pipeline.SummarizerInput{
		Settings:    view.Settings,
		AgentVendor: c.Vendor, AgentModel: c.Model, AgentWindow: c.Window, AgentMaxOutput: c.MaxOutput,
		Manual:  run.Kind == pipeline.TriggerManual,
		Resolve: a.resolve,
	}
	if known, ok := llm.Lookup(c.Vendor, c.Model); ok {
		if in.AgentWindow == 0 {
			in.AgentWindow = known.Window
		}
		in.AgentMaxOutput = known.MaxOutput
	}
	if run.ForceExternal {
		in.Settings.ForceExternal = true
	}
	if run.Summarizer != "" {
		in.Settings.Summarizers = nil
		for _, model := range strings.Split(run.Summarizer, ",") {
			in.Settings.Summarizers = append(in.Settings.Summarizers, pipeline.SummarizerSpec{Model: strings.TrimSpace(model)})
		}
	}
	in.SystemKnown, in.ToolsKnown = requestKnown(view)
	in.SelfAllowed, in.SelfDenied = a.selfAllowed(view)

	open := map[string]bool{}
	for _, vendor := range a.vendorsOf(in) {
		b, err := a.Store.GetBreaker(ctx, store.VendorBreaker(vendor), time.Duration(view.Settings.Breaker.CooldownSeconds)*time.Second)
		if err != nil {
			return in, err
		}
		open[vendor] = b.Blocking
	}
	in.BreakerOpen = func(vendor string) bool { return open[vendor] }
	return in, nil
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
	known, _ := llm.Lookup(vendor, model)
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
