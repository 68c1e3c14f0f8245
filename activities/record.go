package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"precis/internal/conversation"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/pipeline"
)

// A replay from the record does what the stages do, with what the original run knew: the conversation as each of its
// steps saw it, what it learned from outside of the conversation, and what the models answered. All of that is noted
// with each step of every run, in the hands of the three functions here: load, given and ask.

// record is what the run that is repeated has of the step under way.
type record struct {
	original store.Run
	stage    Stage
	call     int
	// step is the last attempt that the original made at it, nil: it took another step.
	step *store.Step
	// kept is what its attempt left, nil: nothing, it failed.
	kept *kept
}

// errNotRecorded says that a run lacks something which runs are recorded with today.
func errNotRecorded(r store.Run, what string) error {
	return &divergedError{fmt.Sprintf("run %s cannot be repeated: its record does not hold %s", r.Ref.ID, what)}
}

// gone says what a missing part of a record means.
func gone(r store.Run, what string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return &divergedError{fmt.Sprintf("run %s cannot be repeated: %s was pruned or deleted", r.Ref.ID, what)}
	}
	return err
}

// open reads the run that a step is of, and for a replay what it needs of the original.
func (a *Activities) open(ctx context.Context, stage Stage, ref Ref) (store.Run, error) {
	notes := notesOf(ctx)
	run := notes.run
	if run == nil {
		found, err := a.Store.GetRun(ctx, ref.run())
		if err != nil {
			return found, err
		}
		run = &found
	}
	if run.ReplayOf == "" {
		return *run, nil
	}
	original, err := a.Store.GetRun(ctx, store.RunRef{Tenant: ref.Tenant, ID: run.ReplayOf})
	if err != nil {
		return *run, err
	}
	notes.original = &original
	if run.Replay.Live {
		return *run, nil
	}
	notes.record, err = a.recordOf(ctx, original, stage, ref.Call)
	return *run, err
}

// recordOf looks for the step of a run that has the number and the stage.
func (a *Activities) recordOf(ctx context.Context, original store.Run, stage Stage, call int) (*record, error) {
	rec := &record{original: original, stage: stage, call: call, step: lastAttempt(original, stage, call)}
	data, err := a.Store.StageResult(ctx, original.Ref, string(stage), call)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return rec, nil
	case err != nil:
		return nil, err
	}
	rec.kept = &kept{}
	if err := json.Unmarshal(data, rec.kept); err != nil {
		return nil, fmt.Errorf("read the kept result of stage %s of run %s: %w", stage, original.Ref.ID, err)
	}
	return rec, nil
}

// lastAttempt is the last attempt of a run at a call, nil when it made none.
func lastAttempt(r store.Run, stage Stage, call int) *store.Step {
	for i := len(r.Steps) - 1; i >= 0; i-- {
		if s := r.Steps[i]; s.Call == call && s.Stage == string(stage) {
			return &s
		}
	}
	return nil
}

// artifact is the reference that the original noted for the step, "": none.
func (r *record) artifact(role string) string {
	if r.kept != nil && r.kept.Artifacts[role] != "" {
		return r.kept.Artifacts[role]
	}
	if r.step != nil {
		return r.step.Artifacts[role]
	}
	return ""
}

// given is what the original learned from outside under a name.
func (r *record) given(name string) (json.RawMessage, bool) {
	var noted struct {
		Given map[string]json.RawMessage `json:"given"`
	}
	for _, raw := range r.numbers() {
		if json.Unmarshal(raw, &noted) == nil && noted.Given[name] != nil {
			return noted.Given[name], true
		}
	}
	return nil, false
}

func (r *record) numbers() []json.RawMessage {
	var all []json.RawMessage
	if r.kept != nil {
		all = append(all, r.kept.Numbers)
	}
	if r.step != nil {
		all = append(all, r.step.Numbers)
	}
	return all
}

// endsHere says that the original was cancelled before this step could end.
func (r *record) endsHere() bool {
	if r.original.Outcome != store.OutcomeCancelled || r.kept != nil {
		return false
	}
	return !slices.ContainsFunc(r.original.Steps, func(s store.Step) bool {
		later := s.Call > r.call || s.Call == r.call && s.Stage != string(r.stage)
		return later && s.Stage != string(StageFinish)
	})
}

// given is what a stage has to know from outside of the conversation: of the configuration, the clock, the state of
// vendors and budgets. It is noted with the step, and a replay from the record takes it from there.
func given[T any](ctx context.Context, name string, ask func() (T, error)) (T, error) {
	notes := notesOf(ctx)
	var value T
	if notes.record != nil {
		raw, ok := notes.record.given(name)
		if !ok {
			return value, errNotRecorded(notes.record.original, name)
		}
		if err := json.Unmarshal(raw, &value); err != nil {
			return value, fmt.Errorf("read what run %s noted as %s: %w", notes.record.original.Ref.ID, name, err)
		}
		notes.give(name, value)
		return value, nil
	}
	value, err := ask()
	if err == nil {
		notes.give(name, value)
	}
	return value, err
}

// load reads the run's conversation up to a message, 0: up to its head, with the settings that counted when the run was
// asked for; beneath looks through an active digest to the messages that it covers. One stage sees one state of it. A
// replay sees what the original saw: one from the record what the same step saw, a live one what its first did.
func (a *Activities) load(ctx context.Context, ref Ref, run store.Run, upTo int64,
	beneath bool,
) (conversation.View, error) {
	notes := notesOf(ctx)
	switch {
	case notes.record != nil:
		return a.loadState(ctx, ref, run, notes.record.artifact(store.RoleState), beneath)
	case run.Replay.Live:
		return a.loadState(ctx, ref, run, notes.original.FirstState(), beneath)
	}
	return a.loadNow(ctx, ref, run, store.LiveOptions{UpTo: upTo, BeneathDigest: beneath})
}

// loadNow reads the conversation as it stands, and keeps its state for the record.
func (a *Activities) loadNow(ctx context.Context, ref Ref, run store.Run,
	o store.LiveOptions,
) (conversation.View, error) {
	live, err := a.Store.LiveView(ctx, ref.conversation(), o)
	if err != nil {
		return conversation.View{}, err
	}
	v, err := a.viewOf(live, run.Settings)
	if e := a.keepState(ctx, ref, v); e != nil {
		return v, e
	}
	return v, err
}

// viewOf makes a view with the given settings, if there are any.
func (a *Activities) viewOf(live store.LiveView, settings json.RawMessage) (conversation.View, error) {
	v, err := conversation.NewView(live, a.installation)
	if len(settings) == 0 || err != nil {
		return v, err
	}
	v.Settings, err = conversation.Overlay(pipeline.DefaultSettings(), settings)
	return v, err
}

// whole is what a plan works on, as a view shows it: where the plan replaces a digest, the messages beneath.
func (a *Activities) whole(ctx context.Context, ref Ref, run store.Run, view conversation.View,
	beneath bool,
) (conversation.View, error) {
	if !beneath {
		return view, nil
	}
	if notesOf(ctx).record != nil || run.Replay.Live && !run.Replay.Apply {
		return a.load(ctx, ref, run, 0, true)
	}
	return a.from(ctx, ref, run, view, view.Conversation.ActiveMarker, true)
}

// from is a view of the same moment that starts from another marker.
func (a *Activities) from(ctx context.Context, ref Ref, run store.Run, view conversation.View, marker string,
	beneath bool,
) (conversation.View, error) {
	live, err := a.Store.LiveView(ctx, ref.conversation(),
		store.LiveOptions{From: &marker, UpTo: view.Head(), BeneathDigest: beneath})
	if err != nil {
		return conversation.View{}, err
	}
	live.Conversation, live.TurnStart, live.Enrichments = view.LiveView.Conversation, view.TurnStart,
		view.LiveView.Enrichments
	v, err := conversation.NewView(live, a.installation)
	v.Settings = view.Settings // one moment, one run
	return v, err
}

// keepState keeps the state that a stage works on, once a run while it does not change.
func (a *Activities) keepState(ctx context.Context, ref Ref, v conversation.View) error {
	refs, err := conversation.KeepState(ctx, a.Store, ref.run(), v)
	if err != nil {
		return err
	}
	for role, sha := range refs {
		notesOf(ctx).artifact(role, sha)
	}
	return nil
}

// loadState makes the view again that a state was kept of.
func (a *Activities) loadState(ctx context.Context, ref Ref, run store.Run, sha string,
	beneath bool,
) (conversation.View, error) {
	original := *notesOf(ctx).original
	if sha == "" {
		return conversation.View{}, errNotRecorded(original, "what the conversation was then")
	}
	state, err := a.Store.GetState(ctx, ref.Tenant, sha)
	if err != nil {
		return conversation.View{}, gone(original, "what the conversation was then", err)
	}
	live, err := a.Store.LiveViewAt(ctx, ref.conversation(), state, store.LiveOptions{BeneathDigest: beneath})
	if err != nil {
		return conversation.View{}, gone(original, "a part of the conversation", err)
	}
	notesOf(ctx).artifact(store.RoleState, sha)
	settings := run.Settings
	if len(settings) == 0 {
		settings = state.Settings
	}
	v, err := a.viewOf(live, settings)
	v.Conversation.Window = state.Window
	return v, err
}

// difference notes where a step of a replay parts from the record. The first of a step is what its record shows.
func (n *stepNotes) difference(d runreport.Difference) { n.differences = append(n.differences, d) }
