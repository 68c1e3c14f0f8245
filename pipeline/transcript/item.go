package transcript

import (
	"encoding/json"

	"precis/pipeline"
)

// Item is the result of one step of a decoder. Exactly one of the pointers is set.
type Item struct {
	// Line is the line of the file, from 1.
	Line int
	// Start opens a conversation. Every message, compaction and usage figure comes between a Start and its End.
	// Start has the metadata that are known at that point, End has all.
	Start *Meta
	// Message is the next message of the conversation. Its Seq is 0: the caller numbers the messages.
	Message *pipeline.Message
	// Compaction is a compaction that the agent made and recorded itself.
	Compaction *Compaction
	// Usage is the server's figure for the request that led to the last message.
	Usage *Usage
	// Note reports what was left out and why.
	Note *Note
	// End closes the conversation.
	End *Meta
}

// Meta has the metadata of a conversation: what a file contains about it besides its messages.
type Meta struct {
	// Format is the format of the messages' native bytes.
	Format Format `json:"format"`
	// Source names the wrapper that the conversation was found in, such as "tau-bench"; empty without one.
	Source string `json:"source,omitempty"`
	// ID is the file's own id for the conversation: a session, a task.
	ID string `json:"id,omitempty"`
	// Vendor is "anthropic", "openai" or "google" if the format determines the protocol of the model, else empty.
	Vendor string `json:"vendor,omitempty"`
	// Model is the model that wrote the last answer, else the model of the request; empty when unknown.
	Model string `json:"model,omitempty"`
	// System is the system prompt as JSON where it is not one of the messages: a string or an array of blocks.
	// It is nil if the format has the system prompt among the messages, or not at all.
	System json.RawMessage `json:"system,omitempty"`
	// Tools is the array of tool definitions as JSON, nil when the file has none.
	Tools json.RawMessage `json:"tools,omitempty"`
	// Envelope is, for the formats of an API, the request object with an empty "messages" array, into which
	// request.Build puts the messages. If the original array had blanks or line breaks, it contains two placeholders
	// ("0") that show the layout. For the other formats it is what a file needs beside its messages: the object
	// around them, the records at its beginning as an array, or, for claude-code, the fields that every record
	// repeats (sessionId, cwd, version, gitBranch, …) with their last values.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	// Window is the model's context window in tokens, 0 if the file does not have it.
	Window int `json:"window,omitempty"`
	// Continued is true when the conversation continues one that the vendor stores and the file does not have.
	Continued bool `json:"continued,omitempty"`
	// MaxTokens is the output limit that the request asked for, in tokens; 0 when unknown.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Sidechain is true for the conversation of a subagent.
	Sidechain bool `json:"sidechain,omitempty"`
}

// Compaction is a boundary that the file records: the model saw Summary in place of all messages before it, except
// for the first KeptFirst, the last Kept and the Carried ones. If there are no others, the file does not contain the
// messages that the summary covers. A summary that only its vendor can read has no text.
type Compaction struct {
	// Summary is the message with the summary; its Kind is pipeline.KindSummary.
	Summary pipeline.Message
	// Trigger is "auto" or "manual", empty when unknown.
	Trigger string
	// Kept is the number of messages right before the boundary that the model still saw verbatim, after the summary.
	Kept int
	// KeptFirst is the number of messages at the head of the conversation that it still saw verbatim, before the
	// summary.
	KeptFirst int
	// Carried has the numbers, from 1, of earlier messages that the model still saw verbatim, in order.
	Carried []int
	// InMessages is true if one of the Kept messages also has the summary, so that the messages are complete without
	// this Compaction.
	InMessages bool
	// TokensBefore and TokensAfter are the agent's own figures, 0 when unknown.
	TokensBefore, TokensAfter int
}

// Usage is a server's figure for one request, in tokens. It covers the last message before it and everything that the
// model saw until then.
type Usage struct {
	// Input counts the tokens that were neither read from nor written to the prompt cache.
	Input, CacheRead, CacheCreation, Output int
	// Used is the size of the context after the answer: the sum of the four for Anthropic, total_tokens for OpenAI.
	Used int
	// Model is the model that answered, empty when unknown.
	Model string
}

// NoteCode names a reason for a Note.
type NoteCode string

// The reasons.
const (
	// a line or a message that is not JSON, or not a record of the format; only with Options.Lenient
	NoteDamaged   NoteCode = "damaged"
	NoteRecord    NoteCode = "record"    // a record that is not a message: the client's own bookkeeping
	NoteSidechain NoteCode = "sidechain" // a subagent's record in the file of the main conversation
	NoteSynthetic NoteCode = "synthetic" // an assistant message that the client made, never sent by a model
	NoteDuplicate NoteCode = "duplicate" // a record that was written twice
	NoteBoundary  NoteCode = "boundary"  // a compaction boundary without a summary
	NoteMessage   NoteCode = "message"   // a message of a role that the API does not have
	NoteKeys      NoteCode = "keys"      // keys of a message that the API does not have, removed from its bytes
	NoteRequest   NoteCode = "request"   // an earlier request of the same conversation, contained in the last one
	NoteMissing   NoteCode = "missing"   // what the model saw but the format does not record
	NoteBranch    NoteCode = "branch"    // a message of a branch that the conversation left
)

// Note reports what a decoder left out.
type Note struct {
	Code NoteCode
	// What is the record type, the role or the key; empty for a damaged line.
	What string
	// Reason is one sentence for the user, without text of the conversation.
	Reason string
	// Count is the number of occurrences; the item's Line is the first of them.
	Count int
}
