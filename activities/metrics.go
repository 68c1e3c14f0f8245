package activities

import (
	"context"

	"precis/internal/contract"
	"precis/internal/store/runs"
	"precis/internal/telemetry"
)

// countRun counts a run that has just ended, at most once: by the attempt that ended it.
func (a *Activities) countRun(ctx context.Context, run runs.Run, stage contract.Stage) {
	trigger := string(run.Kind)
	if run.ReplayOf != "" {
		trigger = triggerReplay
	}
	a.Metrics.RunEnded(ctx, telemetry.RunEnd{
		Outcome: string(run.Outcome), ErrorKind: string(run.ErrorKind), Stage: string(stage),
		Summarizer: run.Facts.Summarizer, Trigger: trigger, TokensBefore: run.Facts.TokensBefore,
		TokensAfter: run.Facts.TokensAfter, Took: run.Finished.Sub(run.Started),
	})
}

// triggerReplay stands in the metrics for what asked for a live replay. One from the record is not counted: nothing was
// compacted and nobody was asked.
const triggerReplay = "replay"

// lastStage is the stage that a run had come to before it was closed, StageTrigger for one that never began.
func lastStage(run runs.Run) contract.Stage {
	last := contract.StageTrigger
	for _, step := range run.Attempts {
		if stage := step.Stage; stage != contract.StageFinish {
			last = stage
		}
	}
	return last
}
