package service

import (
	"context"
	"encoding/json"
	"errors"

	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/internal/store/markers"
	"precis/internal/store/triggers"
	"precis/internal/telemetry"
	"precis/pipeline"
)

// follow does what a trigger check has left for after its transaction. It applies the prepared summary that is due, and
// checks the conversation once more, because the messages after that summary may be too many on their own. A failure
// here does not affect the change: the next append or reply catches up, as it does after a crash.
func (s *Service) follow(ctx context.Context, ref store.ConversationRef, tc *triggerCheck,
	w triggers.Result,
) (*wire.Run, triggers.Result) {
	if tc.apply == nil {
		return nil, w
	}
	run, err := s.applyPrepared(ctx, ref, tc.apply.ID)
	if err != nil {
		s.Log.Warn("a prepared summary was not applied yet", "conversation", ref.String(), "marker", tc.apply.ID,
			"error", err)
		tc.decision.ApplyPrepared = false
		return nil, w
	}
	reason := tc.decision.Reason
	_, again, err := s.Store.Triggers.Check(ctx, ref, tc.evaluate)
	if err != nil {
		s.Log.Warn("the trigger was not evaluated after a prepared summary was applied", "conversation", ref.String(),
			"error", err)
		return run, w
	}
	tc.decision.ApplyPrepared = false // if there is another prepared summary, the next check applies it
	if run != nil && !tc.decision.Fired {
		tc.decision.ApplyPrepared, tc.decision.Reason = true, reason
	}
	if again.Run != nil {
		w = again
	}
	return run, w
}

// applyPrepared applies the prepared summary and returns its run. The summary is rendered now, because whether the
// agent is working, and what it has used since, were not known when the summary was written. A summary that would not
// make the context smaller is discarded. The run is nil if the summary was not applied, also because a reply has
// begun or the summary is no longer prepared.
func (s *Service) applyPrepared(ctx context.Context, ref store.ConversationRef, id string) (*wire.Run, error) {
	view, err := s.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	if view.Prepared == nil || view.Prepared.ID != id {
		return nil, nil
	}
	how, err := s.application(ctx, ref, view, *view.Prepared)
	if err != nil {
		return nil, err
	}
	if how == nil {
		err := s.Store.Markers.DiscardPrepared(ctx, ref, "it would not make the context smaller any more")
		return nil, err
	}
	m, already, err := s.Store.Markers.ApplyPrepared(ctx, ref, id, *how)
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrReplyOpen):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := s.Store.Breakers.Reset(ctx, breakers.OfConversation(ref)); err != nil {
		return nil, err
	}
	found, err := s.Store.Runs.Get(ctx, store.RunRef{Tenant: ref.Tenant, ID: m.Run})
	if err != nil {
		return nil, err
	}
	if !already {
		s.Metrics.RunEnded(ctx, telemetry.RunEnd{
			Outcome: string(found.Outcome), Stage: string(contract.StageReassemble),
			Summarizer: found.Facts.Summarizer, Trigger: string(found.Kind), TokensBefore: found.Facts.TokensBefore,
			TokensAfter: found.Facts.TokensAfter,
		})
	}
	run := runreport.Of(found)
	run.Steps = nil
	return &run, nil
}

// application returns what to store when a prepared marker takes effect, nil if it would not make the context smaller.
func (s *Service) application(ctx context.Context, ref store.ConversationRef, view conversation.View,
	m markers.Marker,
) (*markers.Application, error) {
	whole := view
	// the marker may replace the digest: use the messages that the digest covers
	if view.Marker != nil && view.Marker.Digest {
		var err error
		if whole, err = conversation.LoadBeneathDigest(ctx, s.Store, ref, s.installation(), 0); err != nil {
			return nil, err
		}
	}
	var how markers.Application
	var text string
	numbers := map[string]any{}
	draft, ok, err := conversation.DraftOf(m)
	if err != nil {
		return nil, err
	}
	marker := m.NewMarker
	if ok {
		raw, err := s.Store.Artifacts.Get(ctx, ref.Tenant, draft.Summary)
		if err != nil {
			return nil, err
		}
		summary, appended, err := whole.LookAhead(ctx, marker, string(raw))
		if err != nil {
			return nil, err
		}
		text = conversation.SummaryText(view, whole, marker, draft, summary)
		artifact, err := s.Store.Artifacts.Put(ctx, ref, contract.ArtifactSummary, []byte(text))
		if err != nil {
			return nil, err
		}
		how.Summary, how.SummaryTokens = artifact.SHA256, pipeline.EstimateText(text)
		marker.Summary, marker.SummaryTokens = how.Summary, how.SummaryTokens
		numbers["look_ahead"] = appended
	} else if m.Summary != "" {
		raw, err := s.Store.Artifacts.Get(ctx, ref.Tenant, m.Summary)
		if err != nil {
			return nil, err
		}
		text = string(raw)
	}
	before, err := view.Context(ctx)
	if err != nil {
		return nil, err
	}
	decision := pipeline.EvaluateTrigger(view.TriggerInput(before), view.Settings.Settings)
	var native []byte
	if marker.Native != "" {
		if native, err = s.Store.Artifacts.Get(ctx, ref.Tenant, marker.Native); err != nil {
			return nil, err
		}
	}
	then, err := whole.After(marker, text).WithNative(native).Context(ctx)
	if err != nil {
		return nil, err
	}
	replaces := view.Marker != nil && view.Marker.Digest && !m.Digest
	if then.Stats.Tokens >= before.Stats.Tokens && !replaces {
		return nil, nil
	}
	if err := s.record(ctx, store.RunRef{Tenant: ref.Tenant, ID: m.Run}, view, then, &how, numbers); err != nil {
		return nil, err
	}
	how.TokensBefore = decision.Used
	how.TokensAfter = decision.Real(then.Stats.Tokens + view.Overhead())
	return &how, nil
}

// record stores the context that a prepared marker leads to and its snapshot, as a run does for a marker that takes
// effect at once.
func (s *Service) record(ctx context.Context, run store.RunRef, view conversation.View, then pipeline.Context,
	how *markers.Application, numbers map[string]any,
) error {
	written, err := conversation.EncodeContext(view, then)
	if err != nil {
		return err
	}
	artifact, err := s.Store.Artifacts.Put(ctx, view.Conversation.Ref, contract.ArtifactContext, written)
	if err != nil {
		return err
	}
	refs, err := conversation.KeepState(ctx, s.Store, run, view)
	if err != nil {
		return err
	}
	how.Context, how.Snapshot = artifact.SHA256, refs[contract.ArtifactSnapshot]
	how.Numbers, err = json.Marshal(numbers)
	return err
}
