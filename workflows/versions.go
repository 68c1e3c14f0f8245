package workflows

import "go.temporal.io/sdk/workflow"

// A run under way is replayed by whatever build takes it up: it must decide what it decided before. So a change that
// asks for another command than before (an activity, a timer, a search attribute, a child) stands behind a name here,
// and runs that were begun without it go on as they were. docs/versioning.md says how, and when a name may go.

// change is a change of a workflow's commands.
type change string

// changeResultInMemo notes a run's tokens in its memo at the end, so that the list of the Temporal UI shows them.
const changeResultInMemo change = "result-in-memo"

// changed says whether the workflow under way has a change: those that are begun from now on do, those that are
// replayed from a history without it do not.
func changed(ctx workflow.Context, c change) bool {
	return workflow.GetVersion(ctx, string(c), workflow.DefaultVersion, 1) >= 1
}
