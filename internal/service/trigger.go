package service

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"precis"
	"precis/internal/config"
	"precis/internal/conversation"
	"precis/internal/launch"
	"precis/internal/llm"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/store/triggers"
	"precis/pipeline"
)

// growthShare is the share of the window, as a divisor, by which a conversation has to grow after a run that could not
// help, before the next one starts automatically without a new user message. The verbatim tail was too large, and only
// further turns change that.
const growthShare = 10

// triggerCheck evaluates the trigger of a conversation: whether a compaction is due, and what follows from that. Its
// evaluate runs in the transaction of the change that the check belongs to.
//
// It compares running sums first, in constant time. They do not include what trimming saves, so they are never too
// low. Only if the trigger would fire by them, the context is built and measured exactly. The measurement is stored
// and makes the following sums exact too.
type triggerCheck struct {
	s *Service
	// overflow: the agent's model call failed because the context was too large.
	overflow bool
	// changed: model or settings were changed, so that a compaction may help that could not help before.
	changed bool
	// dryRun: evaluate only, request no run.
	dryRun bool

	decision pipeline.TriggerDecision
	hold     string
	// apply is the prepared marker to apply after the transaction, nil if none.
	apply *markers.Marker
	// active is the ID of the active run, "" if none.
	active string
	state  triggers.State
}

// evaluate makes the decision. It is called again if the transaction is retried.
func (tc *triggerCheck) evaluate(ctx context.Context, m triggers.State) (triggers.Decision, error) {
	tc.decision, tc.hold, tc.apply, tc.active, tc.state = pipeline.TriggerDecision{}, "", nil, "", m
	if m.Active != nil {
		tc.active = m.Active.ID
	}
	settings := tc.s.settings(m.Conversation)
	if m.Ended != nil && m.Ended.Epoch != m.Conversation.Epoch {
		tc.overflow = false // the failed call had a context that is no longer sent
	}
	in := sumsInput(m, settings, tc.s.installation().Models)
	in.Overflow = tc.overflow
	tc.decision = pipeline.EvaluateTrigger(in, settings.Settings)

	var out triggers.Decision
	parked := parkedByReply(m, settings)
	// With trigger.auto off, only the kind is set. An agent that starts compactions itself relies on it, so it is
	// exact too.
	if !tc.decision.Fired && tc.decision.Kind == "" && !tc.decision.ApplyPrepared && !parked && !tc.dryRun {
		return out, nil
	}
	if err := tc.measure(ctx, m, settings, &out); err != nil {
		return out, err
	}
	return out, tc.decide(ctx, m, settings, parked, &out)
}

// measure replaces the decision by one that is based on the context as it would be sent.
func (tc *triggerCheck) measure(ctx context.Context, m triggers.State, settings config.Settings,
	out *triggers.Decision,
) error {
	live, err := m.Context(ctx)
	if err != nil {
		return err
	}
	view, err := conversation.NewView(live, tc.s.installation())
	if err != nil { // keep the decision by sums: the run reports a conversation that cannot be parsed
		tc.s.Log.Warn("a conversation could not be measured", "conversation", m.Conversation.Ref.String(), "error", err)
		return nil
	}
	now, err := view.Context(ctx)
	if err != nil {
		return err
	}
	in := view.TriggerInput(now)
	in.Overflow = tc.overflow
	tc.decision = pipeline.EvaluateTrigger(in, settings.Settings)
	out.Measured = &conversations.Measured{
		Tokens: max(int64(now.Stats.Tokens)-m.Live.Enrichments, 0),
		Seq:    m.Conversation.HeadSeq,
	}
	if in.ServerTokens > 0 && !in.ServerStale && !tc.decision.Implausible {
		out.Figure = &triggers.Figure{Estimate: in.EstimateServerPart, Calibration: tc.decision.Calibration}
	}
	return nil
}

// decide sets what follows from the decision: a prepared marker to apply, a run to request, or neither.
func (tc *triggerCheck) decide(ctx context.Context, m triggers.State, settings config.Settings, parked bool,
	out *triggers.Decision,
) error {
	d := &tc.decision
	if m.Prepared != nil && (parked || d.ApplyPrepared) {
		if m.ReplyOpen {
			d.ApplyPrepared = false
			d.Reason += ", when the reply that is being generated has ended"
			return nil
		}
		d.ApplyPrepared = true
		tc.apply = m.Prepared
		return nil
	}
	if m.Active != nil {
		return tc.join(m, settings, out)
	}
	if !d.Fired {
		return nil
	}
	hold, err := tc.holds(ctx, m, settings)
	if err != nil {
		return err
	}
	if hold != "" {
		d.Fired, d.Prepare = false, false
		tc.hold = hold
		d.Reason += "; no automatic run: " + hold
		return nil
	}
	out.Run, err = tc.request(settings)
	return err
}

// join attaches the decision to the active run. If that run only prepares a summary and the summary is due now, join
// requests that it takes effect.
func (tc *triggerCheck) join(m triggers.State, settings config.Settings, out *triggers.Decision) error {
	d := &tc.decision
	due := d.Fired && !d.Prepare || d.ApplyLimit > 0 && d.Used >= d.ApplyLimit && settings.Trigger.Auto
	if d.Fired {
		d.Reason += "; run " + m.Active.ID + " is under way"
	}
	if !m.Active.Prepare || !due || m.Conversation.AutoHeld {
		return nil
	}
	var err error
	d.Prepare = false
	if d.Kind == "" {
		d.Kind = pipeline.TriggerBackground
	}
	out.Run, err = tc.request(settings)
	return err
}

// request returns the run that the decision requests, nil for a dry run.
func (tc *triggerCheck) request(settings config.Settings) (*runs.Request, error) {
	if tc.dryRun {
		return nil, nil
	}
	trigger, err := json.Marshal(tc.decision)
	if err != nil {
		return nil, fmt.Errorf("encode the decision: %w", err)
	}
	snapshot, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("encode the settings: %w", err)
	}
	versions, err := launch.Versions(tc.s.Config)
	if err != nil {
		return nil, err
	}
	return &runs.Request{
		Kind: tc.decision.Kind, Trigger: trigger, Prepare: tc.decision.Prepare, Settings: snapshot, Versions: versions,
	}, nil
}

// parkedByReply reports whether the prepared summary would have taken effect when it was ready, had no reply been open.
func parkedByReply(m triggers.State, settings config.Settings) bool {
	if m.Prepared == nil || m.PreparedBy == nil || m.PreparedBy.Prepare {
		return false
	}
	return m.PreparedBy.Kind == pipeline.TriggerManual || settings.Trigger.Auto
}

// sumsInput returns the trigger's input, estimated by running sums.
func sumsInput(m triggers.State, settings config.Settings, models llm.Models) pipeline.TriggerInput {
	c := m.Conversation
	history := m.Live.Tokens()
	if c.Measured != nil {
		history = min(history, c.Measured.Tokens+m.SinceMeasured)
	}
	overhead := c.OverheadTokens
	if overhead < 0 {
		overhead = pipeline.EstimateText(string(c.System)) + pipeline.EstimateText(string(c.Tools))
	}
	in := pipeline.TriggerInput{
		Window:       conversation.Window(c, models),
		MaxOutput:    c.MaxOutput,
		ServerTokens: c.Usage.Tokens,
		ServerStale:  c.Usage.Stale,
		EstimateAll:  int(history+m.Live.Enrichments) + overhead,
		Calibration:  conversation.Calibration(c, models),
		Turns:        conversation.TurnsToSummarize(int(m.Live.Tail.Turns), settings),
		Prepared:     m.Prepared != nil,
	}
	switch {
	case in.ServerTokens > 0 && in.ServerStale:
		in.EstimateServerPart = c.Usage.Estimate
	case in.ServerTokens > 0:
		in.EstimateServerPart = max(in.EstimateAll-int(m.SinceFigure), 0)
	}
	return in
}

// holds returns the reason why a compaction that is due does not start automatically, "" if there is none.
func (tc *triggerCheck) holds(ctx context.Context, m triggers.State, settings config.Settings) (string, error) {
	c := m.Conversation
	if c.AutoHeld {
		return "a compaction was undone, and no user message has come since", nil
	}
	if seen := seenBy(m.Marker); seen >= c.HeadSeq && !tc.overflow && !tc.changed {
		return "no new message since the last compaction", nil
	}
	if hold, err := tc.futile(ctx, m); err != nil || hold != "" {
		return hold, err
	}
	return tc.breaker(ctx, m, settings)
}

// seenBy returns the number of the newest message when the marker was made, 0 without a marker.
func seenBy(m *markers.Marker) int64 {
	if m == nil {
		return 0
	}
	return max(m.ValveUpTo, m.CoversTo)
}

// futile returns the reason why another run would end like the last one, "" if there is none.
func (tc *triggerCheck) futile(ctx context.Context, m triggers.State) (string, error) {
	if tc.changed {
		return "", nil
	}
	last, err := m.LastRun(ctx)
	if err != nil || last == nil {
		return "", err
	}
	since, err := m.Since(ctx, last.Head)
	if err != nil {
		return "", err
	}
	moved := since.Turns > 0 || since.Tokens >= int64(max(tc.decision.Window/growthShare, 1))
	switch last.Outcome {
	case precis.OutcomeSkipped:
		if moved || !couldNotHelp(*last) {
			return "", nil
		}
		return fmt.Sprintf(
			"run %s could not make the context smaller (%s), and too little has come since to change that", last.ID,
			last.Reason), nil
	case precis.OutcomeApplied:
		if moved || last.TokensAfter < tc.decision.Limit || m.Marker == nil || m.Marker.Run != last.ID {
			return "", nil
		}
		return fmt.Sprintf(
			"run %s left the context at %d tokens, above the limit, and too little has come since to change that",
			last.ID, last.TokensAfter), nil
	case precis.OutcomeCancelled:
		if moved {
			return "", nil
		}
		return fmt.Sprintf("run %s was cancelled, and too little has come since", last.ID), nil
	case precis.OutcomeFailed:
		if last.Head < m.Conversation.HeadSeq {
			return "", nil
		}
		return fmt.Sprintf("run %s failed (%s), and no message has come since", last.ID, last.ErrorKind), nil
	}
	return "", nil
}

// couldNotHelp reports whether a run was skipped because nothing can be made smaller, and not because it was no longer
// needed.
func couldNotHelp(r runs.Brief) bool {
	switch {
	case r.ErrorKind == pipeline.NoShrink:
		return true
	case r.Reason == pipeline.NothingEmpty, r.Reason == pipeline.NothingAllProtected,
		r.Reason == pipeline.NothingAlreadyCompacted:
		return true
	}
	return false
}

// breaker returns the reason why the conversation's breaker blocks an automatic run, "" if it does not.
func (tc *triggerCheck) breaker(ctx context.Context, m triggers.State, settings config.Settings) (string, error) {
	cooldown := time.Duration(settings.Breaker.CooldownSeconds) * time.Second
	b, err := m.Breaker(ctx, cooldown)
	if err != nil || !b.Open() {
		return "", err
	}
	if !b.Blocking {
		if tc.dryRun {
			return "", nil
		}
		pass, err := m.PassBreaker(ctx, cooldown)
		if err != nil || pass {
			return "", err
		}
	}
	return fmt.Sprintf(
		"the breaker is open after %d failures in a row (%s); ask for a compaction, or wait for its cooldown of %s",
		b.Failures, b.ErrorKind, cooldown), nil
}
