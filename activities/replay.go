package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// finishReplay compares a replay with the run that it repeats, keeps what it found and closes it. One that took effect
// is closed already. A conversation's timeline, its breaker and the metrics of its runs hear of none that did not.
func (a *Activities) finishReplay(ctx context.Context, at *attempt,
	req contract.FinishRequest,
) (contract.FinishResult, error) {
	run, original := *at.run, *at.original
	end := runs.End{
		Outcome: precis.Outcome(req.Outcome), ErrorKind: req.Kind, Reason: shorten(req.Reason),
		Facts: runs.Facts{Summarizer: req.Summarizer},
	}
	var found wire.RunComparison
	var identical *bool
	var err error
	if req.Kind == contract.KindDiverged { // no one else knows the kind
		end.ErrorKind = pipeline.BadRequest
	}
	if rec := at.record; rec == nil {
		found, err = a.compareLive(ctx, original, run, end)
	} else if found, err = a.compareRecorded(ctx, req, rec, run); found.First != nil || found.Identical {
		// However the original ended, this one has come to its end.
		identical, end = &found.Identical, runs.End{Outcome: precis.OutcomeReplayed}
	}
	if err != nil {
		return contract.FinishResult{}, err
	}
	data, err := json.Marshal(found)
	if err != nil {
		return contract.FinishResult{}, fmt.Errorf("encode the comparison: %w", err)
	}
	switch err := a.Store.Replays.KeepComparison(ctx, runOf(req.Ref), data, identical); {
	case errors.Is(err, store.ErrContentDeleted): // nothing is left to be compared
	case errors.Is(err, store.ErrRunEnded): // an earlier attempt kept it
	case err != nil:
		return contract.FinishResult{}, err
	}
	ended := run
	if run.Outcome == "" { // one whose marker took effect has ended with that
		if ended, err = a.Store.Runs.Finish(ctx, runOf(req.Ref), end); err != nil {
			return contract.FinishResult{}, err
		}
	}
	if run.Outcome == "" && run.Replay.Live {
		a.countRun(ctx, ended, lastStage(run))
	}
	return contract.FinishResult{Outcome: ended.Outcome, Kind: ended.ErrorKind, Reason: ended.Reason}, nil
}

// compareRecorded sums up what the steps found, and compares how the two ended.
func (a *Activities) compareRecorded(ctx context.Context, req contract.FinishRequest, rec *record,
	run runs.Run,
) (wire.RunComparison, error) {
	var c wire.RunComparison
	all, err := a.differencesOf(ctx, run)
	if err != nil {
		return c, err
	}
	stopped := req.Kind == contract.KindDiverged || req.Outcome == precis.OutcomeCancelled &&
		rec.original.Outcome != precis.OutcomeCancelled
	if was, is := endWords(wayEnded(rec.original)),
		endWords(precis.Outcome(req.Outcome), req.Kind, shorten(req.Reason)); was != is && !stopped {
		all = append(all, wire.RunDifference{
			Stage: string(contract.StageFinish), Call: req.Call, What: "outcome", Recorded: was,
			Replayed: is,
		})
	}
	seen := map[int]bool{}
	for _, s := range run.Attempts {
		if s.Stage == contract.StageFinish || seen[s.Call] {
			continue
		}
		seen[s.Call] = true
		c.Steps++
		if s.Artifacts[contract.ArtifactAnswer] != "" {
			c.Answers++
		}
	}
	if sha := run.Facts.Context; sha != "" {
		text, err := a.Store.Artifacts.Get(ctx, req.Tenant, sha)
		if err != nil {
			return c, err
		}
		c.Context = &wire.RunComparedContext{
			Identical: sha == rec.original.Facts.Context, SHA256: sha,
			Bytes: len(text),
		}
	} else if rec.original.Facts.Context != "" {
		c.Context = &wire.RunComparedContext{}
	}
	if c.Differences = len(all); c.Differences > 0 {
		c.First = &all[0]
	}
	c.Identical = c.First == nil && !stopped && (c.Context == nil || c.Context.Identical)
	return c, nil
}

// wayEnded is how a run's way ended. What has become of a summary that it prepared is another matter.
func wayEnded(r runs.Run) (precis.Outcome, pipeline.ErrorKind, string) {
	for i := len(r.Attempts) - 1; i >= 0; i-- {
		s := r.Attempts[i]
		if s.Stage != contract.StageReassemble {
			continue
		}
		var n struct {
			Outcome precis.Outcome     `json:"outcome"`
			Kind    pipeline.ErrorKind `json:"kind"`
			Reason  string             `json:"reason"`
		}
		if json.Unmarshal(s.Numbers, &n) == nil && n.Outcome != "" {
			return n.Outcome, n.Kind, shorten(n.Reason)
		}
		break
	}
	return r.Outcome, r.ErrorKind, r.Reason
}

func endWords(o precis.Outcome, kind pipeline.ErrorKind, reason string) string {
	words := string(o)
	if kind != "" {
		words += " " + string(kind)
	}
	if reason != "" {
		words += ": " + reason
	}
	return words
}

// compareLive puts a live replay beside its original. end is how it ends, unless it has taken effect.
func (a *Activities) compareLive(ctx context.Context, original, run runs.Run,
	end runs.End,
) (wire.RunComparison, error) {
	if run.Outcome == "" {
		run.Outcome, run.ErrorKind, run.Reason = end.Outcome, end.ErrorKind, end.Reason
	}
	c := wire.RunComparison{Live: true, Changes: runreport.ChangesOf(original, run)}
	was, err := a.summaryOf(ctx, original)
	if err != nil {
		return c, err
	}
	is, err := a.summaryOf(ctx, run)
	if err != nil {
		return c, err
	}
	c.Original, c.Replay = runreport.SideOf(original, was), runreport.SideOf(run, is)
	if was == "" || is == "" {
		return c, nil
	}
	source, err := a.compared(ctx, original, run)
	if err != nil {
		return c, err
	}
	facts, err := pipeline.CompareSummaries(ctx, source, was, is)
	if err != nil {
		return c, err
	}
	c.OnlyOriginal, c.OnlyReplay, c.Both = runreport.FactsOf(facts.OnlyA), runreport.FactsOf(facts.OnlyB), facts.Both
	return c, nil
}

// summaryOf is the summary that a run's summarizer wrote and the checks completed, "" when there is none any more.
func (a *Activities) summaryOf(ctx context.Context, run runs.Run) (string, error) {
	for i := len(run.Attempts) - 1; i >= 0; i-- {
		sha := run.Attempts[i].Artifacts[contract.ArtifactSummary]
		if run.Attempts[i].Stage != contract.StageSummarize || sha == "" {
			continue
		}
		text, err := a.Store.Artifacts.Get(ctx, run.Ref.Tenant, sha)
		if errors.Is(err, store.ErrNotFound) {
			return "", nil
		}
		return string(text), err
	}
	return "", nil
}

// compared are the messages that both runs summarized.
func (a *Activities) compared(ctx context.Context, original, run runs.Run) ([]pipeline.Message, error) {
	wanted := map[int64]bool{}
	var p plan
	for _, r := range []runs.Run{original, run} {
		for i := len(r.Attempts) - 1; i >= 0; i-- {
			sha := r.Attempts[i].Artifacts[contract.ArtifactPlan]
			if sha == "" {
				continue
			}
			var err error
			if p, err = a.plan(ctx, r.Ref.Tenant, sha); err != nil {
				return nil, err
			}
			for _, seq := range p.Summarize {
				wanted[seq] = true
			}
			break
		}
	}
	state, err := a.Store.Contexts.Snapshot(ctx, run.Ref.Tenant, original.FirstState())
	if err != nil {
		return nil, err
	}
	ref := store.ConversationRef{Tenant: run.Ref.Tenant, ID: run.Conversation}
	live, err := a.Store.Contexts.At(ctx, ref, state, contexts.Options{BeneathDigest: p.BeneathDigest})
	if err != nil {
		return nil, err
	}
	view, err := conversation.NewView(live, a.installation)
	if err != nil {
		return nil, err
	}
	var source []pipeline.Message
	for _, m := range view.Live() {
		if m.Seq == 0 || wanted[m.Seq] {
			source = append(source, m)
		}
	}
	return source, nil
}
