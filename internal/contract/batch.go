package contract

import (
	"precis"
	"precis/pipeline"
)

// The names by which clients, workflows and workers share a batch of replays.
const (
	// BatchWorkflowType is the type of the workflow that executes a batch. Its argument is a BatchInput, its result a
	// BatchProgress.
	BatchWorkflowType = "BulkReplayWorkflow"
	// BatchProgressQuery gives a BatchProgress.
	BatchProgressQuery = "progress"
	// BatchPauseUpdate and BatchResumeUpdate stop and start new replays of a batch, and give its BatchProgress. Replays
	// that are running are not affected.
	BatchPauseUpdate  = "pause"
	BatchResumeUpdate = "resume"
	// NextReplaysActivity takes a NextReplaysRequest and gives a NextReplaysResult.
	NextReplaysActivity = "NextReplays"
	// FinishReplaysActivity takes a FinishReplaysRequest.
	FinishReplaysActivity = "FinishReplays"
	// MaxBatchConcurrency is the maximum number of replays of a batch running at the same time.
	MaxBatchConcurrency = 64
)

// TriggerReplay is what the Temporal UI shows as the trigger of a batch and its replays.
const TriggerReplay pipeline.TriggerKind = "replay"

// BatchWorkflowID is the id of the workflow that executes a batch.
func BatchWorkflowID(tenant, batch string) string {
	return precis.WorkflowID("replays", tenant, batch)
}

// BatchInput names a batch. The workflow carries its progress from one execution to the next.
type BatchInput struct {
	Tenant string `json:"tenant"`
	Batch  string `json:"batch"`
	// Concurrency is the maximum number of replays running at the same time.
	Concurrency int `json:"concurrency"`
	// Cursor is where the next execution starts to read, "" for the beginning.
	Cursor   string        `json:"cursor,omitempty"`
	Progress BatchProgress `json:"progress,omitzero"`
}

// BatchProgress counts the replays of a batch. How each of them ended is in the database.
type BatchProgress struct {
	// Done counts replays that have ended, Running those that are running, Refused runs that cannot be replayed.
	Done    int  `json:"done"`
	Running int  `json:"running"`
	Refused int  `json:"refused"`
	Paused  bool `json:"paused"`
}

// NextReplaysRequest asks for a page of the runs of a batch.
type NextReplaysRequest struct {
	Tenant string `json:"tenant"`
	Batch  string `json:"batch"`
	// Cursor is "" for the first page, and NextReplaysResult.Next for each that follows.
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit"`
}

// NextReplay is a replay to execute.
type NextReplay struct {
	Run          string            `json:"run"`
	Conversation string            `json:"conversation"`
	Replay       precis.ReplayMode `json:"replay"`
}

// NextReplaysResult is a page of the runs of a batch.
type NextReplaysResult struct {
	Replays []NextReplay `json:"replays,omitempty"`
	// Ended counts replays of the page that ended earlier, Refused runs that cannot be replayed.
	Ended   int `json:"ended,omitempty"`
	Refused int `json:"refused,omitempty"`
	// Next is the cursor of the next page, "" after the last.
	Next string `json:"next,omitempty"`
}

// FinishReplaysRequest closes a batch.
type FinishReplaysRequest struct {
	Tenant    string `json:"tenant"`
	Batch     string `json:"batch"`
	Cancelled bool   `json:"cancelled,omitempty"`
}
