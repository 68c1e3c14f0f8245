package activities

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"precis"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/internal/store/contexts"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Reassemble builds the new context from the conversation as it is now, and makes it the conversation's own in
// one transaction. Messages that came while the summary was written are in the tail. What is in the way comes
// back as a kind: no_shrink, or conflict when the conversation moved on.
func (a *Activities) Reassemble(ctx context.Context,
	req contract.ReassembleRequest,
) (contract.ReassembleResult, error) {
	var notes contract.ReassembleNotes
	return recorded(ctx, a, contract.StageReassemble, req.Ref, req.Summarizer.String(), &notes,
		func(ctx context.Context, at *attempt) (contract.ReassembleResult, error) {
			result, err := once(ctx, a, at, &notes, func(run runs.Run) (contract.ReassembleResult, error) {
				return a.reassemble(ctx, at, req, run, &notes)
			})
			if err == nil && result.Marker != "" && !at.reused && at.record == nil {
				// The run has ended by its marker; a figure that cannot be read now does not undo that.
				if run, err := a.Store.Runs.Get(ctx, runOf(req.Ref)); err == nil {
					a.countRun(ctx, run, contract.StageReassemble)
				}
			}
			return result, err
		})
}

func (a *Activities) reassemble(ctx context.Context, at *attempt, req contract.ReassembleRequest, run runs.Run,
	notes *contract.ReassembleNotes,
) (contract.ReassembleResult, error) {
	p, err := a.plan(ctx, req.Tenant, req.Plan)
	if err != nil {
		return contract.ReassembleResult{}, err
	}
	var summary []byte
	if req.Summary != "" {
		if summary, err = a.Store.Artifacts.Get(ctx, req.Tenant, req.Summary); err != nil {
			return contract.ReassembleResult{}, err
		}
	}
	if run.Marker != "" { // an earlier attempt applied it and died before it could report that
		return applied(run), nil
	}
	if run.Outcome != "" {
		return contract.ReassembleResult{}, store.ErrRunEnded
	}
	view, whole, err := a.nowAndPlanned(ctx, at, &p)
	if err != nil {
		return contract.ReassembleResult{}, err
	}
	if view.Conversation.ActiveMarker != p.Base {
		return contract.ReassembleResult{
			Kind: pipeline.Conflict,
			Reason: "another marker is active than when the run began: an undo or another compaction came in " +
				"between",
		}, nil
	}
	b := building{at: at, req: req, run: run, plan: p, view: view, whole: whole, notes: notes}
	return a.build(ctx, b, string(summary))
}

// building is what a new context is built from: the conversation as its model sees it now, view, and the messages that
// the plan worked on, whole. They are the same but for a plan that replaces a digest.
type building struct {
	at          *attempt
	req         contract.ReassembleRequest
	run         runs.Run
	plan        plan
	view, whole conversation.View
	notes       *contract.ReassembleNotes
}

// nowAndPlanned reads the conversation as its model sees it now, and the messages that the plan worked on. They are the
// same but for a plan that replaces a digest, and for a live replay of a run whose marker is active: its summary takes
// the place of that one's, on top of it, so that an undo gives that back.
func (a *Activities) nowAndPlanned(ctx context.Context, at *attempt,
	p *plan,
) (view, whole conversation.View, err error) {
	apply := at.run.Replay.Apply
	if apply {
		view, err = a.loadNow(ctx, at, contexts.Options{})
	} else {
		view, err = a.load(ctx, at, 0, false)
	}
	if err != nil {
		return view, whole, err
	}
	active := view.Conversation.ActiveMarker
	if active == p.Base || !apply || active == "" || active != at.original.Marker || p.CoversTo == 0 {
		if active == p.Base {
			whole, err = a.whole(ctx, at, view, p.BeneathDigest)
		}
		return view, whole, err
	}
	whole, err = a.from(ctx, at, view, p.Base, p.BeneathDigest)
	if err == nil {
		p.onTopOf(*view.Marker, whole)
	}
	return view, whole, err
}

// onTopOf makes the plan one that replaces a marker: what that covers beyond it stays verbatim.
func (p *plan) onTopOf(m markers.Marker, whole conversation.View) {
	p.Base, p.Replaces = m.ID, true
	if m.CoversTo <= p.CoversTo {
		return
	}
	for _, msg := range whole.Messages {
		if msg.Seq > p.CoversTo && msg.Seq <= m.CoversTo {
			p.Carried = append(p.Carried, msg.Seq)
		}
	}
	p.CoversTo, p.CoveredChain = m.CoversTo, m.CoveredChain.String()
}

func applied(run runs.Run) contract.ReassembleResult {
	return contract.ReassembleResult{
		Outcome: run.Outcome, Kind: run.ErrorKind, Reason: run.Reason, Marker: run.Marker,
		TokensBefore: run.Facts.TokensBefore, TokensAfter: run.Facts.TokensAfter,
	}
}

// build makes the marker and the new context, and takes the marker unless the context is too large.
func (a *Activities) build(ctx context.Context, b building, summary string) (contract.ReassembleResult, error) {
	req, p, view := b.req, b.plan, b.view
	before, err := view.Context(ctx)
	if err != nil {
		return contract.ReassembleResult{}, err
	}
	decision := pipeline.EvaluateTrigger(view.TriggerInput(before), view.Settings.Settings)
	digest := req.Summarizer.Kind == pipeline.SummarizerDigest
	marker := markers.NewMarker{
		Base: p.Base, CoversFrom: p.CoversFrom, CoversTo: p.CoversTo, CoveredMessages: p.CoveredMessages,
		Carried: p.Carried, Digest: digest, Valve: req.Valve, ValveUpTo: view.Head(),
		Calibration: decision.Calibration,
	}
	if err := setChain(&marker, p.CoveredChain); err != nil {
		return contract.ReassembleResult{}, err
	}
	text, err := a.summaryMessage(ctx, b, &marker, summary)
	if err != nil {
		return contract.ReassembleResult{}, err
	}
	native, err := a.nativeOf(ctx, req, view, &marker)
	if err != nil {
		return contract.ReassembleResult{}, err
	}

	after, err := b.whole.After(marker, text).WithNative(native).Context(ctx)
	if err != nil {
		return contract.ReassembleResult{}, err
	}
	estimateAfter := scaled(after.Stats.Tokens+view.Overhead(), decision.Calibration)
	result := contract.ReassembleResult{TokensBefore: decision.Used, TokensAfter: estimateAfter, Limit: decision.Limit}
	marker.TokensBefore, marker.TokensAfter = result.TokensBefore, result.TokensAfter

	// A model's summary may be larger than the digest that it replaces; another digest would bring nothing.
	smaller := after.Stats.Tokens < before.Stats.Tokens || p.BeneathDigest && !digest || p.Replaces
	var facts runs.Facts
	if estimateAfter >= decision.Limit || !smaller && !req.Manual {
		result.Kind = pipeline.NoShrink
		result.Reason = fmt.Sprintf("the new context has ≈%d tokens, the limit is %d", estimateAfter, decision.Limit)
		if !req.Final {
			return result, nil
		}
		if !smaller {
			result.Outcome = precis.OutcomeSkipped
			result.Reason = "ineffective: what must stay is as large as the context already; a shorter last " +
				"message or a model with a larger window helps"
			return result, nil
		}
	}
	if facts.Context, err = a.keepContext(ctx, req, view, after); err != nil {
		return result, err
	}
	facts.Snapshot = b.at.artifacts[contract.ArtifactSnapshot] // verify builds the context again from it
	if marker.Native != "" {
		facts.Mode = pipeline.ModeBeta
	}
	b.at.artifact(contract.ArtifactContext, facts.Context)
	due := due(b.run, view, before)
	if b.run.ReplayOf != "" && !b.run.Replay.Apply {
		return a.compareOnly(ctx, b.at, marker, facts, result, due)
	}
	return a.take(ctx, req, marker, facts, result, due)
}

// compareOnly is take for a replay that changes nothing: it notes what the marker would have been. One from the record
// ends as the original did, which depended on what else went on in the conversation.
func (a *Activities) compareOnly(ctx context.Context, at *attempt, m markers.NewMarker, facts runs.Facts,
	result contract.ReassembleResult, due bool,
) (contract.ReassembleResult, error) {
	facts.CoversFrom, facts.CoversTo, facts.CoveredMessages, facts.CoveredChain = m.CoversFrom, m.CoversTo,
		m.CoveredMessages, m.CoveredChain
	facts.Digest, facts.TokensBefore, facts.TokensAfter = m.Digest, m.TokensBefore, m.TokensAfter
	if err := a.Store.Runs.RecordFacts(ctx, runOf(at.ref), facts); err != nil {
		return result, err
	}
	rec := at.record
	if rec == nil {
		result.Outcome = precis.OutcomeReplayed
		return result, nil
	}
	var recorded contract.ReassembleResult
	if rec.kept != nil {
		if err := json.Unmarshal(rec.kept.Result, &recorded); err != nil {
			return result, fmt.Errorf("read a stage's kept result: %w", err)
		}
	}
	if recorded.Outcome != "" || recorded.Kind == pipeline.Conflict {
		result.Outcome, result.Kind, result.Reason, result.Marker = recorded.Outcome, recorded.Kind, recorded.Reason,
			recorded.Marker
		return result, nil
	}
	if result.Outcome = precis.OutcomePrepared; due { // the original found that it was not small enough
		result.Outcome = precis.OutcomeApplied
	}
	return result, nil
}

// due reports whether the run's marker takes effect now: one that only prepares does when the context has reached
// the second threshold meanwhile.
func due(run runs.Run, view conversation.View, now pipeline.Context) bool {
	if !run.Prepare {
		return true
	}
	in := view.TriggerInput(now)
	in.Prepared = true
	if view.Conversation.AutoHeld {
		in.Hold = "undone"
	}
	return pipeline.EvaluateTrigger(in, view.Settings.Settings).ApplyPrepared
}

// summaryMessage makes the text of the summary message and notes it on the marker. A run that summarized nothing
// keeps the message that is there.
func (a *Activities) summaryMessage(ctx context.Context, b building, marker *markers.NewMarker, summary string) (
	string, error,
) {
	req, p, view := b.req, b.plan, b.view
	if req.Summary == "" {
		if view.Marker != nil {
			marker.Summary, marker.SummaryTokens, marker.Digest = view.Marker.Summary, view.Marker.SummaryTokens,
				view.Marker.Digest
		}
		return string(view.Summary), nil
	}
	draft := conversation.Draft{Summary: req.Summary, Omitted: req.Omitted, Repeated: repeated(*marker, p)}
	if view.Head() > p.Head { // the agent went on while the summary was written
		var appended int
		var err error
		if summary, appended, err = b.whole.LookAhead(ctx, *marker, summary); err != nil {
			return "", err
		}
		b.notes.LookAhead = &appended
	}
	text := conversation.SummaryText(view, b.whole, *marker, draft, summary)
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(req.Ref), contract.ArtifactSummary, []byte(text))
	marker.Summary, marker.SummaryTokens, marker.Draft = artifact.SHA256, pipeline.EstimateText(text), draft.JSON()
	return text, err
}

// take applies the marker, or parks it when it is not due or a reply is being generated.
func (a *Activities) take(ctx context.Context, req contract.ReassembleRequest, marker markers.NewMarker,
	facts runs.Facts,
	result contract.ReassembleResult, due bool,
) (contract.ReassembleResult, error) {
	write := a.Store.Markers.Prepare
	if due {
		write = a.Store.Markers.Apply
	}
	m, err := write(ctx, runOf(req.Ref), marker, facts)
	if due && store.ConflictReasonOf(err) == store.ConflictReplyOpen {
		result.Reason = "a reply is being generated: it takes effect after it"
		m, err = a.Store.Markers.Prepare(ctx, runOf(req.Ref), marker, facts)
	}
	if err != nil {
		return conflict(result, err)
	}
	result.Outcome, result.Marker = precis.OutcomePrepared, m.ID
	if m.Status != runs.MarkerApplied {
		return result, nil
	}
	result.Outcome, result.Reason = precis.OutcomeApplied, ""
	return result, a.Store.Breakers.Reset(ctx, breakers.OfConversation(conversationOf(req.Ref)))
}

// conflict turns a conflict into a result, for the ladder, and returns any other error unchanged.
func conflict(result contract.ReassembleResult, err error) (contract.ReassembleResult, error) {
	if store.ConflictReasonOf(err) == "" {
		return result, err
	}
	result.Outcome, result.Kind, result.Reason = "", pipeline.Conflict, shorten(messageOf(err))
	return result, nil
}

// keepContext stores the context as it is written for the model, for audit: one message a line.
func (a *Activities) keepContext(ctx context.Context, req contract.ReassembleRequest, view conversation.View,
	c pipeline.Context,
) (string, error) {
	written, err := conversation.EncodeContext(view, c)
	if err != nil {
		return "", err
	}
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(req.Ref), contract.ArtifactContext, written)
	return artifact.SHA256, err
}

func setChain(m *markers.NewMarker, chain string) error {
	raw, err := hex.DecodeString(chain)
	if err != nil || len(raw) != len(m.CoveredChain) {
		return pipeline.Errorf(pipeline.Internal, "the plan holds no chain hash")
	}
	copy(m.CoveredChain[:], raw)
	return nil
}

func scaled(tokens int, calibration float64) int {
	if calibration <= 0 {
		return tokens
	}
	return int(float64(tokens) * calibration)
}

// repeated counts the messages that are summarized and follow verbatim as well.
func repeated(m markers.NewMarker, p plan) int {
	summarized := map[int64]bool{}
	for _, s := range p.Summarize {
		summarized[s] = true
	}
	n := 0
	for _, s := range m.Carried {
		if summarized[s] {
			n++
		}
	}
	return n
}
