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

// growthShare is the share of the window that has to be said after an attempt that could not help, before the next one
// may start by itself without a new user message: what must stay verbatim was too large, and only a turn that has moved
// on changes that.
const growthShare = 10

// look is one look at a conversation: whether a compaction is due, and what is done about it. Its watch runs in the
// transaction of the change that it looks at.
//
// It compares running sums first, in constant time: they leave out what trimming saves, and so are never too low.
// Only where something would fire by them is the context built and measured exactly, and that measure makes the next
// sums exact too.
type look struct {
	s *Service
	// overflow: the agent's own call failed for size.
	overflow bool
	// changed: model or settings are others, so that what could not help before may help now.
	changed bool
	// peek: nothing is to come of it.
	peek bool

	decision pipeline.TriggerDecision
	hold     string
	// apply is the prepared marker that is to take effect now, nil: none.
	apply *markers.Marker
	// active is the run that was under way, "": none.
	active string
	moment triggers.State
}

// watch decides. It is called again when the transaction is tried again.
func (l *look) watch(ctx context.Context, m triggers.State) (triggers.Decision, error) {
	l.decision, l.hold, l.apply, l.active, l.moment = pipeline.TriggerDecision{}, "", nil, "", m
	if m.Active != nil {
		l.active = m.Active.ID
	}
	settings := l.s.settings(m.Conversation)
	if m.Ended != nil && m.Ended.Epoch != m.Conversation.Epoch {
		l.overflow = false // of a context that is no longer sent
	}
	in := sumsInput(m, settings, l.s.installation().Models)
	in.Overflow = l.overflow
	l.decision = pipeline.EvaluateTrigger(in, settings.Settings)

	var verdict triggers.Decision
	parked := parkedByReply(m, settings)
	// A kind alone is what an agent that starts its compactions itself goes by: it is to be as exact.
	if !l.decision.Fired && l.decision.Kind == "" && !l.decision.ApplyPrepared && !parked && !l.peek {
		return verdict, nil
	}
	if err := l.measure(ctx, m, settings, &verdict); err != nil {
		return verdict, err
	}
	return verdict, l.decide(ctx, m, settings, parked, &verdict)
}

// measure replaces the decision by one on the context as it would be sent.
func (l *look) measure(ctx context.Context, m triggers.State, settings config.Settings,
	verdict *triggers.Decision,
) error {
	live, err := m.Context(ctx)
	if err != nil {
		return err
	}
	view, err := conversation.NewView(live, l.s.installation())
	if err != nil { // the sums have to do: a conversation that cannot be read is the run's to report
		l.s.Log.Warn("a conversation could not be measured", "conversation", m.Conversation.Ref.String(), "error", err)
		return nil
	}
	now := view.Context()
	in := view.TriggerInput(now)
	in.Overflow = l.overflow
	l.decision = pipeline.EvaluateTrigger(in, settings.Settings)
	verdict.Measured = &conversations.Measured{
		Tokens: max(int64(now.Stats.Tokens)-m.Live.Enrichments, 0),
		Seq:    m.Conversation.HeadSeq,
	}
	if in.ServerTokens > 0 && !in.ServerStale && !l.decision.Implausible {
		verdict.Figure = &triggers.Figure{Estimate: in.EstimateServerPart, Calibration: l.decision.Calibration}
	}
	return nil
}

// decide says what comes of the decision.
func (l *look) decide(ctx context.Context, m triggers.State, settings config.Settings, parked bool,
	verdict *triggers.Decision,
) error {
	d := &l.decision
	if m.Prepared != nil && (parked || d.ApplyPrepared) {
		if m.ReplyOpen {
			d.ApplyPrepared = false
			d.Reason += ", when the reply that is being generated has ended"
			return nil
		}
		d.ApplyPrepared = true
		l.apply = m.Prepared
		return nil
	}
	if m.Active != nil {
		return l.join(m, settings, verdict)
	}
	if !d.Fired {
		return nil
	}
	hold, err := l.holds(ctx, m, settings)
	if err != nil {
		return err
	}
	if hold != "" {
		d.Fired, d.Prepare = false, false
		l.hold = hold
		d.Reason += "; no automatic run: " + hold
		return nil
	}
	verdict.Run, err = l.request(settings)
	return err
}

// join leaves the run under way to go on. One that only prepares is to take effect once its summary is due.
func (l *look) join(m triggers.State, settings config.Settings, verdict *triggers.Decision) error {
	d := &l.decision
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
	verdict.Run, err = l.request(settings)
	return err
}

// request is the run that the decision asks for.
func (l *look) request(settings config.Settings) (*runs.Request, error) {
	if l.peek {
		return nil, nil
	}
	trigger, err := json.Marshal(l.decision)
	if err != nil {
		return nil, fmt.Errorf("encode the decision: %w", err)
	}
	snapshot, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("encode the settings: %w", err)
	}
	versions, err := launch.Versions(l.s.Config)
	if err != nil {
		return nil, err
	}
	return &runs.Request{
		Kind: l.decision.Kind, Trigger: trigger, Prepare: l.decision.Prepare, Settings: snapshot, Versions: versions,
	}, nil
}

// parkedByReply says whether the summary that waits was to take effect when it was ready, and only a reply kept it from
// that.
func parkedByReply(m triggers.State, settings config.Settings) bool {
	if m.Prepared == nil || m.PreparedBy == nil || m.PreparedBy.Prepare {
		return false
	}
	return m.PreparedBy.Kind == pipeline.TriggerManual || settings.Trigger.Auto
}

// sumsInput is what the trigger compares, by running sums.
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

// holds says why a compaction that is due does not start by itself, "" when nothing holds it.
func (l *look) holds(ctx context.Context, m triggers.State, settings config.Settings) (string, error) {
	c := m.Conversation
	if c.AutoHeld {
		return "a compaction was undone, and no user message has come since", nil
	}
	if seen := seenBy(m.Marker); seen >= c.HeadSeq && !l.overflow && !l.changed {
		return "no new message since the last compaction", nil
	}
	if hold, err := l.futile(ctx, m); err != nil || hold != "" {
		return hold, err
	}
	return l.breaker(ctx, m, settings)
}

// seenBy is the newest message at the time when a marker was made.
func seenBy(m *markers.Marker) int64 {
	if m == nil {
		return 0
	}
	return max(m.ValveUpTo, m.CoversTo)
}

// futile says why another attempt would end as the last one did.
func (l *look) futile(ctx context.Context, m triggers.State) (string, error) {
	if l.changed {
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
	moved := since.Turns > 0 || since.Tokens >= int64(max(l.decision.Window/growthShare, 1))
	switch last.Outcome {
	case precis.OutcomeSkipped:
		if moved || !couldNotHelp(*last) {
			return "", nil
		}
		return fmt.Sprintf(
			"run %s could not make the context smaller (%s), and too little has come since to change that", last.ID,
			last.Reason), nil
	case precis.OutcomeApplied:
		if moved || last.TokensAfter < l.decision.Limit || m.Marker == nil || m.Marker.Run != last.ID {
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

// couldNotHelp says whether a skipped run found that nothing can be made smaller, as against one that came too late to
// be needed.
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

// breaker asks the conversation's breaker to let an automatic run through.
func (l *look) breaker(ctx context.Context, m triggers.State, settings config.Settings) (string, error) {
	cooldown := time.Duration(settings.Breaker.CooldownSeconds) * time.Second
	b, err := m.Breaker(ctx, cooldown)
	if err != nil || !b.Open() {
		return "", err
	}
	if !b.Blocking {
		if l.peek {
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
