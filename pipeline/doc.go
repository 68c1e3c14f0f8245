// Package pipeline is the six stages of a compaction as pure functions: trigger, pick a summarizer,
// partition, slim, summarise, reassemble. It does no I/O, reads no clock, knows no Temporal and no SQL,
// so that a Go agent can import it on its own and a run can be replayed from its record.
//
// Read the files in the order of the stages:
//
//	message.go     what a conversation is made of
//	settings.go    every knob, with its default and unit
//	trigger.go     1. does a compaction start, and which numbers say so
//	summarizer.go  2. who writes the summary, in which order
//	partition.go   3. what is summarised and what stays verbatim
//	slim.go        4. the input made to fit (fairshare.go, truncate.go)
//	prompt.go      5. the request, and what is accepted as its answer (verify.go, digest.go)
//	reassemble.go  6. what the model sees from now on (trim.go)
//	errorkind.go   one list of what can go wrong, shared by code, store, metrics and API
//
// Sizes are in Unicode code points ("chars") where a name says chars, in model tokens where it says tokens.
// No cut ever splits a code point.
package pipeline
