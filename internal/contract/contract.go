// Package contract declares, once, every name, enum and struct that crosses a boundary inside precis: between workflows
// and activities, between a run and its record in the database, and from there to the API and the command line. What
// programs outside of precis need as well is in the root package, precis; error kinds and trigger kinds are in
// pipeline.
//
// The values are stored in databases and in workflow histories: they are never changed, only added to.
//
//	stage.go       the stages of a run
//	fallback.go    what a run does after a failure
//	attempt.go     the outcomes of an attempt
//	artifact.go    what runs store beside their rows
//	ref.go         the reference to a run that every stage gets
//	trigger.go …   the request and the result of each stage, a file a stage
//	numbers.go     what a stage notes beside its result
//	batch.go       batches of replays
//	protocol.go    the protocols of vendors
package contract
