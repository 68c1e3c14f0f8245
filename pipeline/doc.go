// Package pipeline is the six stages of a compaction as pure functions: trigger, choose a summarizer,
// partition, slim, summarize, reassemble. It does no I/O, reads no clock, and knows neither Temporal nor SQL,
// so that a Go agent can import it alone and a run can be replayed from its record.
//
// Read the files in the order of the stages:
//
//	message.go      what a conversation is made of
//	settings.go     every setting, with its default and unit (settings_validate.go: which values are refused)
//	trigger.go      1. whether a compaction starts, and the numbers that decide it
//	  trigger_measure.go  how full the context is: the vendor's figure, or the estimate
//	  tokens.go           how many tokens a text costs (tokens_sample.go: a long text)
//	  tokens_message.go   a message, a part, an entry of a context (tokens_image.go: an image)
//	summarizer.go   2. who can write a summary
//	  summarizer_choose.go  in which order they are tried
//	  summarizer_room.go    how much input and output each one takes
//	partition.go    3. what is summarized and what stays verbatim
//	  pairing.go            which result answers which tool call
//	  partition_split.go    where a conversation can be split
//	  partition_budget.go   a split inside the last turn, for a tail that is too large
//	  partition_carried.go  messages that are summarized and kept; whether a compaction is worth it
//	  partition_skills.go   skill blocks in what is summarized
//	slim.go         4. the input made to fit
//	  slim_element.go   a message as an element of the input
//	  slim_tools.go     dropping tool calls and results
//	  slim_shares.go    cutting to fair shares (fairshare.go, truncate.go)
//	  slim_runs.go      one line for several omitted messages
//	  slim_cut.go       cutting one element
//	  slim_note.go      the note at the head
//	  slim_result.go    the text, and what became of each message
//	  render.go         how a summarizer sees a message
//	  fold.go           tags and frames of models in a text, in any spelling
//	  quote.go          the same for a reader of the transcript
//	  binary.go         binary content, replaced in texts (base64.go: base64)
//	  redact.go         secrets, replaced in what is sent outside, as records before text rules 1 have it
//	prompt.go       5. the request
//	  answer.go         which answers are accepted
//	  answer_block.go   finding the summary in an answer
//	  answer_private.go  the reasoning in front of it, removed
//	  answer_refusal.go answers that are no summary: tool calls, refusals, announcements, placeholders
//	  usersection.go    the user's real messages, put where the summary lists them
//	  verify.go         what must not be lost, appended; what is made up, flagged
//	  constraints.go    sentences of the user's, and which of them count
//	  limits.go         whether a sentence sets a limit (limits_words.go: the words, by language)
//	  said.go           which part of a user's message the user wrote
//	  identifiers.go    names, paths, numbers and quotes in a text
//	  sources.go        looking them up in the messages (finder.go: all in one pass)
//	  attribution.go    quotes that a summary attributes to the user
//	  uses.go           the identifiers that an assistant's message uses (arguments.go: in a tool call)
//	  lookahead.go      what the tail uses and only the summarized messages explain
//	  compare.go        two summaries of the same messages, side by side
//	  mentions.go       what of a conversation can be looked for in a summary of it
//	  native.go         the summary that a vendor makes itself
//	digest.go       the summary that needs no model
//	  digest_collect.go  what it is made from (digest_calls.go: tool calls)
//	  digest_earlier.go  an earlier digest in the messages
//	  digest_write.go    its sections, within a budget
//	reassemble.go   6. what the model sees from now on
//	  summarytext.go   the text of the summary message
//	  enrichments.go   live state beside it
//	  fitting.go       the order and shape that vendors accept
//	  edit.go          how a message changes on its way to a model
//	  trim.go          what is left out on every read (trim_result.go: a tool result, trim_turns.go: the oldest turns)
//	  valve.go         what is cut when a compaction did not help
//	  recognize.go     what of this a client sends back
//	interrupt.go    how a stage stops when its context is done
//	errorkind.go    one list of what can go wrong, shared by code, store, metrics and API
//
// Sizes are in Unicode code points ("chars") where a name says chars, in model tokens where it says tokens.
// No cut splits a code point.
package pipeline
