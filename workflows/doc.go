// Package workflows holds CompactionWorkflow and BatchReplayWorkflow. They are deterministic: they decide which
// activity comes next and compute nothing themselves. Only ids, numbers, error kinds and hashes pass through them, so
// that a history stays small and holds no text of a conversation.
//
//	compaction.go   CompactionWorkflow: one run, and those who wait for its result
//	run.go          the state of a run, and its walk through the stages
//	partition.go …  the stages that are more than one activity, a file a stage
//	ladder.go       what follows a failure, as a table
//	rule.go         how the table is built and read
//	fallback.go     what each fallback changes in a run
//	batch.go        BatchReplayWorkflow: many replays
//	versions.go     how the commands of a workflow may change
package workflows
