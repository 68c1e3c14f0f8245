package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/config"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// ReplayRequest says how a run is replayed. Zero fields are those of the original run.
type ReplayRequest struct {
	// Live calls the models. Otherwise their answers are read from the record.
	Live bool `json:"live,omitempty"`
	// Apply applies the summary of a live replay, unless the conversation has changed meanwhile.
	Apply bool `json:"apply,omitempty"`
	// Summarizer is a list such as "self,openai/NAME", Prompt the name of a prompt.
	Summarizer string `json:"summarizer,omitempty"`
	Prompt     string `json:"prompt,omitempty"`
	// MaxChars bounds the summarizer's rendered input, in chars.
	MaxChars int    `json:"max_chars,omitempty"`
	Focus    string `json:"focus,omitempty"`
	// Batch is the batch that the replay belongs to, "" if none.
	Batch string `json:"-"`
}

// Changes reports whether the replay is to differ from the original run.
func (q ReplayRequest) Changes() bool {
	return q.Summarizer != "" || q.Prompt != "" || q.MaxChars != 0 || q.Focus != ""
}

// Validate gives an error that names the first field which is not valid.
func (q ReplayRequest) Validate() error {
	switch {
	case q.Apply && !q.Live:
		return store.Invalidf("apply needs live: the summary of a replay from the record is there already")
	case q.Changes() && !q.Live:
		return store.Invalidf("changes need live: a replay from the record is the same as the original run")
	case q.MaxChars < 0:
		return store.Invalidf("max_chars is negative")
	}
	if q.Prompt != "" {
		if _, err := pipeline.PromptNamed(q.Prompt); err != nil {
			return store.Invalidf("prompt: %w", err)
		}
	}
	return nil
}

// AskReplay asks for a replay of a run. It refuses with store.ErrInvalid a run that has not ended, that is a replay, or
// that has no snapshot of its conversation, and with store.ErrNotFound one whose content was deleted or pruned. If the
// batch has a replay of the run already, AskReplay gives that one (attached).
func AskReplay(ctx context.Context, s *store.Store, c config.Config, original store.RunRef,
	q ReplayRequest,
) (run runs.Run, attached bool, err error) {
	if err := q.Validate(); err != nil {
		return run, false, err
	}
	of, err := s.Runs.Get(ctx, original)
	if err != nil {
		return run, false, err
	}
	refuse := func(format string, args ...any) (runs.Run, bool, error) {
		return run, false, store.Invalidf("run %s cannot be replayed: %s", original.ID,
			fmt.Sprintf(format, args...))
	}
	switch {
	case of.ReplayOf != "":
		return refuse("it is a replay itself, of run %s", of.ReplayOf)
	case of.Outcome == "":
		return refuse("it has not ended yet")
	case of.FirstState() == "":
		return refuse("it has no snapshot of its conversation, because it never started or an older version executed it")
	}
	state, err := s.Contexts.Snapshot(ctx, original.Tenant, of.FirstState())
	if errors.Is(err, store.ErrNotFound) {
		return run, false, fmt.Errorf("run %s cannot be replayed: its snapshot was pruned or deleted: %w",
			original.ID, err)
	}
	if err != nil {
		return run, false, err
	}
	req := runs.Request{
		Kind: of.Kind, Trigger: of.Trigger, Focus: of.Focus, Full: of.Full, ForceExternal: of.ForceExternal,
		Prepare: of.Prepare, Prompt: of.Prompt, Summarizer: of.Summarizer, Settings: of.Settings,
		ReplayOf: original.ID, Replay: runs.ReplayOptions{Live: q.Live, Apply: q.Apply, Batch: q.Batch},
	}
	if req.Versions, err = Versions(c); err != nil {
		return run, false, err
	}
	if q.Live {
		if err := q.change(&req, state); err != nil {
			return run, false, err
		}
	}
	return s.Runs.Request(ctx, store.ConversationRef{Tenant: original.Tenant, ID: of.Conversation}, req)
}

// change makes the request differ from the original. What takes effect takes effect now, and is not prepared.
func (q ReplayRequest) change(req *runs.Request, state contexts.Snapshot) error {
	req.Prepare = false
	if q.Summarizer != "" {
		req.Summarizer, req.ForceExternal = q.Summarizer, false
	}
	if q.Prompt != "" {
		req.Prompt = q.Prompt
	}
	if q.Focus != "" {
		req.Focus = q.Focus
	}
	if len(req.Settings) == 0 {
		req.Settings = state.Settings
	}
	if q.MaxChars == 0 {
		return nil
	}
	settings, err := conversation.Overlay(config.DefaultSettings(), req.Settings)
	if err != nil {
		return err
	}
	settings.MaxPromptChars, settings.StrictPromptChars = q.MaxChars, 0
	req.Settings, err = json.Marshal(settings)
	return err
}
