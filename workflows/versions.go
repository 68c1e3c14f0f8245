package workflows

import "go.temporal.io/sdk/workflow"

// A worker that takes over a running workflow executes it from the start, with the results in its history, and has to
// make the same decisions. So a change of the commands (an activity, a timer, a search attribute, a child) gets a
// name here, and runs that started before it keep their old commands. docs/versioning.md says how to make one, and
// when a name can be removed.

// change names a change of a workflow's commands.
type change string

// changeResultInMemo writes a run's tokens to its memo at the end, so that the list of the Temporal UI shows them.
const changeResultInMemo change = "result-in-memo"

// changeBoundedTries schedules an activity again that timed out, at most contract.MaxTries times in all, where Temporal
// retried it for as long as its ScheduleToCloseTimeout.
const changeBoundedTries change = "bounded-tries"

// changed reports whether the workflow has a change: one that starts now does, one whose history is older does not.
func changed(ctx workflow.Context, c change) bool {
	return workflow.GetVersion(ctx, string(c), workflow.DefaultVersion, 1) >= 1
}
