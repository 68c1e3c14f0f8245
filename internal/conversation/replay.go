package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/config"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/replays"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// ReplayRequest says how a run is to be repeated. Zero fields are as they were.
type ReplayRequest struct {
	// Live asks the models anew; else their answers are read from the record.
	Live bool `json:"live,omitempty"`
	// Apply makes the summary of a live one take effect, unless the conversation has moved on.
	Apply bool `json:"apply,omitempty"`
	// Summarizer is a list such as "self,openai/NAME", Prompt a prompt's name.
	Summarizer string `json:"summarizer,omitempty"`
	Prompt     string `json:"prompt,omitempty"`
	// MaxChars bounds the summarizer's rendered input, in chars.
	MaxChars int    `json:"max_chars,omitempty"`
	Focus    string `json:"focus,omitempty"`
	// Batch is the batch that it belongs to, "": none.
	Batch string `json:"-"`
}

// Changes says whether anything is to be otherwise than it was.
func (q ReplayRequest) Changes() bool {
	return q.Summarizer != "" || q.Prompt != "" || q.MaxChars != 0 || q.Focus != ""
}

// Validate names the first field that cannot be.
func (q ReplayRequest) Validate() error {
	switch {
	case q.Apply && !q.Live:
		return fmt.Errorf("%w: apply goes with live: what comes out of the record is there already", store.ErrInvalid)
	case q.Changes() && !q.Live:
		return fmt.Errorf("%w: changes go with live: from the record everything is as it was", store.ErrInvalid)
	case q.MaxChars < 0:
		return fmt.Errorf("%w: max_chars is negative", store.ErrInvalid)
	}
	if q.Prompt != "" {
		if _, err := pipeline.PromptNamed(q.Prompt); err != nil {
			return fmt.Errorf("%w: prompt: %w", store.ErrInvalid, err)
		}
	}
	return nil
}

// AskReplay asks for a run to be repeated. One that has not ended, that is a replay itself, or whose record does not
// hold what the conversation was then is refused as store.ErrInvalid; one whose content was deleted or pruned as
// store.ErrNotFound. For a batch that has a replay of the run already it gives that one (attached).
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
		return run, false, fmt.Errorf("%w: run %s cannot be repeated: %s", store.ErrInvalid, original.ID,
			fmt.Sprintf(format, args...))
	}
	switch {
	case of.ReplayOf != "":
		return refuse("it is a replay itself, of run %s", of.ReplayOf)
	case of.Outcome == "":
		return refuse("it has not ended yet")
	case of.FirstState() == "":
		return refuse("its record does not hold what the conversation was then, since it never began or was made " +
			"by an older version")
	}
	state, err := s.Contexts.Snapshot(ctx, original.Tenant, of.FirstState())
	if errors.Is(err, store.ErrNotFound) {
		return run, false, fmt.Errorf("run %s cannot be repeated: what it worked on was pruned or deleted: %w",
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
	settings, err := Overlay(pipeline.DefaultSettings(), req.Settings)
	if err != nil {
		return err
	}
	settings.MaxPromptChars, settings.StrictPromptChars = q.MaxChars, 0
	req.Settings, err = json.Marshal(settings)
	return err
}

// ReplayBatchRequest asks for many runs to be repeated.
type ReplayBatchRequest struct {
	Filter replays.Filter `json:"filter"`
	Replay ReplayRequest  `json:"replay"`
	// Concurrency is how many are repeated at once.
	Concurrency int `json:"concurrency"`
}

// ReplayBatchRequestOf reads what a batch was asked for with.
func ReplayBatchRequestOf(b replays.Batch) (ReplayBatchRequest, error) {
	var q ReplayBatchRequest
	if err := json.Unmarshal(b.Request, &q); err != nil {
		return q, fmt.Errorf("read the request of batch %s: %w", b.Ref.ID, err)
	}
	q.Replay.Batch = b.Ref.ID
	return q, nil
}
