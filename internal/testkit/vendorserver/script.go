package vendorserver

import (
	"encoding/json"
	"slices"
)

// Script is what a server answers. Requests take the answers of their model in order; a model without a
// list of its own takes from Answers. When a list is used up, Default answers, and without one the
// request gets status 500 and a message that says so. Its JSON form is that of Answer's fields.
type Script struct {
	// Answers are for every model that Models does not name.
	Answers []Answer `json:"answers,omitempty"`
	// Models has the answers of single models, by the name in the request.
	Models map[string][]Answer `json:"models,omitempty"`
	// Default answers when a list is used up.
	Default *Answer `json:"default,omitempty"`
	// Key is the API key that is asked for, as a bearer token, in x-api-key or in x-goog-api-key; others get 401.
	// Empty: none.
	Key string `json:"key,omitempty"`
	// Windows are the context windows by model, "" for all others: a request over its model's window, counted
	// by pipeline.EstimateText, is refused as the vendor would. It does not use up an answer.
	Windows map[string]int `json:"windows,omitempty"`
	// CountTokens replaces pipeline.EstimateText for the window.
	CountTokens func(text string) int `json:"-"`
	// MaxBodyBytes is the size over which a request is refused with 413, 0 for no bound.
	MaxBodyBytes int `json:"max_body_bytes,omitempty"`
	// Lenient switches off the validation of requests. Without it, what the strict validators refuse gets
	// the vendor's own 400, and does not use up an answer.
	Lenient bool `json:"lenient,omitempty"`
	// Compatible validates as a server that is merely compatible: message keys that the vendor itself does not
	// know, such as reasoning_content, pass.
	Compatible bool `json:"compatible,omitempty"`
	// ChunkChars is the size of a streamed piece of text in chars, 16 when 0.
	ChunkChars int `json:"chunk_chars,omitempty"`
}

// Answer is one answer of the script, or one way to give none. What is not set is left out of it.
type Answer struct {
	// Text is the text of the answer. To a request for a compaction it is the summary in the block.
	Text string `json:"text,omitempty"`
	// Content are the blocks of the answer, after Text.
	Content []Block `json:"content,omitempty"`
	// ToolCalls are put after the blocks.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// Finish is the reason to stop, in the words of either vendor or of pipeline.Finish; empty: a normal end,
	// or a tool call when there is one. "none" leaves it out.
	Finish string `json:"finish,omitempty"`
	// Usage replaces the counted usage.
	Usage *Usage `json:"usage,omitempty"`
	// NoUsage leaves usage out.
	NoUsage bool `json:"no_usage,omitempty"`

	// Error is an answer with an error status.
	Error *Error `json:"error,omitempty"`
	// SSEError is an error event in the stream, after the text.
	SSEError *Error `json:"sse_error,omitempty"`
	// Raw is sent as the whole body, with Status and ContentType; the empty string is an empty body.
	Raw *string `json:"raw,omitempty"`
	// Status goes with Raw; 200 when 0.
	Status int `json:"status,omitempty"`
	// ContentType goes with Raw. Empty: text/event-stream for a streamed request, else application/json.
	ContentType string `json:"content_type,omitempty"`
	// Headers are added to the answer's.
	Headers map[string]string `json:"headers,omitempty"`

	// DelayMS is waited before anything is sent, in milliseconds.
	DelayMS int `json:"delay_ms,omitempty"`
	// ChunkDelayMS is waited before each streamed event.
	ChunkDelayMS int `json:"chunk_delay_ms,omitempty"`
	// ChunkChars replaces the script's.
	ChunkChars int `json:"chunk_chars,omitempty"`
	// Hang sends nothing, until the client goes away or the server is closed.
	Hang bool `json:"hang,omitempty"`
	// HangAfterBytes sends so much of the body and then hangs.
	HangAfterBytes int `json:"hang_after_bytes,omitempty"`
	// DropAfterBytes sends so much of the body and cuts the connection.
	DropAfterBytes int `json:"drop_after_bytes,omitempty"`
	// CloseBeforeBody sends status and headers and cuts the connection.
	CloseBeforeBody bool `json:"close_before_body,omitempty"`
	// Close cuts the connection without an answer.
	Close bool `json:"close,omitempty"`
	// CloseAfterText streams this text and cuts the connection.
	CloseAfterText string `json:"close_after_text,omitempty"`
	// Gate holds the answer until it is opened.
	Gate *Gate `json:"-"`

	// Forever gives this answer to every request that follows.
	Forever bool `json:"forever,omitempty"`
	// Func makes the answer from the request, in place of this one.
	Func func(Request) Answer `json:"-"`
	// EchoLastPrompt puts the text of the request's last user message before Text.
	EchoLastPrompt bool `json:"echo_last_prompt,omitempty"`
	// EchoSystem puts the request's system prompt before Text.
	EchoSystem bool `json:"echo_system,omitempty"`
	// EchoMatch puts everything in the request's texts that matches this regular expression before Text, one a line.
	EchoMatch string `json:"echo_match,omitempty"`
	// RejectOverTokens refuses this request when it is larger, as a window does.
	RejectOverTokens int `json:"reject_over_tokens,omitempty"`
	// ValidatePairing refuses this request when its messages are malformed, in a lenient script.
	ValidatePairing bool `json:"validate_pairing,omitempty"`
	// RequireMaxTokensBetween refuses an output limit outside of these two figures.
	RequireMaxTokensBetween *[2]int `json:"require_max_tokens_between,omitempty"`
}

// Block is one content block. The types are Anthropic's: "text", "thinking", "redacted_thinking",
// "tool_use", "refusal", "compaction" (its content in Text; none is a compaction that failed), or any other with
// its whole JSON in Raw. For the other vendors they become the fields that fit.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Raw       json.RawMessage `json:"raw,omitempty"`
}

// ToolCall is a tool call of an answer; Arguments is JSON text.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Usage is what the answer says it cost, in tokens. Input leaves out what the cache had, as Anthropic counts.
type Usage struct {
	Input       int `json:"input"`
	CachedInput int `json:"cached_input,omitempty"`
	CacheWrite  int `json:"cache_write,omitempty"`
	Output      int `json:"output"`
}

// Error is a vendor's error. What is not set is filled in by the status, in the vendor's own words. An error
// without any body is Raw "" with a Status.
type Error struct {
	Status  int    `json:"status,omitempty"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// RetryAfter is the header's value as it is sent.
	RetryAfter string `json:"retry_after,omitempty"`
	// RetryAfterMS is sent as retry-after-ms.
	RetryAfterMS int `json:"retry_after_ms,omitempty"`
}

// clone copies what a running server changes.
func (s Script) clone() Script {
	s.Answers = slices.Clone(s.Answers)
	return s
}
