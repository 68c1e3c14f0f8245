package activities

import (
	"context"
	"encoding/json"

	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store/contexts"
)

// load reads the run's conversation up to a message, 0: up to its head, with the settings that counted when the run was
// requested; beneath looks through an active digest to the messages that it covers. One stage sees one state of it. A
// replay sees what the original saw: one from the record what the same call saw, a live one what its first did.
func (a *Activities) load(ctx context.Context, at *attempt, upTo int64, beneath bool) (conversation.View, error) {
	switch {
	case at.record != nil:
		return a.loadState(ctx, at, at.record.artifact(contract.ArtifactSnapshot), beneath)
	case at.run.Replay.Live:
		return a.loadState(ctx, at, at.original.FirstState(), beneath)
	}
	return a.loadNow(ctx, at, contexts.Options{UpTo: upTo, BeneathDigest: beneath})
}

// loadNow reads the conversation as it is now, and stores its snapshot for the record.
func (a *Activities) loadNow(ctx context.Context, at *attempt, o contexts.Options) (conversation.View, error) {
	live, err := a.Store.Contexts.Read(ctx, conversationOf(at.ref), o)
	if err != nil {
		return conversation.View{}, err
	}
	if err := a.takeTurn(ctx, at, live); err != nil {
		return conversation.View{}, err
	}
	v, err := a.viewOf(live, at.run.Settings)
	refs, keepErr := conversation.KeepState(ctx, a.Store, runOf(at.ref), v)
	if keepErr != nil {
		return v, keepErr
	}
	for role, sha := range refs {
		at.artifact(role, sha)
	}
	return v, err
}

// loadState makes the view again that a snapshot was stored of.
func (a *Activities) loadState(ctx context.Context, at *attempt, sha string, beneath bool) (conversation.View, error) {
	original := *at.original
	if sha == "" {
		return conversation.View{}, errNotRecorded(original, "what the conversation was then")
	}
	state, err := a.Store.Contexts.Snapshot(ctx, at.ref.Tenant, sha)
	if err != nil {
		return conversation.View{}, errPruned(original, "what the conversation was then", err)
	}
	live, err := a.Store.Contexts.At(ctx, conversationOf(at.ref), state, contexts.Options{BeneathDigest: beneath})
	if err != nil {
		return conversation.View{}, errPruned(original, "a part of the conversation", err)
	}
	if err := a.takeTurn(ctx, at, live); err != nil {
		return conversation.View{}, err
	}
	at.artifact(contract.ArtifactSnapshot, sha)
	settings := at.run.Settings
	if len(settings) == 0 {
		settings = state.Settings
	}
	v, err := a.viewOf(live, settings)
	v.Conversation.Window = state.Window
	return v, err
}

// viewOf makes a view with the given settings, if there are any.
func (a *Activities) viewOf(live contexts.Source, settings json.RawMessage) (conversation.View, error) {
	v, err := conversation.NewView(live, a.installation)
	if len(settings) == 0 || err != nil {
		return v, err
	}
	v.Settings, err = conversation.Overlay(config.DefaultSettings(), settings)
	return v, err
}

// whole returns what a plan works on, in the form of a view: where the plan replaces a digest, the messages beneath.
func (a *Activities) whole(ctx context.Context, at *attempt, view conversation.View, beneath bool) (
	conversation.View, error,
) {
	if !beneath {
		return view, nil
	}
	if at.record != nil || at.run.Replay.Live && !at.run.Replay.Apply {
		return a.load(ctx, at, 0, true)
	}
	return a.from(ctx, at, view, view.Conversation.ActiveMarker, true)
}

// from returns a view of the same moment that starts from another marker.
func (a *Activities) from(ctx context.Context, at *attempt, view conversation.View, marker string, beneath bool) (
	conversation.View, error,
) {
	live, err := a.Store.Contexts.Read(ctx, conversationOf(at.ref),
		contexts.Options{From: &marker, UpTo: view.Head(), BeneathDigest: beneath})
	if err != nil {
		return conversation.View{}, err
	}
	if err := a.takeTurn(ctx, at, live); err != nil {
		return conversation.View{}, err
	}
	live.Conversation, live.TurnStart = view.Source.Conversation, view.TurnStart
	live.Enrichments = view.Source.Enrichments
	v, err := conversation.NewView(live, a.installation)
	v.Settings = view.Settings // one moment, one run
	return v, err
}
