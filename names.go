package precis

import "go.temporal.io/sdk/temporal"

// The names that clients, workflows and workers share.
const (
	// TaskQueue is the queue of precis's workers, unless worker.task_queue names another. It serves the workflows and
	// every activity that calls no model; model calls have a queue of their own, so that slow vendors hold up nothing
	// else.
	TaskQueue = "compaction"
	// WorkflowType is the type of the workflow that executes a run. Its argument is an Input, its result a Result.
	WorkflowType = "CompactionWorkflow"
	// WaitUpdate is the update that completes with the run's Result when the run has ended. Its argument is the run's
	// id. All callers share one update id per run: Temporal limits the updates in flight of a workflow to ten.
	WaitUpdate = "wait"
	// AskForRunActivity is the type of the activity that takes an AskForRunRequest and gives an AskForRunResult.
	AskForRunActivity = "AskForRun"
	// AwaitRunActivity is the type of the activity that takes an AwaitRunRequest and gives the run's Result.
	AwaitRunActivity = "AwaitRun"
)

// The search attributes of a run's workflow, all of type Keyword. SQL visibility allows ten of that type in a
// namespace.
var (
	AttributeTenant       = temporal.NewSearchAttributeKeyKeyword("PrecisTenant")
	AttributeConversation = temporal.NewSearchAttributeKeyKeyword("PrecisConversation")
	AttributeTrigger      = temporal.NewSearchAttributeKeyKeyword("PrecisTrigger")
	AttributeOutcome      = temporal.NewSearchAttributeKeyKeyword("PrecisOutcome")
	AttributeErrorKind    = temporal.NewSearchAttributeKeyKeyword("PrecisErrorKind")
	AttributeSummarizer   = temporal.NewSearchAttributeKeyKeyword("PrecisSummarizer")
)

// SearchAttributes lists the search attributes that a namespace needs.
func SearchAttributes() []temporal.SearchAttributeKeyKeyword {
	return []temporal.SearchAttributeKeyKeyword{
		AttributeTenant, AttributeConversation, AttributeOutcome, AttributeErrorKind, AttributeSummarizer,
		AttributeTrigger,
	}
}
