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

// triggerReplay is the trigger of a live replay in the metrics. A replay from the record is not counted: it compacts
// nothing and calls no model.
const triggerReplay = "replay"

// lastStage returns the stage that a run had reached before it was closed, StageTrigger if it never started.
func lastStage(run runs.Run) contract.Stage {
	last := contract.StageTrigger
	for _, attempt := range run.Attempts {
		if attempt.Stage != contract.StageFinish {
			last = attempt.Stage
		}
	}
	return last
}
