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
	"Summarise":  StageSummarise,
	"Reassemble": StageReassemble,
	"Finish":     StageFinish,
}

// once gives the result that an earlier attempt at this call left, or does the work and keeps its result
// before it returns. When two attempts race, the first one's result counts for both.
func once[T any](ctx context.Context, a *Activities, stage Stage, ref Ref, work func() (T, error)) (T, error) {
	var result T
	kept, err := a.Store.StageResult(ctx, ref.run(), string(stage), ref.Call)
	switch {
	case err == nil:
		notesOf(ctx).reused = true
		err = decode(kept, &result)
		return result, err
	case !errors.Is(err, store.ErrNotFound):
		return result, err
	}
	if result, err = work(); err != nil {
		return result, err
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return result, fmt.Errorf("encode the result of stage %s: %w", stage, err)
	}
	kept, err = a.Store.PutStageResult(ctx, ref.run(), string(stage), ref.Call, encoded)
	if err != nil {
		return result, err
	}
	var winner T
	err = decode(kept, &winner)
	return winner, err
}

func decode(kept []byte, result any) error {
	if err := json.Unmarshal(kept, result); err != nil {
		return fmt.Errorf("read a stage's kept result: %w", err)
	}
	return nil
}

func stack() string { return string(debug.Stack()) }
