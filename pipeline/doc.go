// Package pipeline is the six stages of a compaction as pure functions: trigger, pick a summarizer,
// partition, slim, summarize, reassemble. It does no I/O, reads no clock, knows no Temporal and no SQL,
// so that a Go agent can import it on its own and a run can be replayed from its record.
//
// Read the files in the order of the stages:
//
//	message.go     what a conversation is made of
//	settings.go    every knob, with its default and unit (settings_validate.go: what is impossible)
//	trigger.go     1. does a compaction start, and which numbers say so (tokens.go: what a message costs)
//	summarizer.go  2. who writes the summary, in which order
//	partition.go   3. what is summarized and what stays verbatim (pairing.go: which result answers which call)
//	slim.go        4. the input made to fit (fairshare.go, truncate.go)
//	  render.go       how a summarizer sees a message
//	  quote.go        the same for whoever reads the transcript
//	  binary.go       base64 and raw binary, taken out of texts
//	  redact.go       secrets, taken out of what leaves the house
//	prompt.go      5. the request
//	  answer.go       what is accepted as its answer
//	  usersection.go  the user's real messages, put where the summary lists them
//	  verify.go       what must not be lost, appended, and what is made up, flagged
//	  constraints.go  sentences of the user's, and which of them count (limits.go: the words, by language)
//	  said.go         what of a user's message is the user's own
//	  identifiers.go  names and quotes, looked up in the source (finder.go: all in one pass)
//	  arguments.go    the values in a tool call
//	  compare.go      two summaries of the same messages, side by side
//	  mentions.go     what of a conversation can be looked for in a summary of it
//	  digest.go       the summary that needs no model
//	  native.go       the summary that the vendor makes for itself
//	reassemble.go  6. what the model sees from now on
//	  edit.go         how a message changes on its way to a model
//	  trim.go         what is left out on every read
//	  valve.go        what is cut when a compaction did not help
//	  recognize.go    what of this a client sends back
//	errorkind.go   one list of what can go wrong, shared by code, store, metrics and API
//
// Sizes are in Unicode code points ("chars") where a name says chars, in model tokens where it says tokens.
// No cut ever splits a code point.
package pipeline
