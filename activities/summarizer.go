package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// Summarizer makes the ordered list of summarizers. If the agent's own model is not the first one, the reason is in
// run_attempts and in the timeline.
func (a *Activities) Summarizer(ctx context.Context,
	req contract.SummarizerRequest,
) (contract.SummarizerResult, error) {
	var notes contract.SummarizerNotes
	return recorded(ctx, a, contract.StageSummarizer, req.Ref, "", &notes, func(ctx context.Context, at *attempt) (
		contract.SummarizerResult, error,
	) {
		return once(ctx, a, at, &notes, func(run runs.Run) (contract.SummarizerResult, error) {
			return a.chooseSummarizers(ctx, at, req, run, &notes)
		})
	})
}

func (a *Activities) chooseSummarizers(ctx context.Context, at *attempt, req contract.SummarizerRequest, run runs.Run,
	notes *contract.SummarizerNotes,
) (contract.SummarizerResult, error) {
	view, err := a.load(ctx, at, req.Head, false)
	if err != nil {
		return contract.SummarizerResult{}, err
	}
	in, err := a.summarizerInput(ctx, at, &notes.Given, run, view)
	if err != nil {
		return contract.SummarizerResult{}, err
	}
	in.AtOrOverLimit = req.AtOrOverLimit
	choice, err := pipeline.ChooseSummarizers(in)
	if err != nil {
		return contract.SummarizerResult{}, err
	}
	budget, err := a.tenantBudget(ctx, at, &notes.Given, view)
	if err != nil {
		return contract.SummarizerResult{}, err
	}
	if budget.Spent() {
		notes.TenantBudget = &budget
		if choice, err = a.withoutModels(ctx, at, choice, in.Settings.Digest, budget); err != nil {
			return contract.SummarizerResult{}, err
		}
	}
	notes.Skipped = choice.Skipped
	if choice.SelfReason != "" {
		if err := a.noteNotSelf(ctx, at, choice); err != nil {
			return contract.SummarizerResult{}, err
		}
	}
	ladder, err := a.withNative(ctx, at, notes, choice.Ladder, view)
	if err != nil {
		return contract.SummarizerResult{}, err
	}
	return contract.SummarizerResult{
		Ladder: ladder, SelfReason: choice.SelfReason,
		DigestForBudget: in.Settings.Digest != pipeline.DigestNever,
	}, nil
}

// noteNotSelf adds to the timeline that another than the agent's own model is called, and why: the agent's prompt
// cache is not used then.
func (a *Activities) noteNotSelf(ctx context.Context, at *attempt, choice pipeline.Choice) error {
	var ladder []string
	for _, s := range choice.Ladder {
		ladder = append(ladder, s.String())
	}
	data, err := json.Marshal(map[string]any{
		"stage": contract.StageSummarizer, "summarizers": ladder,
		"not_self": choice.SelfReason,
	})
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return a.addEvent(ctx, at, timeline.Event{Kind: timeline.Stage, Data: data})
}

// addEvent adds an event to the conversation's timeline. What a replay finds does not belong there.
func (a *Activities) addEvent(ctx context.Context, at *attempt, e timeline.Event) error {
	if at.original != nil {
		return nil
	}
	e.Run = at.ref.Run
	_, err := a.Store.Timeline.Append(ctx, conversationOf(at.ref), e)
	return err
}

func (a *Activities) summarizerInput(ctx context.Context, at *attempt, notes *contract.Given, run runs.Run,
	view conversation.View,
) (pipeline.SummarizerInput, error) {
	c := view.Conversation
	in := pipeline.SummarizerInput{
		Settings:    view.Settings.Settings,
		AgentVendor: c.Vendor, AgentModel: c.Model, AgentWindow: c.Window, AgentMaxOutput: c.MaxOutput,
		Manual: run.Kind == pipeline.TriggerManual,
	}
	known, err := given(at, notes, "agent_model", agentModelField, func() (contract.ModelLimits, error) {
		known, ok := a.installation.Models.Lookup(c.Vendor, c.Model)
		if !ok {
			known.MaxOutput = in.AgentMaxOutput
		}
		return contract.ModelLimits{Window: known.Window, MaxOutput: known.MaxOutput}, nil
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
	self, err := given(at, notes, "self", selfField, func() (contract.Permission, error) {
		allowed, why := a.selfAllowed(view)
		return contract.Permission{Allowed: allowed, Why: why}, nil
	})
	if err != nil {
		return in, err
	}
	in.SelfAllowed, in.SelfDenied = self.Allowed, self.Why
	open, err := given(at, notes, "breakers", breakersField, func() (contract.OpenBreakers, error) {
		return a.openBreakers(ctx, at.ref.Tenant, in)
	})
	if err != nil {
		return in, err
	}
	// Records of earlier builds have one for a vendor.
	in.BreakerOpen = func(vendor, model string) bool { return open[vendor+"/"+model] || open[vendor] }
	resolved, err := a.resolveAll(at, notes, in)
	if err != nil {
		return in, err
	}
	in.Resolve = func(spec pipeline.SummarizerSpec) (pipeline.Summarizer, error) {
		r, listed := resolved.Find(spec)
		switch {
		case !listed:
			return r.Summarizer, fmt.Errorf("model %q is not listed", spec.Model)
		case r.Why != "":
			return r.Summarizer, errors.New(r.Why)
		}
		return r.Summarizer, nil
	}
	return in, nil
}

// openBreakers returns for each model that might be asked whether its breaker is open for the tenant.
func (a *Activities) openBreakers(ctx context.Context, tenant string,
	in pipeline.SummarizerInput,
) (contract.OpenBreakers, error) {
	open := contract.OpenBreakers{}
	cooldown := time.Duration(a.Config.Settings.Breaker.CooldownSeconds) * time.Second
	for _, spec := range append([]pipeline.SummarizerSpec{{Model: in.AgentVendor + "/" + in.AgentModel}},
		in.Settings.Summarizers...) {
		vendor, model, err := spec.Split()
		if err != nil {
			continue
		}
		if open[vendor+"/"+model], err = a.Store.Breakers.Blocked(ctx, a.breakerOf(tenant, vendor, model),
			cooldown); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// resolveAll finds what is known of every summarizer that may be listed, the agent's own model among them.
func (a *Activities) resolveAll(at *attempt, notes *contract.Given,
	in pipeline.SummarizerInput,
) (contract.ResolvedSummarizers, error) {
	specs := append([]pipeline.SummarizerSpec{{
		Model: in.AgentVendor + "/" + in.AgentModel, ContextWindow: in.AgentWindow, MaxOutput: in.AgentMaxOutput,
	}}, in.Settings.Summarizers...)
	return given(at, notes, "summarizers", summarizersField, func() (contract.ResolvedSummarizers, error) {
		var all contract.ResolvedSummarizers
		for i, spec := range specs {
			s, err := a.resolve(spec)
			if err == nil {
				err = a.allowed(s.Vendor, s.Model, i == 0)
			}
			if err != nil {
				all = append(all, contract.ResolvedSummarizer{Spec: spec, Why: err.Error()})
				continue
			}
			all = append(all, contract.ResolvedSummarizer{Spec: spec, Summarizer: s})
		}
		return all, nil
	})
}

// Where notes hold what a stage learned from outside.
func agentModelField(g *contract.Given) **contract.ModelLimits          { return &g.AgentModel }
func selfField(g *contract.Given) **contract.Permission                 { return &g.Self }
func breakersField(g *contract.Given) **contract.OpenBreakers           { return &g.Breakers }
func summarizersField(g *contract.Given) **contract.ResolvedSummarizers { return &g.Summarizers }
func tenantBudgetField(g *contract.Given) **contract.TenantBudget       { return &g.TenantBudget }

// requestKnown reports whether the agent's system prompt and tools are known. A recorded request says both, also when
// it has none.
func requestKnown(v conversation.View) (system, tools bool) {
	c := v.Conversation
	recorded := c.Envelope != nil && v.APIType() == c.Format
	system, tools = recorded || c.System != nil, recorded || c.Tools != nil
	for _, m := range v.Messages {
		system = system || m.Role == pipeline.RoleSystem
	}
	return system, tools
}

// selfAllowed reports whether the agent's own model can be called in the agent's own format, or why not.
func (a *Activities) selfAllowed(v conversation.View) (bool, string) {
	if v.Conversation.Vendor == "" || v.Conversation.Model == "" {
		return false, "the conversation's model is not known"
	}
	if _, why := a.client(v.Conversation.Vendor); why != "" {
		return false, why
	}
	if err := a.allowed(v.Conversation.Vendor, v.Conversation.Model, true); err != nil {
		return false, err.Error()
	}
	if !llm.Speaks(a.vendor(v.Conversation.Vendor), v.Conversation.Format) {
		return false, "the conversation's messages are not in the format that the vendor takes"
	}
	return true, ""
}

// allowed returns an error for a model that the installation does not let tenants call. The agent's own model may also
// be one of the table of models, unless the vendor has a list of its own.
func (a *Activities) allowed(vendor, model string, own bool) error {
	if a.Config.Allows(vendor, model) {
		return nil
	}
	if _, known := a.installation.Models.Lookup(vendor, model); known && own &&
		len(a.Config.Vendors[vendor].Models) == 0 {
		return nil
	}
	return fmt.Errorf("model %s of %s is not allowed here: the operator can add it to vendors.%s.models", model, vendor,
		vendor)
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
