// Package llm calls a model for a summary: one streaming model call through the vendor's official SDK. Its outcome is
// reported in the project's own error kinds.
//
//	llm.go         a call and its result
//	vendor.go      a vendor and its client; transport.go, metadata.go: its connections and headers
//	client.go      one call from request to result, the same for every vendor; body.go puts keys into a body
//	response.go    how an answer is read; answer.go gathers its pieces
//	anthropic*.go  the Anthropic Messages protocol; bedrock.go: the same through Amazon Bedrock
//	openai*.go     the OpenAI chat completions protocol, for every server that speaks it
//	responses*.go  the OpenAI Responses protocol
//	google*.go     Google's generateContent
//	native*.go     the forms of the vendors' own compactions and the requests for them
//	verdict.go     whether an answer is usable at all
//	classify.go    the kind of a failure (Classify): rules.go has the table, codes.go and phrases.go the vendors'
//	               words; facts.go, figures.go and retryafter.go read an error, message.go says it in a sentence
//	models.go      what is known of a model: window, output limit, abilities; modeltable.go: the built-in table
//
// Errors and log lines never contain the text of a conversation or a key.
package llm

import (
	"context"
	"encoding/json"

	"precis/internal/contract"
	"precis/pipeline"
)

// ReasonSummarization is the inference reason that every request of a compaction carries.
const ReasonSummarization = "agent-summarization"

// Metadata says for whom and why a request is made, for metering by the vendor or by a gateway.
type Metadata struct {
	// Reason is the inference reason; "": ReasonSummarization.
	Reason string
	// Feature is the name of the prompt.
	Feature string
	RunID   string
	Tenant  string
}

// Call is one request for a summary. Either Body is set, or System and User are.
type Call struct {
	// Model is the vendor's own name of the model, without the vendor before it.
	Model string
	// System and User are an external request: the compactor's system prompt and one user message.
	System, User string
	// Body is the agent's own request with the instruction appended. It is sent byte for byte; when it has no key for
	// streaming, one is added before its last brace.
	Body []byte
	// Format is the format that Body is written in, one of contract.Protocols; "": the vendor's own.
	Format string
	// Native asks for the vendor's own compaction; Body is then what NativeBody made for that form.
	Native contract.NativeForm
	// MaxOutput limits the answer of an external request, in tokens. It is at least 1 and at most the model's limit; 0
	// is the model's limit where that is known. A Body has its own.
	MaxOutput int
	Meta      Metadata
	// OnProgress receives the number of chars of text and reasoning that have arrived: once 0 before the request is
	// sent, then with everything that arrives, keep-alives too. It is called on the goroutine of Call.
	OnProgress func(chars int)
}

// Usage is what one request cost by the vendor's figures, in tokens. All zero: the vendor gave none.
type Usage struct {
	// Input is the whole prompt, including what was read from a cache and written to one.
	Input int
	// CachedInput is the part of Input that was read from a cache.
	CachedInput int
	// CacheWrite is the part of Input that was written to a cache.
	CacheWrite int
	// Output includes reasoning.
	Output int
}

// Result is the outcome of a call. Together with an error it has what is known nevertheless: the raw answer, the
// request, the usage. The text of an answer that broke off is in Raw only. An answer that was cut off at its output
// limit, or refused, has its text and its Finish.
type Result struct {
	pipeline.Answer
	Usage Usage
	// Raw is the body of the vendor's answer as received, for the record.
	Raw []byte
	// RequestBody is what was sent.
	RequestBody []byte
	// RequestID is the vendor's id of the request, for its support.
	RequestID string
	// Model is the model that answered, as the vendor names it.
	Model string
	// Status is the HTTP status, 0 when no answer arrived.
	Status int
	// Native is the result of the vendor's own compaction, a JSON array of what is sent back unchanged: content blocks
	// of one message for Anthropic, items for the Responses API. nil: none was requested, or none arrived.
	Native json.RawMessage
	// NativeText is the readable part of Native: Anthropic's summary, the messages that OpenAI keeps.
	NativeText string
}

// Client calls the models of one vendor. It is safe for concurrent use.
type Client interface {
	// Call makes one request and reads its answer, within the deadline of ctx. The error is a *pipeline.Error, also
	// for an answer with status 200 that cannot be a summary: cut off, empty, refused, only a tool call, without a
	// finish reason, broken. A connection that fails within a second and before any answer is retried once; any other
	// retry is the caller's.
	Call(ctx context.Context, c Call) (Result, error)
}
