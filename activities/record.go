package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"precis"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// A replay from the record does what the stages do with what the original run knew: the conversation as each of its
// attempts saw it, what it learned from outside of the conversation, and what the models answered. Every run notes all
// of that with its attempts, through load, given and ask.

// record is what the replayed run has of the call under way.
type record struct {
	original runs.Run
	stage    contract.Stage
	call     int
	// last is the last attempt that the original made at the call, nil: it made none.
	last *runs.Attempt
	// kept is what that attempt left, nil: nothing, it failed.
	kept *kept
}

// errNotRecorded returns the error for a run that lacks something which runs are recorded with today.
func errNotRecorded(r runs.Run, what string) error {
	return &divergedError{fmt.Sprintf("run %s cannot be replayed: its record does not hold %s", r.Ref.ID, what)}
}

// errPruned turns a missing part of a record into an error that says so.
func errPruned(r runs.Run, what string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return &divergedError{fmt.Sprintf("run %s cannot be replayed: %s was pruned or deleted", r.Ref.ID, what)}
	}
	return err
}

// open reads the run that the attempt works for, and for a replay what it needs of the original.
func (a *Activities) open(ctx context.Context, at *attempt) error {
	if at.run == nil {
		run, err := a.Store.Runs.Get(ctx, runOf(at.ref))
		if err != nil {
			return err
		}
		at.run = &run
	}
	if at.run.ReplayOf == "" {
		return nil
	}
	original, err := a.Store.Runs.Get(ctx, store.RunRef{Tenant: at.ref.Tenant, ID: at.run.ReplayOf})
	if err != nil {
		return err
	}
	at.original = &original
	if at.run.Replay.Live {
		return nil
	}
	at.record, err = a.recordOf(ctx, original, at.stage, at.ref.Call)
	return err
}

// recordOf returns what a run recorded of a call of a stage.
func (a *Activities) recordOf(ctx context.Context, original runs.Run, stage contract.Stage, call int) (*record, error) {
	rec := &record{original: original, stage: stage, call: call, last: lastAttempt(original, stage, call)}
	data, err := a.Store.Attempts.Result(ctx, original.Ref, stage, call)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return rec, nil
	case err != nil:
		return nil, err
	}
	rec.kept = &kept{}
	if err := json.Unmarshal(data, rec.kept); err != nil {
		return nil, fmt.Errorf("read the stored result of stage %s of run %s: %w", stage, original.Ref.ID, err)
	}
	return rec, nil
}

// lastAttempt returns a run's last attempt at a call, nil when it made none.
func lastAttempt(r runs.Run, stage contract.Stage, call int) *runs.Attempt {
	for i := len(r.Attempts) - 1; i >= 0; i-- {
		if s := r.Attempts[i]; s.Call == call && s.Stage == stage {
			return &s
		}
	}
	return nil
}

// artifact returns the reference that the original noted, "": none.
func (r *record) artifact(role contract.ArtifactKind) string {
	if r.kept != nil && r.kept.Artifacts[role] != "" {
		return r.kept.Artifacts[role]
	}
	if r.last != nil {
		return r.last.Artifacts[role]
	}
	return ""
}

// given returns what the original learned from outside.
func (r *record) given() (contract.Given, error) {
	var noted struct {
		Given contract.Given `json:"given"`
	}
	var numbers json.RawMessage
	if r.last != nil {
		numbers = r.last.Numbers
	}
	if r.kept != nil {
		numbers = r.kept.Numbers
	}
	if len(numbers) == 0 {
		return noted.Given, nil
	}
	if err := json.Unmarshal(numbers, &noted); err != nil {
		return noted.Given, fmt.Errorf("read what stage %s of run %s noted: %w", r.stage, r.original.Ref.ID, err)
	}
	return noted.Given, nil
}

// endsHere reports whether the original was cancelled before this call could end.
func (r *record) endsHere() bool {
	if r.original.Outcome != precis.OutcomeCancelled || r.kept != nil {
		return false
	}
	return !slices.ContainsFunc(r.original.Attempts, func(s runs.Attempt) bool {
		later := s.Call > r.call || s.Call == r.call && s.Stage != r.stage
		return later && s.Stage != contract.StageFinish
	})
}

// failure returns how the original failed at the call, "" when it did not.
func (r *record) failure() (pipeline.ErrorKind, string) {
	if r.kept != nil || r.last == nil {
		return "", ""
	}
	kind := r.last.ErrorKind
	if kind == "" { // its worker died during the attempt, and Temporal gave up waiting for it
		kind = pipeline.Timeout
	}
	return kind, r.last.Message
}

// given returns what a stage has to know from outside of the conversation: of the configuration, the clock, the state
// of vendors and budgets. field is where notes hold it. A replay from the record takes it from there.
func given[T any](at *attempt, notes *contract.Given, what string, field func(*contract.Given) **T,
	ask func() (T, error),
) (T, error) {
	var value T
	if at.record != nil {
		known, err := at.record.given()
		if err != nil {
			return value, err
		}
		recorded := *field(&known)
		if recorded == nil {
			return value, errNotRecorded(at.record.original, what)
		}
		*field(notes) = recorded
		return *recorded, nil
	}
	value, err := ask()
	if err == nil {
		*field(notes) = &value
	}
	return value, err
}
