package activities

import (
	"context"

	"precis/internal/store"
	"precis/internal/telemetry"
)

// countRun counts a run that has just ended, at most once: by the attempt that ended it.
func (a *Activities) countRun(ctx context.Context, run store.Run, stage Stage) {
	a.Metrics.RunEnded(ctx, telemetry.RunEnd{
		Outcome: string(run.Outcome), ErrorKind: string(run.ErrorKind), Stage: string(stage), Summarizer: run.Facts.Summarizer,
		Trigger: string(run.Kind), TokensBefore: run.Facts.TokensBefore, TokensAfter: run.Facts.TokensAfter,
		Took: run.Finished.Sub(run.Started),
	})
}

// lastStage is the stage that a run had come to before it was closed, StageTrigger for one that never began.
func lastStage(run store.Run) Stage {
	last := StageTrigger
	for _, step := range run.Steps {
		if stage := Stage(step.Stage); stage != StageFinish {
			last = stage
		}
	}
	return last
}
