// Package audit verifies the records of runs, prunes old content that no live context needs, and exports and imports
// conversations with their evidence.
//
//	verify.go    the checks of one run, and of a conversation with all its runs
//	rebuild.go   a run's summary message and context, rebuilt from the records
//	prune.go     remove old content
//	export.go    export and import conversations
//	sweep.go     all conversations of a store, resumable
package audit
