package contract

import "precis/pipeline"

// Stage names a stage of a run. The name is the same in run_attempts, metrics, the ladder and the Temporal UI.
type Stage string

// The six stages in order, and the one that closes a run which applied nothing.
const (
	StageTrigger    Stage = "trigger"
	StageSummarizer Stage = "summarizer"
	StagePartition  Stage = "partition"
	StageSlim       Stage = "slim"
	StageSummarize  Stage = "summarise"
	StageReassemble Stage = "reassemble"
	StageFinish     Stage = "finish"
)

// Stages lists the stages in order.
var Stages = []Stage{
	StageTrigger, StageSummarizer, StagePartition, StageSlim, StageSummarize, StageReassemble, StageFinish,
}

// activityTypes are the types of the stages' activities, as recorded histories have them.
var activityTypes = map[Stage]string{
	StageTrigger:    "Trigger",
	StageSummarizer: "Summarizer",
	StagePartition:  "Partition",
	StageSlim:       "Slim",
	StageSummarize:  "Summarise",
	StageReassemble: "Reassemble",
	StageFinish:     "Finish",
}

// Activity gives the type of the stage's activity.
func (s Stage) Activity() string { return activityTypes[s] }

// KindDiverged is the error kind of a replay that has to end because its original run did something else. It is the
// type of the application error, and in no other place an error kind: a run that is not a replay never has it.
const KindDiverged pipeline.ErrorKind = "diverged"
