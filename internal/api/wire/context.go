package wire

import (
	"encoding/json"
	"time"
)

// Context is what the model is sent next.
type Context struct {
	_ struct{} `doc:"What the model is sent next."`

	Format   string            `json:"format" doc:"Format of system, tools and messages."`
	System   json.RawMessage   `json:"system,omitempty"`
	Tools    json.RawMessage   `json:"tools,omitempty"`
	Messages []json.RawMessage `json:"messages" doc:"Native messages, ready to send."`
	Options  json.RawMessage   `json:"options,omitempty" doc:"Keys to add to the request beside the messages. Left out when there are none. Anthropic refuses thinking blocks behind a summary unless the request allows it to drop them: options then holds context_management. A request without thinking must not have it."`
	Betas    []string          `json:"betas,omitempty" doc:"The beta headers that options needs."`
	Stats    Stats             `json:"stats"`
	Losses   []Loss            `json:"losses,omitempty" doc:"What the requested format cannot express."`
}

// Stats are the figures of a context.
type Stats struct {
	_ struct{} `doc:"The figures of a context. Sizes are in tokens."`

	ContextStats
	Version int64 `json:"version" doc:"Goes up with each compaction and undo: whenever the context is made from the same messages in another way."`
	HeadSeq int64 `json:"head_seq" doc:"Number of the last message in the context."`
}

// ContextStats are the figures of a context that follow from the context alone.
type ContextStats struct {
	Tokens        int          `json:"tokens" doc:"Size of the next request, with the system prompt and tools if they are known."`
	Estimated     bool         `json:"estimated" doc:"tokens is a local estimate, not a figure of the vendor."`
	Window        int          `json:"window" doc:"Size of the model's window."`
	WindowGuessed bool         `json:"window_guessed" doc:"The model is not known: window is a default."`
	Limit         int          `json:"limit" doc:"The size from which a compaction starts automatically."`
	Fraction      float64      `json:"fraction" doc:"tokens as a share of window: 0 for empty, 1 for full."`
	Nudge         bool         `json:"nudge" doc:"The context is so full that the user should be told that a compaction is due."`
	HistoryTokens int          `json:"history_tokens" doc:"Size without the system prompt and tools."`
	Trimmed       Trimmed      `json:"trimmed"`
	Marker        *MarkerStats `json:"marker" doc:"The compaction that the context starts from, or null: the context is the full history."`
	Prepared      *string      `json:"prepared" doc:"The run whose prepared summary has not taken effect yet, or null."`
}

// Trimmed counts what was left out of a context without a summary.
type Trimmed struct {
	_ struct{} `doc:"Counts what was left out of a context without a summary."`

	Binaries     int `json:"binaries" doc:"Images and files."`
	ToolResults  int `json:"tool_results" doc:"Tool results that were shortened."`
	SavedTokens  int `json:"saved_tokens" doc:"Tokens that this saved."`
	DroppedTurns int `json:"dropped_turns" doc:"The oldest turns that did not fit into max_input_tokens."`
}

// MarkerStats are the figures of the compaction that a context starts from.
type MarkerStats struct {
	_ struct{} `doc:"The compaction that a context starts from."`

	Run        string `json:"run" doc:"The run. Empty when the agent compacted itself, or the compaction was imported."`
	CoversFrom int64  `json:"covers_from" doc:"Number of the first message that the summary stands for."`
	CoversTo   int64  `json:"covers_to" doc:"Number of the last message that the summary stands for."`
	Messages   int    `json:"messages" doc:"How many messages were summarized."`
	Digest     bool   `json:"digest" doc:"The summary is a digest: no model wrote it."`
}

// Loss is something that the requested format cannot express.
type Loss struct {
	_ struct{} `doc:"Something that the requested format cannot express."`

	Item int    `json:"item" doc:"Index of the message in the context. -1: it is not in a message."`
	What string `json:"what"`
	Why  string `json:"why"`
}

// NewReplyInput opens a reply.
type NewReplyInput struct {
	TTLSeconds int `json:"ttl_seconds,omitempty" minimum:"0" maximum:"86400" doc:"When the lease expires if the reply is not ended. 0: after ten minutes."`
}

// Reply is an open reply.
type Reply struct {
	_ struct{} `doc:"A reply that the agent's model is generating."`

	ID      string    `json:"reply" doc:"The reply's id."`
	Expires time.Time `json:"expires" doc:"When the lease expires if the reply is not ended."`
	Context Context   `json:"context" doc:"What to send to the model."`
}

// ReplyEndInput ends a reply.
type ReplyEndInput struct {
	Messages []json.RawMessage  `json:"messages,omitempty" limit:"messages" doc:"The messages of the reply: native messages, in order."`
	Meta     []MessageMetaInput `json:"meta,omitempty" limit:"messages" doc:"One entry for each message, as with an append."`
	Usage    json.RawMessage    `json:"usage,omitempty" limit:"usage" doc:"The vendor's usage object, unchanged."`
	Error    *ReplyErrorInput   `json:"error,omitempty" doc:"The vendor's error if the model call failed. A context overflow starts a compaction at once."`
}

// ReplyErrorInput is a vendor's error.
type ReplyErrorInput struct {
	Status int             `json:"status,omitempty" minimum:"0" maximum:"999" doc:"The HTTP status of the vendor's answer. 0: there was no answer."`
	Body   json.RawMessage `json:"body,omitempty" limit:"vendor_error" doc:"The body of the vendor's answer: the JSON itself, or its text as a string."`
}
