package transcript

import (
	"encoding/json"

	"precis/pipeline"
)

// Item is one thing that a decoder found. Exactly one of the pointers is set.
type Item struct {
	// Line is the line of the file, from 1.
	Line int
	// Start opens a conversation. Every message, compaction and usage figure comes between a Start and its End.
	// Start has what is known of the conversation by then, End has everything.
	Start *Meta
	// Message is the next message of the conversation. Its Seq is 0: numbering is the caller's.
	Message *pipeline.Message
	// Compaction is a compaction that the agent itself did and recorded.
	Compaction *Compaction
	// Usage is the server's figure for the request that the last message answered.
	Usage *Usage
	// Note reports what was left out and why.
	Note *Note
	// End closes the conversation.
	End *Meta
}

// Meta is what a file has about a conversation besides its messages.
type Meta struct {
	// Format is the format of the messages' native bytes.
	Format Format `json:"format"`
	// Source names the wrapper that the conversation was found in, such as "tau-bench"; empty without one.
	Source string `json:"source,omitempty"`
	// ID is the file's own id for the conversation: a session, a task.
	ID string `json:"id,omitempty"`
	// Vendor is "anthropic", "openai" or "google" when the format says which protocol the model spoke, else empty.
	Vendor string `json:"vendor,omitempty"`
	// Model is the model that wrote the last answer, else the one that was asked; empty when unknown.
	Model string `json:"model,omitempty"`
	// System is the system prompt as JSON where it is not one of the messages: a string or an array of blocks.
	// Nil where the format has it among the messages, or not at all.
	System json.RawMessage `json:"system,omitempty"`
	// Tools is the array of tool definitions as JSON, nil when the file has none.
	Tools json.RawMessage `json:"tools,omitempty"`
	// Envelope is, for the formats of an API, the request object with an empty "messages" array: what BuildRequest
	// puts the messages into. Where the original array was laid out with blanks or line breaks, it holds two
	// placeholders ("0") that show the layout. For the other formats it is what a file needs beside its messages and
	// each format makes its own: the object around them, the records that it begins with as an array, or, for
	// claude-code, the fields that every record repeats (sessionId, cwd, version, gitBranch, …) with their last
	// values.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	// Window is the model's context window in tokens where the file says it, 0 when it does not.
	Window int `json:"window,omitempty"`
	// Continued is true when the conversation continues one that the vendor stores and the file does not have.
	Continued bool `json:"continued,omitempty"`
	// MaxTokens is the output limit that the request asked for, in tokens; 0 when unknown.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Sidechain is true for the conversation of a subagent.
	Sidechain bool `json:"sidechain,omitempty"`
}

// Compaction is a boundary that the file records: the model saw Summary in place of all messages before it, but
// for the first KeptFirst, the last Kept and those that were Carried. Where no others are left, what the summary
// stands for is not in the file. A summary that its vendor alone can read has no text.
type Compaction struct {
	// Summary is the message with the summary; its Kind is pipeline.KindSummary.
	Summary pipeline.Message
	// Trigger is "auto" or "manual", empty when not said.
	Trigger string
	// Kept is how many messages right before the boundary the model still saw verbatim, after the summary.
	Kept int
	// KeptFirst is how many messages at the head of the conversation it still saw verbatim, before the summary.
	KeptFirst int
	// Carried are earlier messages, counted from 1, that the model still saw verbatim, in order.
	Carried []int
	// InMessages is true when one of the Kept messages holds the summary as well, so that the messages are complete
	// without this Compaction.
	InMessages bool
	// TokensBefore and TokensAfter are the agent's own figures, 0 when not said.
	TokensBefore, TokensAfter int
}

// Usage is a server's figure for one request, in tokens. It covers the last message that came before it and
// everything that the model saw until then.
type Usage struct {
	// Input is what was neither read from nor written to the prompt cache.
	Input, CacheRead, CacheCreation, Output int
	// Used is the size of the context after the answer: the sum of the four for Anthropic, total_tokens for OpenAI.
	Used int
	// Model is the model that answered, empty when not said.
	Model string
}

// NoteCode names a reason for a Note.
type NoteCode string

// The reasons.
const (
	// a line or a message that is not JSON, or no record of the format; only with Options.Lenient
	NoteDamaged   NoteCode = "damaged"
	NoteRecord    NoteCode = "record"    // a record that is not a message: the client's own bookkeeping
	NoteSidechain NoteCode = "sidechain" // a subagent's record in the file of the main conversation
	NoteSynthetic NoteCode = "synthetic" // an assistant message that the client made, never sent by a model
	NoteDuplicate NoteCode = "duplicate" // a record that was written twice
	NoteBoundary  NoteCode = "boundary"  // a compaction boundary without a summary
	NoteMessage   NoteCode = "message"   // a message of a role that the API has not
	NoteKeys      NoteCode = "keys"      // keys beside a message that the API has not, cut out of its bytes
	NoteRequest   NoteCode = "request"   // an earlier request of the same conversation, contained in the last one
	NoteMissing   NoteCode = "missing"   // what the format does not record, though the model saw it
	NoteBranch    NoteCode = "branch"    // a message of a branch that the conversation left
)

// Note says what a decoder left out.
type Note struct {
	Code NoteCode
	// What is the record type, the role or the key; empty for a damaged line.
	What string
	// Reason is one sentence for a person, without text of the conversation.
	Reason string
	// Count is how often it happened; the item's Line is the first time.
	Count int
}
