package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/evidence"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/version"
)

// rebuild builds a run's summary message and context from the messages, marker, live state and settings of that time,
// and compares them byte for byte to the recorded ones.
func rebuild(ctx context.Context, s *store.Store, run runs.Run) (summary, rebuilt Check, err error) {
	none := func(why string) (Check, Check, error) {
		return Check{Name: CheckSummary, State: OK, Detail: why}, Check{Name: CheckContext, State: OK, Detail: why}, nil
	}
	switch {
	case run.Outcome == "":
		return none("the run goes on: nothing to compare yet")
	case run.Marker == "" || run.Facts.Context == "":
		return none("the run wrote no context")
	}
	c, err := s.Conversations.Get(ctx, store.ConversationRef{Tenant: run.Ref.Tenant, ID: run.Conversation})
	if err != nil {
		return summary, rebuilt, err
	}
	if !c.ContentDeleted.IsZero() {
		removed := "the conversation's content was removed"
		return Check{Name: CheckSummary, State: Pruned, Detail: removed},
			Check{Name: CheckContext, State: Pruned, Detail: removed}, nil
	}
	m, err := s.Markers.Get(ctx, c.Ref, run.Marker)
	if err != nil {
		return summary, rebuilt, err
	}
	state, err := stateOf(ctx, s, run)
	if err != nil {
		if summary, err = lost(CheckSummary, err); err != nil {
			return summary, rebuilt, err
		}
		rebuilt = summary
		rebuilt.Name = CheckContext
		return summary, rebuilt, nil
	}
	if summary, err = checkSummary(ctx, s, run, m, state); err != nil {
		if summary, err = lost(CheckSummary, err); err != nil {
			return summary, rebuilt, err
		}
	}
	if rebuilt, err = checkContext(ctx, s, run, m, state); err != nil {
		rebuilt, err = lost(CheckContext, err)
	}
	return summary, rebuilt, err
}

// stateOf returns the snapshot of the conversation that the run's context was built from.
func stateOf(ctx context.Context, s *store.Store, run runs.Run) (contexts.Snapshot, error) {
	if run.Facts.Snapshot == "" {
		return contexts.Snapshot{}, fmt.Errorf("the run's record does not say what its context was built from: %w",
			store.ErrNotFound)
	}
	return s.Contexts.Snapshot(ctx, run.Ref.Tenant, run.Facts.Snapshot)
}

// viewAt returns the conversation as it was at the time of the snapshot.
func viewAt(ctx context.Context, s *store.Store, run runs.Run, state contexts.Snapshot,
	o contexts.Options,
) (conversation.View, error) {
	state.Prepared = "" // a prepared summary is not in the context
	live, err := s.Contexts.At(ctx, store.ConversationRef{Tenant: run.Ref.Tenant, ID: run.Conversation}, state, o)
	if err != nil {
		return conversation.View{}, err
	}
	for _, list := range [...][]conversations.Message{live.Carried, live.Tail} {
		for _, m := range list {
			if !m.Pruned.IsZero() {
				return conversation.View{}, fmt.Errorf("message %d: %w", m.Seq, store.ErrPruned)
			}
		}
	}
	v, err := conversation.NewView(live, conversation.Installation{Settings: config.DefaultSettings()})
	if err != nil {
		return v, err
	}
	v.Settings, err = conversation.Overlay(config.DefaultSettings(), state.Settings)
	v.Conversation.Window = state.Window
	if err != nil {
		return v, err
	}
	// A summary has the id of the conversation, which an import may have changed since.
	from, at, err := s.Exports.Origin(ctx, live.Conversation.Ref)
	if err == nil && from != nil && run.Created.Before(at) {
		v.Conversation.Ref.ID = from.IDAt(run.Created)
	}
	return v, err
}

// checkContext builds the context that the marker led to and compares it to the recorded one.
func checkContext(ctx context.Context, s *store.Store, run runs.Run, m markers.Marker,
	state contexts.Snapshot,
) (Check, error) {
	recorded, err := s.Artifacts.Get(ctx, run.Ref.Tenant, run.Facts.Context)
	if err != nil {
		return Check{}, err
	}
	state.ActiveMarker = m.ID // the context after the marker was applied
	view, err := viewAt(ctx, s, run, state, contexts.Options{})
	if err != nil {
		return Check{}, err
	}
	current, err := view.Context(ctx)
	if err != nil {
		return Check{}, err
	}
	built, err := conversation.EncodeContext(view, current)
	if err != nil {
		return Check{}, err
	}
	c := Check{Name: CheckContext, State: OK, Findings: evidence.Findings{Checked: 1}}
	was, is := bytes.Split(recorded, []byte("\n")), bytes.Split(built, []byte("\n"))
	if bytes.Equal(recorded, built) {
		c.Detail = fmt.Sprintf(
			"built again from what it was made from: the same %d bytes in %d messages, byte for byte", len(recorded),
			len(was))
		return c, nil
	}
	c.State = Differs
	c.Detail = fmt.Sprintf("built again it differs from what was recorded, first %s; %s wrote it, this is version %s",
		firstDifference(was, is), writtenBy(run), version.Code())
	return c, nil
}

// firstDifference describes where two contexts first differ, without their text.
func firstDifference(was, is [][]byte) string {
	for i := range was {
		if i >= len(is) {
			return fmt.Sprintf("at message %d: %d were recorded, and %d are built", i+1, len(was), len(is))
		}
		if at := differsAt(was[i], is[i]); at >= 0 {
			return fmt.Sprintf("in message %d at byte %d", i+1, at+1)
		}
	}
	return fmt.Sprintf("at message %d: %d were recorded, and %d are built", len(was)+1, len(was), len(is))
}

// differsAt returns the index of the first byte that differs, -1 if a and b are equal.
func differsAt(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

// checkSummary compares the marker's summary to the one that the run's summarize stage wrote, by its hash and by
// rendering the summary message from it.
func checkSummary(ctx context.Context, s *store.Store, run runs.Run, m markers.Marker,
	state contexts.Snapshot,
) (Check, error) {
	c := Check{Name: CheckSummary, State: OK, Findings: evidence.Findings{Checked: 1}}
	draft, ok, err := conversation.DraftOf(m)
	if err != nil || !ok {
		c.Detail = "the marker took over the summary of the one before it"
		return c, err
	}
	if step, sha := summaryStep(run); sha != draft.Summary {
		c.Findings.Add(evidence.Finding{
			State: evidence.Tampered, Table: "markers", Key: m.ID, Column: "draft",
			Detail: fmt.Sprintf("its summary is %s, and step %d of the run wrote %s", short(draft.Summary), step,
				short(sha)),
		})
		return conclude(CheckSummary, c.Findings, ""), nil
	}
	recorded, err := s.Artifacts.Get(ctx, run.Ref.Tenant, m.Summary)
	if err != nil {
		return c, err
	}
	written, err := s.Artifacts.Get(ctx, run.Ref.Tenant, draft.Summary)
	if err != nil {
		return c, err
	}
	if run.ReplayOf != "" { // it replaces the original's summary, with a plan made for that
		c.Detail = "the marker refers to the summary that the run's last summary step wrote"
		return c, nil
	}
	text, err := messageAround(ctx, s, run, m, state, draft, string(written))
	if err != nil {
		return c, err
	}
	if text == string(recorded) {
		c.Detail = "the marker's summary is the one that the run's last summary step wrote, byte for byte"
		return c, nil
	}
	c.State = Differs
	c.Detail = fmt.Sprintf(
		"written again from the summary step's text, the message differs at byte %d; %s wrote it, this is version %s",
		differsAt(recorded, []byte(text))+1, writtenBy(run), version.Code())
	return c, nil
}

// summaryStep returns the last call of a run that wrote a summary, and the hash of that summary.
func summaryStep(run runs.Run) (call int, sha string) {
	for _, s := range run.Attempts {
		if s.Stage == contract.StageSummarize && s.Artifacts[contract.ArtifactSummary] != "" && s.ErrorKind == "" {
			call, sha = s.Call, s.Artifacts[contract.ArtifactSummary]
		}
	}
	return call, sha
}

// messageAround renders the summary message of a summary, as the reassemble stage does.
func messageAround(ctx context.Context, s *store.Store, run runs.Run, m markers.Marker, state contexts.Snapshot,
	draft conversation.Draft, summary string,
) (string, error) {
	state.ActiveMarker = m.Base // its id may differ after an import
	view, err := viewAt(ctx, s, run, state, contexts.Options{})
	if err != nil {
		return "", err
	}
	p, err := planOf(ctx, s, run)
	if err != nil {
		return "", err
	}
	whole := view
	if p.BeneathDigest || run.Prepare && view.Marker != nil && view.Marker.Digest {
		if whole, err = viewAt(ctx, s, run, state, contexts.Options{BeneathDigest: true}); err != nil {
			return "", err
		}
	}
	if view.Head() > p.Head || applied(run) {
		if summary, _, err = whole.LookAhead(ctx, m.NewMarker, summary); err != nil {
			return "", err
		}
	}
	return conversation.SummaryText(view, whole, m.NewMarker, draft, summary), nil
}

// applied reports whether the run's summary was prepared and rendered later, when it took effect.
func applied(run runs.Run) bool {
	var n struct {
		LookAhead *int `json:"look_ahead"`
	}
	return json.Unmarshal(run.Facts.Numbers, &n) == nil && n.LookAhead != nil
}

// plan has the fields of a run's plan that are needed to rebuild its summary.
type plan struct {
	Head          int64 `json:"head"`
	BeneathDigest bool  `json:"beneath_digest"`
}

// planOf returns the run's last plan.
func planOf(ctx context.Context, s *store.Store, run runs.Run) (plan, error) {
	var p plan
	sha := ""
	for _, step := range run.Attempts {
		if step.Artifacts[contract.ArtifactPlan] != "" {
			sha = step.Artifacts[contract.ArtifactPlan]
		}
	}
	if sha == "" {
		return p, fmt.Errorf("the run's plan: %w", store.ErrNotFound)
	}
	data, err := s.Artifacts.Get(ctx, run.Ref.Tenant, sha)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, errors.Join(store.ErrDamaged, err)
	}
	return p, nil
}
