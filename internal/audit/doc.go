// Package audit proves afterwards what a run did, and keeps the store at a size: it verifies runs and whole stores,
// prunes by age what nothing needs any more, and moves conversations with their evidence between stores.
//
//	verify.go    the checks of one run, and of a conversation with all its runs
//	rebuild.go   a run's summary message and context, made again from what they were made from
//	sweep.go     all conversations of a store, resumable
package audit
