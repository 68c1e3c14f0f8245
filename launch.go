package precis

import (
	"fmt"
	"strings"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis/pipeline"
)

// Launch is what a run's workflow is started with.
type Launch struct {
	Input Input
	// TaskQueue is the queue of precis's workers (worker.task_queue). Defaults to TaskQueue.
	TaskQueue string
	// Trigger is why the run was asked for. The Temporal UI shows it. Defaults to manual.
	Trigger pipeline.TriggerKind
}

// ChildOptions gives the options with which a workflow executes the run as its child. Cancelling the parent cancels the
// run. A parent that ends without waiting leaves it running: what a model has been paid for is not thrown away.
func (l Launch) ChildOptions() workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            l.Input.WorkflowID(),
		TaskQueue:             l.queue(),
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation:   true,
		TypedSearchAttributes: l.attributes(),
		Memo:                  l.memo(),
		StaticSummary:         l.summary(),
		StaticDetails:         l.details(),
		Priority:              l.priority(),
	}
}

// startOptions allows the id of a closed workflow again, since all runs of a conversation have the same id. A run that
// has ended is refused where its row is known: by the outbox, by whoever waits for it, and by the first stage.
func (l Launch) startOptions(conflict enumspb.WorkflowIdConflictPolicy) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                       l.Input.WorkflowID(),
		TaskQueue:                l.queue(),
		WorkflowIDConflictPolicy: conflict,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes:    l.attributes(),
		Memo:                     l.memo(),
		StaticSummary:            l.summary(),
		StaticDetails:            l.details(),
		Priority:                 l.priority(),
	}
}

func (l Launch) queue() string {
	if l.TaskQueue == "" {
		return TaskQueue
	}
	return l.TaskQueue
}

func (l Launch) trigger() string {
	if l.Trigger == "" {
		return string(pipeline.TriggerManual)
	}
	return string(l.Trigger)
}

func (l Launch) attributes() temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		AttributeTenant.ValueSet(l.Input.Tenant),
		AttributeConversation.ValueSet(l.Input.Conversation),
		AttributeTrigger.ValueSet(l.trigger()),
	)
}

func (l Launch) memo() map[string]any { return map[string]any{"run": l.Input.Run} }

// maxSummary is how long the summary may be as JSON: Temporal refuses a start whose summary has more than 400 bytes.
const maxSummary = 400

func (l Launch) summary() string {
	text := fmt.Sprintf("%s compaction of %s", l.trigger(), l.Input.Conversation)
	size := len(`""`)
	for at, r := range text {
		if size += lenAsJSON(r); size > maxSummary {
			return text[:at]
		}
	}
	return text
}

// lenAsJSON is how many bytes a character has in a JSON string, at most. A workflow calls it, and the check of
// workflows does not accept the encoder of the standard library.
func lenAsJSON(r rune) int {
	const escaped = len(`\u0000`)
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return escaped
	case r == '"', r == '\\':
		return len(`\"`)
	}
	return utf8.RuneLen(r)
}

func (l Launch) details() string {
	return fmt.Sprintf("Run `%s` of tenant `%s`. `precis show %s` draws its way down the ladder.", l.Input.Run,
		l.Input.Tenant, l.Input.Run)
}

// priority shares the queue out among tenants, so that a burst of one does not starve the others. Temporal allows a
// fairness key of 64 bytes.
func (l Launch) priority() temporal.Priority {
	tenant := l.Input.Tenant
	return temporal.Priority{FairnessKey: strings.ToValidUTF8(tenant[:min(len(tenant), 64)], "")}
}
