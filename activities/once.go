package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"precis/internal/store"
)

// stageOf maps the name under which an activity is registered, its method's name, to its stage.
var stageOf = map[string]Stage{
	"Trigger":    StageTrigger,
	"Summarizer": StageSummarizer,
	"Partition":  StagePartition,
	"Slim":       StageSlim,
	"Summarise":  StageSummarize,
	"Reassemble": StageReassemble,
	"Finish":     StageFinish,
}

// kept is a stage's result as it is kept, with what the attempt that left it had to say beside it: one that finds it
// after a crash takes both over, and the record is whole.
type kept struct {
	Result    json.RawMessage   `json:"result"`
	Artifacts map[string]string `json:"artifacts,omitempty"`
	Numbers   json.RawMessage   `json:"numbers,omitempty"`
}

// once gives the result that an earlier attempt at this call left, or does the work and keeps its result
// before it returns. When two attempts race, the first one's result counts for both. The result of a replay from the
// record is compared with the original's.
func once[T any](ctx context.Context, a *Activities, stage Stage, ref Ref,
	work func(run store.Run) (T, error),
) (T, error) {
	notes := notesOf(ctx)
	var result T
	data, err := a.Store.StageResult(ctx, ref.run(), string(stage), ref.Call)
	switch {
	case err == nil:
		notes.reused = true
		return decode[T](data, notes)
	case !errors.Is(err, store.ErrNotFound):
		return result, err
	}
	run, err := a.open(ctx, stage, ref)
	if err != nil {
		return result, err
	}
	if notes.record != nil {
		if err := notes.record.follows(ref, notes); err != nil {
			return result, errors.Join(err, a.keepDifferences(ctx, ref, notes))
		}
	}
	result, err = work(run)
	if notes.record != nil {
		if err = a.compare(ctx, ref, result, err); err != nil {
			return result, err
		}
	}
	if err != nil {
		return result, err
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return result, fmt.Errorf("encode the result of stage %s: %w", stage, err)
	}
	if data, err = json.Marshal(kept{
		Result: encoded, Artifacts: notes.artifacts,
		Numbers: notes.numbers(nil),
	}); err != nil {
		return result, fmt.Errorf("encode what stage %s noted: %w", stage, err)
	}
	if data, err = a.Store.PutStageResult(ctx, ref.run(), string(stage), ref.Call, data); err != nil {
		return result, err
	}
	return decode[T](data, notes)
}

// decode reads a kept result and takes over what was noted with it.
func decode[T any](data []byte, notes *stepNotes) (T, error) {
	var result T
	var k kept
	err := json.Unmarshal(data, &k)
	if err == nil {
		err = json.Unmarshal(k.Result, &result)
	}
	if err != nil {
		return result, fmt.Errorf("read a stage's kept result: %w", err)
	}
	for role, sha := range k.Artifacts {
		notes.artifact(role, sha)
	}
	var numbers map[string]json.RawMessage
	if err := json.Unmarshal(k.Numbers, &numbers); err != nil {
		return result, fmt.Errorf("read what a stage noted: %w", err)
	}
	for name, value := range numbers {
		notes.number(name, value)
	}
	return result, nil
}

func stack() string { return string(debug.Stack()) }
