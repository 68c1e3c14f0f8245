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

// rebuild makes a run's summary message and its context again: from the messages, the marker, the state and the
// settings as they were, and compares them byte for byte with what was recorded.
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
		gone := "the conversation's content was removed"
		return Check{Name: CheckSummary, State: Pruned, Detail: gone},
			Check{Name: CheckContext, State: Pruned, Detail: gone}, nil
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

// stateOf is what the conversation was beside its messages when the run's context was built.
func stateOf(ctx context.Context, s *store.Store, run runs.Run) (contexts.Snapshot, error) {
	if run.Facts.Snapshot == "" {
		return contexts.Snapshot{}, fmt.Errorf("the run's record does not say what its context was built from: %w",
			store.ErrNotFound)
	}
	return s.Contexts.Snapshot(ctx, run.Ref.Tenant, run.Facts.Snapshot)
}

// viewAt is the conversation as it was, with what counted then.
func viewAt(ctx context.Context, s *store.Store, run runs.Run, state contexts.Snapshot,
	o contexts.Options,
) (conversation.View, error) {
	state.Prepared = "" // what waited then is in no context
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
	// A summary names the conversation, by the id that it had when it was written.
	from, at, err := s.Exports.Origin(ctx, live.Conversation.Ref)
	if err == nil && from != nil && run.Created.Before(at) {
		v.Conversation.Ref.ID = from.IDAt(run.Created)
	}
	return v, err
}

// checkContext builds the context that the marker led to and compares it with the recorded one.
func checkContext(ctx context.Context, s *store.Store, run runs.Run, m markers.Marker,
	state contexts.Snapshot,
) (Check, error) {
	recorded, err := s.Artifacts.Get(ctx, run.Ref.Tenant, run.Facts.Context)
	if err != nil {
		return Check{}, err
	}
	state.ActiveMarker = m.ID // what the model saw from then on
	view, err := viewAt(ctx, s, run, state, contexts.Options{})
	if err != nil {
		return Check{}, err
	}
	built, err := conversation.EncodeContext(view, view.Context())
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

// firstDifference says where two contexts part, without their text.
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

// differsAt is the first byte in which two texts differ, -1: they are the same.
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

// checkSummary compares the marker's summary with the one that the run's summary step wrote: by the reference, and by
// writing the message around it once more.
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
	if run.ReplayOf != "" { // it stands in the place of the original's summary, on a plan made for that
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

// summaryStep is the last step that wrote a summary, and what it wrote.
func summaryStep(run runs.Run) (call int, sha string) {
	for _, s := range run.Attempts {
		if s.Stage == contract.StageSummarize && s.Artifacts[contract.ArtifactSummary] != "" && s.ErrorKind == "" {
			call, sha = s.Call, s.Artifacts[contract.ArtifactSummary]
		}
	}
	return call, sha
}

// messageAround writes the summary message around a summary, as reassembling does.
func messageAround(ctx context.Context, s *store.Store, run runs.Run, m markers.Marker, state contexts.Snapshot,
	draft conversation.Draft, summary string,
) (string, error) {
	state.ActiveMarker = m.Base // under whatever id it has here
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
		summary, _ = whole.LookAhead(m.NewMarker, summary)
	}
	return conversation.SummaryText(view, whole, m.NewMarker, draft, summary), nil
}

// applied says that the run's summary waited, and took effect later in the words of that moment.
func applied(run runs.Run) bool {
	var n struct {
		LookAhead *int `json:"look_ahead"`
	}
	return json.Unmarshal(run.Facts.Numbers, &n) == nil && n.LookAhead != nil
}

// plan is what of a run's plan is needed here.
type plan struct {
	Head          int64 `json:"head"`
	BeneathDigest bool  `json:"beneath_digest"`
}

// planOf reads the run's last plan.
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
