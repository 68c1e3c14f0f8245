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

// ReplayRequest has the options of a replay. Zero fields are those of the original run.
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

// FieldError reports a field of a request that is not valid. It is a store.ErrInvalid.
type FieldError struct {
	// Field is the name of the field in the API, such as "max_chars".
	Field string
	// Problem says what is wrong with the value and what would be right.
	Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Unwrap returns store.ErrInvalid.
func (e *FieldError) Unwrap() error { return store.ErrInvalid }

// Validate checks the fields that can be checked without the run. The error is a *FieldError for the first field that
// is not valid.
func (q ReplayRequest) Validate() error {
	switch {
	case q.Apply && !q.Live:
		return &FieldError{"apply", "needs live: a replay from the record only reproduces the summary of the run"}
	case q.Changes() && !q.Live:
		return &FieldError{"live", "must be true to change summarizer, prompt, max_chars or focus: a replay from the " +
			"record uses those of the run"}
	case q.MaxChars < 0:
		return &FieldError{"max_chars", "is negative"}
	}
	if q.Prompt != "" {
		if _, err := pipeline.PromptNamed(q.Prompt); err != nil {
			return &FieldError{"prompt", err.Error()}
		}
	}
	return nil
}

// AskReplay requests a replay of a run. The error is store.ErrInvalid if the run has not ended, is a replay itself, or
// has no snapshot of its conversation, or if a live replay is one more than config.Replays allows, and
// store.ErrNotFound if its content was deleted or pruned. If the batch already has a replay of the run, AskReplay
// returns that one and attached is true.
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
		return refuse(
			"it has no snapshot of its conversation, because it never started or an older version executed it")
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
		LiveReplays: runs.ReplayBounds{PerDay: c.Replays.LivePerDay, PerRun: c.Replays.LivePerRun},
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

// change applies the changes of a live replay to the request. A replay that is applied takes effect at once, also if
// the original run only prepared its summary.
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
