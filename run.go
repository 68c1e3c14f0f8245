package precis

import "precis/pipeline"

// ReplayMode says where a replay gets the models' answers from.
type ReplayMode string

// The modes of a replay; "" is a run that is not a replay.
const (
	// ReplayRecorded reads the models' answers from the record of the original run, and compares every stage with it.
	ReplayRecorded ReplayMode = "recorded"
	// ReplayLive calls the models.
	ReplayLive ReplayMode = "live"
)

// Input names a run. Everything else about the run is read from precis's database by the activities.
type Input struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Run          string `json:"run"`
	// Replay is set if the run replays another one, which its row in the database names.
	Replay ReplayMode `json:"replay,omitempty"`
}

// WorkflowID is the id of the run's workflow. All compactions of a conversation have the same one, and Temporal keeps
// it unique among the open workflows: so a conversation is never compacted twice at the same time. A replay has an id
// of its own.
func (in Input) WorkflowID() string {
	if in.Replay != "" {
		return WorkflowID("replay", in.Tenant, in.Run)
	}
	return WorkflowID("compaction", in.Tenant, in.Conversation)
}

// Result is how a run ended.
type Result struct {
	Run     string  `json:"run"`
	Outcome Outcome `json:"outcome"`
	// Kind is the error kind of a run that failed, was cancelled or was superseded, "" otherwise.
	Kind pipeline.ErrorKind `json:"error_kind,omitempty"`
	// Reason is one sentence for a person, without text of the conversation.
	Reason string `json:"reason,omitempty"`
	// Summarizer is who wrote the summary: "self", "native", "VENDOR/MODEL" or "digest".
	Summarizer string `json:"summarizer,omitempty"`
	// Marker is the id of the marker that the run wrote, "" if it wrote none.
	Marker       string `json:"marker,omitempty"`
	TokensBefore int    `json:"tokens_before,omitempty"`
	TokensAfter  int    `json:"tokens_after,omitempty"`
}
